// stdio.mjs BUILD WORK - the official MCP client, by mcp-sandboxd stdio
//
// Prints TAP.  A server that tells ids in the stream of an answer gives the
// answer of a call also when it was killed meanwhile; of one that does not, the
// client is told what to do.
import assert from "node:assert/strict";
import { mkdirSync } from "node:fs";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from
  "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from
  "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { freePort, startServer, until, wanted } from "./server.mjs";
import { runSteps } from "./tap.mjs";

const [build, work] = wanted("BUILD", "WORK");
const LIMIT_MS = 60_000;
const BROKEN = -31002;

const settings = { PORT: String(await freePort()) };
let server = await startServer(build, work, "stdio", settings);
const url = `${server.base}/mcp`;
const errors = [];

async function connect(env) {
  const transport = new StdioClientTransport({
    command: `${build}/mcp-sandboxd`, args: ["stdio"], env, stderr: "pipe" });
  transport.stderr.on("data", (data) => process.stderr.write(data));
  const client = new Client({ name: "stdio", version: "1" });
  client.onerror = (error) => errors.push(error);
  await client.connect(transport);
  return client;
}

const client = await connect({ MCP_SANDBOXD_URL: url });

const textOf = ({ content }) => content[0].text;

function call(name, args, options = {}) {
  return client.callTool({ name, arguments: args }, undefined,
    { timeout: LIMIT_MS, ...options });
}

function run(identifier, shell, options) {
  return call("run_sandbox", {
    identifier, commands: [{ shell }],
    options: { await_completion: true, await_timeout_ms: LIMIT_MS / 2 },
  }, options);
}

async function runsOf(identifier) {
  return textOf(await call("list_runs", { identifier }));
}

// Does the stream of a POST tell ids?  Asked without the bridge.
async function tellsIds() {
  let seen = false;
  const looking = new Client({ name: "looking", version: "1" });
  await looking.connect(new StreamableHTTPClientTransport(new URL(url)));
  await looking.callTool({
    name: "run_sandbox",
    arguments: { identifier: "ids", commands: [{ shell: "sleep 2" }],
      options: { await_completion: true } },
  }, undefined, { timeout: LIMIT_MS, onresumptiontoken: () => {
    seen = true;
  } });
  await looking.close();
  return seen;
}

await runSteps([
  ["it connects and lists", async () => {
    const { tools } = await client.listTools();
    assert.ok(tools.some(({ name }) => name === "run_sandbox"));
    assert.equal(client.getServerVersion().name, "mcp-sandboxd");
  }],
  ["it runs, and progress comes meanwhile", async () => {
    const seen = [];
    const result = await run("stdio", "echo one; sleep 2; echo two",
      { onprogress: (progress) => seen.push(progress) });
    assert.match(textOf(result), /one\ntwo/);
    assert.ok(seen.length > 0);
  }],
  ["it cancels, and the run ends", async () => {
    const abort = new AbortController();
    const calling = run("cancel", "sleep 600", { signal: abort.signal });
    await until("the run", async () =>
      /running/.test(await runsOf("cancel")));
    abort.abort("no more");
    await assert.rejects(calling);
    await until("its end", async () => /canceled/.test(await runsOf("cancel")));
  }],
  ["a server that is killed in a call and comes back", async () => {
    const hasIds = await tellsIds();
    const calling = run("killed", "echo begun; sleep 5; echo through",
      { onprogress: () => {} }).catch((error) => error);
    await until("the run", async () =>
      /running/.test(await runsOf("killed")));
    // Longer than the second after which an answer becomes a stream.
    await run("other", "sleep 1.5");
    server.child.kill("SIGKILL");
    await server.ended;
    server = await startServer(build, work, "stdio", settings);
    const answer = await calling;
    if (hasIds) {
      assert.match(textOf(answer), /begun\nthrough/);
    } else {
      assert.equal(answer.code, BROKEN);
      assert.match(answer.message, /list_runs/);
    }
    await until("the run's end", async () =>
      /completed/.test(await runsOf("killed")));
  }],
  ["a server of its own, which ends with it", async () => {
    mkdirSync(`${work}/own`);
    const own = await connect({ ...server.env, MCP_SANDBOXD_URL: "",
      DATA_DIR: `${work}/own`, INSTANCE: `stdio-own-${process.pid}` });
    const answer = await own.callTool({ name: "run_sandbox", arguments: {
      identifier: "own", commands: [{ shell: "echo mine" }] } });
    assert.match(textOf(answer), /mine/);
    await own.callTool({ name: "delete_sandbox",
      arguments: { identifier: "own" } });
    await own.close();
  }],
  ["nothing but messages was on stdout", async () => {
    for (const identifier of ["stdio", "cancel", "killed", "other", "ids"])
      await call("delete_sandbox", { identifier });
    await client.close();
    assert.deepEqual(errors, []);
  }],
]);
