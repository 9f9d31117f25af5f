// inspector.mjs URL WORK - the Inspector's command line, each call a process
//
// Prints TAP.  It needs Node 22.19.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import { wanted } from "./server.mjs";
import { runGroups } from "./tap.mjs";

const LIMIT_MS = 60_000;
// [transport, path or none, era]
const WAYS = [
  ["http", "", "legacy"], ["http", "", "modern"], ["sse", "/sse", "legacy"],
];

const [url, work] = wanted("URL", "WORK");
const program = fileURLToPath(new URL("node_modules/@modelcontextprotocol/" +
  "inspector/clients/launcher/build/index.js", import.meta.url));

// {status, result, said} of one call.
function inspect([transport, path, era], method, ...more) {
  const child = spawn(process.execPath, [
    program, "--cli", new URL(path || url, url).href, "--transport", transport,
    "--protocol-era", era, "--format", "json", "--method", method, ...more,
  ], {
    stdio: ["ignore", "pipe", "pipe"], timeout: LIMIT_MS,
    env: { ...process.env, HOME: work, MCP_CATALOG_PATH: `${work}/mcp.json` },
  });
  const got = { stdout: "", stderr: "" };
  for (const name of ["stdout", "stderr"])
    child[name].setEncoding("utf8").on("data", (text) => {
      got[name] += text;
    });
  return new Promise((done, fail) => {
    child.on("error", fail);
    child.on("close", (status) => done({
      status, said: got.stderr,
      result: got.stdout && JSON.parse(got.stdout).result,
    }));
  });
}

async function inspected(...call) {
  const { status, result, said } = await inspect(...call);
  assert.equal(status, 0, said);
  return result;
}

const run = (commands) => ["tools/call", "--tool-name", "run_sandbox",
  "--tool-args-json", JSON.stringify({ identifier: "inspector", commands })];

const stepsOf = (way) => [
  ["it connects", async () => {
    const { serverInfo } = await inspected(way, "initialize");
    assert.equal(serverInfo.name, "mcp-sandboxd");
  }],
  ["it has nothing to say of the tools' schemas", async () => {
    const { status, result, said } =
      await inspect(way, "tools/list", "--strict");
    assert.equal(status, 0, said);
    assert.equal(said, "");
    assert.ok(result.tools.length >= 10);
  }],
  ["a tool is called", async () => {
    const { content } =
      await inspected(way, ...run([{ argv: ["echo", "from there"] }]));
    assert.match(content[0].text, /^from there$/m);
  }],
  ["a call that is refused says why", async () => {
    const { status, result } = await inspect(way, ...run([{ argv: 1 }]));
    assert.equal(result.isError, true);
    assert.match(result.content[0].text, /commands\[0\]\.argv/);
    assert.equal(status, 5);
  }],
];

await runGroups(WAYS.map((way) =>
  [`Inspector, ${way[0]}, ${way[2]}`, stepsOf(way)]));
