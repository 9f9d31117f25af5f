// results.mjs BUILD WORK - what the official client is given as a result
//
// By default one text for a model, with small pictures behind it; with
// TOOL_STRUCTURED=true what programs of the compatible server know, which the
// client holds against the output schemas.  Prints TAP.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdirSync } from "node:fs";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from
  "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { STRUCTURED, startServer, wanted } from "./server.mjs";
import { runSteps } from "./tap.mjs";

const [build, work] = wanted("BUILD", "WORK");

// Writes a PNG of 3 by 2 to /artifacts, with nothing but Python.
const PLOT = `
import struct, zlib
def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + \\
        struct.pack(">I", zlib.crc32(kind + data))
open("/artifacts/plot.png", "wb").write(b"\\x89PNG\\r\\n\\x1a\\n" +
    chunk(b"IHDR", struct.pack(">IIBBBBB", 3, 2, 8, 0, 0, 0, 0)) +
    chunk(b"IDAT", zlib.compress(b"\\0\\1\\2\\3" * 2)) + chunk(b"IEND", b""))
print("drawn")
`;

async function started(name, settings) {
  mkdirSync(`${work}/${name}`);
  const server = await startServer(
    build, `${work}/${name}`, `results-${name}`, settings);
  const client = new Client({ name: "results", version: "1" });
  await client.connect(
    new StreamableHTTPClientTransport(new URL(`${server.base}/mcp`)));
  return { server, client };
}

const plain = await started("plain", {});
const call = (name, args, more = {}) =>
  plain.client.callTool({ name, arguments: args, ...more });

async function drawn(result) {
  assert.equal(result.isError, false);
  assert.equal(result.structuredContent, undefined);
  assert.deepEqual(result.content.map(({ type }) => type), ["text", "image"]);
  const [{ text }, { data, mimeType }] = result.content;
  assert.match(text, /^drawn$/m);
  assert.match(text, /^image 1: plot.png$/m);
  assert.equal(mimeType, "image/png");
  // What the text says where it is, is the same.
  const [address] = /http:\S+\/plot\.png/.exec(text);
  const bytes = Buffer.from(await (await fetch(address)).arrayBuffer());
  assert.deepEqual(Buffer.from(data, "base64"), bytes);
  assert.equal(bytes.readUInt32BE(16), 3);
}

await runSteps([
  ["no tool has an output schema", async () => {
    const { tools } = await plain.client.listTools();
    assert.ok(tools.length >= 10);
    assert.deepEqual(tools.filter((t) => t.outputSchema !== undefined), []);
  }],
  ["a picture that code left is an image block", async () => {
    await call("initialize_sandbox", {});
    await drawn(await call("execute_code", { code: PLOT }));
  }],
  ["a picture that a command left is one, too", async () => {
    await drawn(await call("run_sandbox", {
      identifier: "box", commands: [{ argv: ["python3", "-c", PLOT] }],
    }));
  }],
  ["a program asks for structure, call by call", async () => {
    const result = await call("run_sandbox", {
      identifier: "box", commands: [{ argv: ["python3", "-c", PLOT] }],
    }, { _meta: STRUCTURED });
    assert.equal(result.structuredContent.final.commands[0].stdout, "drawn\n");
    assert.deepEqual(result.content.map(({ type }) => type), ["text"]);
    for (const identifier of ["box", "default"])
      await call("delete_sandbox", { identifier });
    await plain.client.close();
  }],
  ["the client holds every structure against its schema", async () => {
    const { server, client } = await started(
      "structured", { TOOL_STRUCTURED: "true", TOOL_TEXT: "json" });
    const { tools } = await client.listTools();
    assert.ok(tools.every((t) => t.outputSchema.type === "object"));
    const given = await client.callTool(
      { name: "list_sandboxes", arguments: {} });
    assert.deepEqual(JSON.parse(given.content[0].text.replace(/^.*\n/, "")),
      given.structuredContent);
    await client.close();
    const smoke = spawn(process.execPath,
      [new URL("smoke.mjs", import.meta.url).pathname, `${server.base}/mcp`]);
    let said = "";
    smoke.stdout.on("data", (part) => { said += part; });
    const status = await new Promise((done) => smoke.on("close", done));
    assert.equal(status, 0, said);
    assert.match(said, /^ok 10 - /m);
  }],
]);
