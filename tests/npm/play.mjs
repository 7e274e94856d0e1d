// Plays a script of calls over a connected client of either SDK, and tells what came back.
// What the answers mean is for the Python test to judge; nothing is judged here.

import { readFileSync } from 'node:fs';

/** What the test wants: `{transport, mode?, calls: [{tool, arguments, follow?}]}`, from stdin. */
export function readScript() {
  return JSON.parse(readFileSync(0, 'utf8'));
}

/** Lists the tools first, since that arms the clients' check of results against the schemas. */
export async function play(client, script) {
  const complaints = [];
  client.onerror = (error) => complaints.push(String(error));
  const { tools } = await client.listTools();
  const answers = [];
  for (const call of script.calls) {
    answers.push(await (call.follow ? follow(client, call) : answer(client, call)));
  }
  const server = client.getServerVersion();
  await client.close();
  return { server, tools: tools.map((tool) => tool.name), answers, complaints };
}

export function tell(report) {
  process.stdout.write(JSON.stringify(report));
}

async function answer(client, call) {
  try {
    return await client.callTool({ name: call.tool, arguments: call.arguments });
  } catch (error) {
    return { thrown: { name: error.name, code: error.code, message: error.message } };
  }
}

// Goes on with `offset` = `next_offset`, as a client does that wants the whole of a file.
async function follow(client, call) {
  const pieces = [];
  let offset = 0;
  while (offset !== undefined) {
    const piece = await answer(client, { ...call, arguments: { ...call.arguments, offset } });
    pieces.push(piece);
    offset = piece.structuredContent?.next_offset;
  }
  return { pieces };
}
