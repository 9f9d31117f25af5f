// bridge.mjs ENTRY - the official client over stdio, with what ENTRY starts
//
// ENTRY is a server of a client's configuration, {"command": ..., "args": ...}.
// Prints what a program in a sandbox printed.
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from
  "@modelcontextprotocol/sdk/client/stdio.js";

const client = new Client({ name: "bridge", version: "1" });
await client.connect(
  new StdioClientTransport({ ...JSON.parse(process.argv[2]), stderr: "ignore" }));
const { structuredContent } = await client.callTool({
  name: "run_sandbox",
  arguments: {
    identifier: "bridge",
    commands: [{ argv: ["echo", "hello over stdio"] }],
  },
});
process.stdout.write(structuredContent.final.commands[0].stdout);
await client.callTool({
  name: "delete_sandbox",
  arguments: { identifier: "bridge" },
});
await client.close();
