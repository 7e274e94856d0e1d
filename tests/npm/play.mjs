// Plays a script of calls over a connected client of either SDK, and tells what came back.
// What the answers mean is for the Python test to judge; nothing is judged here.

import { readFileSync } from 'node:fs';

/** What the test wants, from stdin: `{transport, mode, turns}`. */
export function readScript() {
  return JSON.parse(readFileSync(0, 'utf8'));
}

/**
 * Takes the turns one after the other; the calls of one turn are under way at the same time.
 * The tools are listed first, since that arms the client's check of results against schemas.
 */
export async function play(client, turns) {
  const complaints = [];
  client.onerror = (error) => complaints.push(String(error));
  const { tools } = await client.listTools();
  const answers = [];
  for (const turn of turns) {
    answers.push(await Promise.all(turn.map((call) => answer(client, call))));
  }
  const server = client.getServerVersion().name;
  await client.close();
  return { server, tools: tools.map((tool) => tool.name), answers, complaints };
}

export function tell(report) {
  process.stdout.write(JSON.stringify(report));
}

async function answer(client, call) {
  if (call.whole) return readWhole(client, call);
  try {
    return await client.callTool({ name: call.tool, arguments: call.arguments });
  } catch (error) {
    return { thrown: { code: error.code ?? null, message: error.message } };
  }
}

// Goes on with `offset` = `next_offset`, as a client does that wants the whole of a file.
async function readWhole(client, call) {
  const pieces = [];
  let offset = 0;
  while (offset !== undefined) {
    const piece = await answer(client, {
      tool: call.tool,
      arguments: { ...call.arguments, offset },
    });
    pieces.push(piece);
    offset = piece.structuredContent?.next_offset;
  }
  return { pieces };
}
