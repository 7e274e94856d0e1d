// The first TypeScript SDK as a client: protocol revision 2025-11-25 only.

import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';

import { play, readScript, tell } from './play.mjs';

const { transport: wanted, turns } = readScript();
const transport = wanted.url
  ? new StreamableHTTPClientTransport(new URL(wanted.url))
  : new StdioClientTransport(wanted);
let protocol;
// Called with the negotiated revision, once; the client keeps it nowhere that can be read.
const setProtocolVersion = transport.setProtocolVersion?.bind(transport);
transport.setProtocolVersion = (version) => {
  protocol = version;
  setProtocolVersion?.(version);
};
const client = new Client({ name: 'ts1', version: '1' });
await client.connect(transport);
tell({ protocol, ...(await play(client, turns)) });
