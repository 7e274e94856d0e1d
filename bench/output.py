"""(e) A command that prints a gigabyte, taken in by the gateway, against `cat` on the same pipe."""

import subprocess
from collections.abc import Iterator

import uvloop
from figures import MIB, Plan, Row, interleave, resident_mib, timed
from references import beside_python, environment
from wire import StdioClient, tool_body

GROWTH_MAX_MIB = 8
LINE = "a line of output, as programs print them"


def measure(plan: Plan) -> Iterator[Row]:
    """Measure a producer that costs nothing and one that prints lines; watch the memory."""
    size = plan.rounds(1024, 128) * MIB
    root = plan.folder("output")
    producers = {
        "zeros": f"head -c {size} /dev/zero",
        "lines": f"yes '{LINE}' | head -c {size}",
    }
    with StdioClient([beside_python("codespace"), "serve", str(root)]) as client:
        client.open()
        collect(client, f"head -c {MIB} /dev/zero", MIB)
        before = resident_mib(client.process.pid)
        for what, producer in producers.items():
            ours, cat = uvloop.run(
                interleave(
                    plan.rounds(5, 2),
                    timed(lambda text=producer: collect(client, text, size)),
                    timed(lambda text=producer: pipe_to_cat(text)),
                )
            )
            rates = size / ours / 1e6, size / cat / 1e6
            yield Row("e", f"{size // MIB} MiB of {what}", "MB/s", *rates, None, "| cat >/dev/null")
        limit = (before + GROWTH_MAX_MIB) / before
        for what, field in (("after", "VmRSS"), ("peak", "VmHWM")):
            size_mib = resident_mib(client.process.pid, field)
            yield Row("e", f"gateway memory, {what}", "MiB", size_mib, before, limit, "before")


def collect(client: StdioClient, producer: str, size: int) -> None:
    """Run the producer under the gateway to its end, and see that all of it was taken in."""
    arguments = {"workspace_id": "default", "command": ["/bin/sh", "-c", producer]}
    started = tool_body(client.call("exec_command", arguments))
    handle = {"process_id": started["process_id"], "wait_ms": 30_000}
    state: dict[str, object] = {"state": "running"}
    while state["state"] == "running":
        state = tool_body(client.call("process_status", handle))
    if state.get("exit_code") != 0 or state["output_total"] != size:
        raise RuntimeError(f"the output was not collected: {state}")


def pipe_to_cat(producer: str) -> None:
    """Let `cat` take what the producer prints."""
    command = f"{producer} | cat > /dev/null"
    subprocess.run(["/bin/sh", "-c", command], check=True, env=environment())
