// The second TypeScript SDK as a client: both protocol revisions, by `mode`.

import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';

import { play, readScript, tell } from './play.mjs';

const script = readScript();
const { url, token, command, args, env } = script.transport;
const transport = url
  ? new StreamableHTTPClientTransport(new URL(url), {
      requestInit: { headers: token ? { Authorization: `Bearer ${token}` } : {} },
    })
  : new StdioClientTransport({ command, args, env, stderr: 'inherit' });
const mode = ['legacy', 'auto'].includes(script.mode) ? script.mode : { pin: script.mode };
const client = new Client({ name: 'ts2', version: '1' }, { versionNegotiation: { mode } });
await client.connect(transport);
tell({ protocol: client.getNegotiatedProtocolVersion(), ...(await play(client, script)) });
