// Drives Pi's codemode package, which lies in $PEERS/node_modules. Prints ["measure", value] lines.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const NAME = "@earendil-works/pi-codemode";
const folder = `${process.env.PEERS}/node_modules/${NAME}`;
const main = createRequire(import.meta.url)(`${folder}/package.json`).main;
const { CodemodeSandbox } = await import(pathToFileURL(`${folder}/${main}`).href);

if (process.argv[2] === "first") {
  const sandbox = new CodemodeSandbox({});
  console.log((await sandbox.execute("return 1+2")).value);
  await sandbox.close();
  process.exit(0);
}

const scripts = JSON.parse(process.env.SCRIPTS);
const SUSPENDED = 50;
const rows = Array.from({ length: 100_000 }, (_, id) => ({ id, name: `row ${id}`, v: id * 0.5, ok: true }));
const text = "x".repeat(1 << 20);
const waiting = [];
const tools = [
  { name: "tool", execute: async ({ a }) => ({ a }) },
  { name: "real", execute: async () => scripts.result },
  { name: "mb", execute: async () => text },
  { name: "objs", execute: async () => rows },
  { name: "never", execute: () => new Promise((resolve) => waiting.push(resolve)) },
];
const open = (timeoutMs) => new CodemodeSandbox({ tools, timeoutMs });
const sandbox = open(60_000);

const put = (measure, value) => console.log(JSON.stringify([measure, value]));
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const memory = () => Number(/^Pss:\s+(\d+)/m.exec(readFileSync("/proc/self/smaps_rollup", "utf8"))[1]) / 1024;

async function best(script, count) {
  let least = Infinity;
  for (let i = 0; i < count; i++) {
    const started = performance.now();
    const result = await sandbox.execute(script);
    least = Math.min(least, performance.now() - started);
    if (!result.ok) throw new Error(result.error.message);
  }
  return least;
}

async function said(script, of = sandbox) {
  const result = await of.execute(script);
  return result.ok ? String(result.value) : `${result.error.kind}: ${result.error.message}`;
}

const warm = await best("return 1+2", 30);
put("warm_ms", warm);
// script, measure, runs, milliseconds → the measure
for (const [name, measure, count, factor] of [
  ["seq", "seq_us", 5, 1], ["conc", "conc_us", 5, 1], ["real", "real_us", 5, 5],
  ["mb", "mb_ms", 5, 1], ["objs", "objs_ms", 3, 1], ["loop", "loop_ms", 3, 1], ["mix", "mix_ms", 3, 1],
]) {
  put(measure, Math.max((await best(scripts[name], count)) - warm, 0) * factor);
}

const short = open(1_000);
await short.execute("return 1");
let late = 0, last = performance.now();
const beat = setInterval(() => {
  const now = performance.now();
  late = Math.max(late, now - last - 5);
  last = now;
}, 5);
const started = performance.now();
put("spin_err", await said("while (true) {}", short));
put("spin_ms", performance.now() - started);
clearInterval(beat);
put("lag_ms", late);
await short.close();
put("recursion", await said(scripts.rec));
put("deadlock", await said("await new Promise(() => {})"));

const before = memory();
for (let i = 0; i < SUSPENDED; i++) sandbox.execute("await tools.never({})");
for (let i = 0; i < 1000 && waiting.length < SUSPENDED; i++) await sleep(20);
put("idle_mb", (memory() - before) / waiting.length);
process.exit(0);
