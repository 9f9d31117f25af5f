// bridge.mjs ENTRY - the official client by what ENTRY names or starts
//
// ENTRY is a server of a client's configuration: {"url": ...}, perhaps with
// "headers", with "type": "sse" for HTTP+SSE, or for stdio {"command": ...,
// "args": ..., "env": ...}.
// Prints what a program in a sandbox printed.
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { SSEClientTransport } from
  "@modelcontextprotocol/sdk/client/sse.js";
import { StdioClientTransport } from
  "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from
  "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { STRUCTURED } from "./server.mjs";

const entry = JSON.parse(process.argv[2]);
const client = new Client({ name: "bridge", version: "1" });
const Http = entry.type === "sse"
  ? SSEClientTransport : StreamableHTTPClientTransport;
await client.connect(entry.url !== undefined
  ? new Http(new URL(entry.url),
    { requestInit: { headers: entry.headers ?? {} } })
  : new StdioClientTransport({ ...entry, stderr: "ignore" }));
const { structuredContent } = await client.callTool({
  name: "run_sandbox",
  arguments: {
    identifier: "bridge",
    commands: [{ argv: ["echo", "hello from there"] }],
  },
  _meta: STRUCTURED,
});
process.stdout.write(structuredContent.final.commands[0].stdout);
await client.callTool({
  name: "delete_sandbox",
  arguments: { identifier: "bridge" },
});
await client.close();
