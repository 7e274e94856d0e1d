// The first TypeScript SDK as a client: protocol revision 2025-11-25 only.

import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';

import { play, readScript, tell } from './play.mjs';

const script = readScript();
const { url, token, command, args, env } = script.transport;
const transport = url
  ? new StreamableHTTPClientTransport(new URL(url), {
      requestInit: { headers: token ? { Authorization: `Bearer ${token}` } : {} },
    })
  : new StdioClientTransport({ command, args, env, stderr: 'inherit' });
const client = new Client({ name: 'ts1', version: '1' });
await client.connect(transport);
tell({ protocol: transport.protocolVersion ?? null, ...(await play(client, script)) });
