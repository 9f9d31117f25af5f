// smoke.mjs URL - the official MCP client against a server, all six tools
//
// Prints TAP; the exit status is 0 only if every step was right.  Where the
// server has TOOL_STRUCTURED=true, the client itself checks structured content
// against each tool's output schema.
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import Ajv from "ajv/dist/2020.js";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from
  "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { STRUCTURED, wanted } from "./server.mjs";
import { runSteps } from "./tap.mjs";

const LIMIT_MS = 120_000;
const SIX = [
  "run_sandbox", "delete_sandbox", "restart_sandbox",
  "initialize_sandbox", "execute_code", "stop_sandbox",
];

const [url] = wanted("URL");

const client = new Client({ name: "smoke", version: "1" });
const transport = new StreamableHTTPClientTransport(new URL(url));
const identifier = `smoke-${randomUUID().slice(0, 8)}`;

async function call(name, args) {
  const result = await client.callTool(
    { name, arguments: args, _meta: STRUCTURED }, undefined,
    { timeout: LIMIT_MS });
  assert.notEqual(result.isError, true, JSON.stringify(result.content));
  assert.equal(result.content[0].type, "text");
  assert.equal(typeof result.structuredContent, "object");
  return result.structuredContent;
}

// Runs a command to its end and gives its record.
async function run(command) {
  const started = await call("run_sandbox", {
    identifier,
    commands: [command],
    options: { await_completion: true, await_timeout_ms: LIMIT_MS },
  });
  assert.equal(started.tool, "run_sandbox");
  assert.match(started.run_id, /^[0-9a-f-]{36}$/);
  assert.ok(started.events_url.endsWith(`run_id=${started.run_id}`));
  assert.equal(started.identifier, identifier);
  assert.ok(started.final, "the run did not end in time");
  return { run: started.final, command: started.final.commands[0] };
}

const steps = [
  ["the client connects and initialises", async () => {
    await client.connect(transport, { timeout: LIMIT_MS });
    assert.ok(client.getServerVersion().name.length > 0);
    assert.ok(client.getServerCapabilities().tools);
  }],
  ["ping is answered", async () => {
    await client.ping();
  }],
  ["the six tools are listed, each with its schemas", async () => {
    const { tools } = await client.listTools();
    for (const name of SIX) {
      const tool = tools.find((t) => t.name === name);
      assert.ok(tool, `${name} is missing`);
      assert.ok(tool.description.length > 0);
      assert.equal(tool.inputSchema.type, "object");
      assert.equal(tool.outputSchema?.type ?? "object", "object");
    }
  }],
  ["a validator in its strictest mode has no word to say of the schemas",
    async () => {
      const { tools } = await client.listTools();
      for (const { name, inputSchema, outputSchema } of tools) {
        for (const schema of [inputSchema, outputSchema ?? {}]) {
          const words = [];
          const tell = (...text) => words.push(text.join(" "));
          const ajv = new Ajv.default({
            strict: true, strictTypes: true, strictTuples: true,
            strictRequired: true, validateFormats: false,
            logger: { log: tell, warn: tell, error: tell },
          });
          assert.doesNotThrow(() => ajv.compile(schema), name);
          assert.deepEqual(words, [], name);
        }
      }
    }],
  ["run_sandbox runs a command and waits for its end", async () => {
    const { run: final, command } =
      await run({ argv: ["echo", "hello", "world"] });
    assert.equal(final.state, "completed");
    assert.equal(command.status, "completed");
    assert.equal(command.exit_code, 0);
    assert.equal(command.stdout, "hello world\n");
    assert.equal(command.stdout_bytes, 12);
    assert.equal(command.stdout_truncated, false);
  }],
  ["run_sandbox tells how a command failed", async () => {
    const { run: final, command } =
      await run({ shell: "echo wrong >&2; exit 7" });
    assert.equal(final.state, "failed");
    assert.equal(command.status, "failed");
    assert.equal(command.exit_code, 7);
    assert.equal(command.stderr, "wrong\n");
  }],
  ["a sandbox keeps its files between calls", async () => {
    await run({ shell: "echo kept > /workspace/note" });
    const { command } = await run({ argv: ["cat", "/workspace/note"] });
    assert.equal(command.stdout, "kept\n");
  }],
  ["restart_sandbox gives a new sandbox of the same name", async () => {
    const { tool, sandbox } = await call("restart_sandbox", { identifier });
    assert.equal(tool, "restart_sandbox");
    assert.equal(sandbox.identifier, identifier);
    const { command } =
      await run({ shell: "test ! -e /workspace/note && echo gone" });
    assert.equal(command.stdout, "gone\n");
  }],
  ["delete_sandbox deletes, and again says the same", async () => {
    for (let i = 0; i < 2; i++) {
      const result = await call("delete_sandbox", { identifier });
      assert.equal(result.tool, "delete_sandbox");
      assert.equal(result.deleted, true);
      assert.equal(result.identifier, identifier);
    }
  }],
  ["initialize_sandbox gives a container", async () => {
    const result = await call("initialize_sandbox", {});
    assert.equal(result.status, "success");
    assert.ok(result.container_id.length > 0);
    const again = await call("initialize_sandbox", {});
    assert.equal(again.container_id, result.container_id);
  }],
  ["execute_code runs Python", async () => {
    const result = await call("execute_code",
      { code: "print(6 * 7)", language: "python" });
    assert.equal(result.status, "success");
    assert.equal(result.exit_code, 0);
    assert.equal(result.output, "42\n");
  }],
  ["stop_sandbox stops it", async () => {
    const result = await call("stop_sandbox", {});
    assert.equal(result.status, "success");
  }],
  ["an unknown tool is refused", async () => {
    const refused = await client.callTool(
      { name: "no_such_tool", arguments: {} }).then(
      (result) => result.isError === true, () => true);
    assert.ok(refused);
  }],
  ["the session ends", async () => {
    await transport.terminateSession();
    await client.close();
  }],
];

await runSteps(steps);
