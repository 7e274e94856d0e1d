// The second TypeScript SDK as a client: both protocol revisions, as `mode` says.

import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';

import { play, readScript, tell } from './play.mjs';

const { transport: wanted, mode, turns } = readScript();
const transport = wanted.url
  ? new StreamableHTTPClientTransport(new URL(wanted.url))
  : new StdioClientTransport(wanted);
const versionNegotiation = { mode: ['legacy', 'auto'].includes(mode) ? mode : { pin: mode } };
const client = new Client({ name: 'ts2', version: '1' }, { versionNegotiation });
await client.connect(transport);
tell({ protocol: client.getNegotiatedProtocolVersion(), ...(await play(client, turns)) });
