// mcp_node.mjs TOOLS - the official TypeScript server, to be measured beside
// ours: Streamable HTTP with sessions and JSON answers, made as its examples
// are, of McpServer with schemas of zod and the SDK's own Express application
// (which checks Host, as we do).  TOOLS is a file with our tools/list; its tools
// are registered.  Prints its URL; ends with its standard input.
import { randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const clients = createRequire(join(import.meta.dirname, "../clients/"));
const sdk = (name) => import(pathToFileURL(
  clients.resolve(`@modelcontextprotocol/sdk/${name}`)));
const { createMcpExpressApp } = await sdk("server/express.js");
const { McpServer } = await sdk("server/mcp.js");
const { StreamableHTTPServerTransport } = await sdk("server/streamableHttp.js");
const z = clients("zod/v4");

const { tools } = JSON.parse(readFileSync(process.argv[2], "utf8"));
const schemas = new Map(tools.map((t) =>
  [t.name, z.fromJSONSchema(t.inputSchema)]));
const sessions = new Map();

async function begin() {
  const server = new McpServer({ name: "node", version: "1" });
  for (const { name, title, description, annotations, _meta } of tools) {
    server.registerTool(name, { title, description, annotations, _meta,
      inputSchema: schemas.get(name) }, () => ({ content: [] }));
  }
  const transport = new StreamableHTTPServerTransport({
    sessionIdGenerator: randomUUID,
    enableJsonResponse: true,
    onsessioninitialized: (id) => { sessions.set(id, transport); },
  });
  await server.connect(transport);
  return transport;
}

const app = createMcpExpressApp();
app.post("/mcp", async (request, response) => {
  const known = sessions.get(request.headers["mcp-session-id"]);
  await (known ?? await begin())
    .handleRequest(request, response, request.body);
});
const http = app.listen(0, "127.0.0.1", () => {
  console.log(`http://127.0.0.1:${http.address().port}/mcp`);
});
process.stdin.resume().on("end", () => process.exit(0));
