// live.mjs URL - the official MCP client and a call that takes its time:
// progress while it runs, and what is left of it when it is cancelled
//
// Prints TAP.  How long a cancel took is a comment in it: a number, no test.
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from
  "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { runSteps } from "./tap.mjs";

const LIMIT_MS = 120_000;
const POLL_MS = 5;

const url = process.argv[2];
if (url === undefined) {
  console.error("usage: node live.mjs URL");
  process.exit(2);
}

const client = new Client({ name: "live", version: "1" });
const transport = new StreamableHTTPClientTransport(new URL(url));
const identifier = `live-${randomUUID().slice(0, 8)}`;
let unasked = 0;

client.fallbackNotificationHandler = async () => {
  unasked++;
};

function call(shell, options = {}) {
  return client.callTool({
    name: "run_sandbox",
    arguments: {
      identifier,
      commands: [{ shell }],
      options: { await_completion: true, await_timeout_ms: LIMIT_MS },
    },
  }, undefined, { timeout: LIMIT_MS, ...options });
}

async function output(shell) {
  const { structuredContent } = await call(shell);
  assert.equal(structuredContent.final.state, "completed");
  return structuredContent.final.commands[0].stdout;
}

async function canceledRuns() {
  const text = await (await fetch(new URL("/metrics", url))).text();
  return Number(
    text.match(/^mcp_runs_total\{status="canceled"\} (\d+)$/m)[1]);
}

async function until(condition) {
  const end = Date.now() + LIMIT_MS;
  while (!await condition()) {
    assert.ok(Date.now() < end, "it did not happen in time");
    await sleep(POLL_MS);
  }
}

// Calls shell, waits until it printed word, cancels the call, and waits until
// its run has ended.  Gives the milliseconds from the one to the other.
async function cancelWhenItSaid(word, shell) {
  const before = await canceledRuns();
  const abort = new AbortController();
  let going = false;
  const ended = call(shell, {
    signal: abort.signal,
    onprogress: ({ message }) => {
      going ||= message?.includes(word);
    },
  });
  const refused = assert.rejects(ended);
  await until(() => going);
  const began = performance.now();
  abort.abort("enough");
  await refused;
  await until(async () => await canceledRuns() === before + 1);
  return performance.now() - began;
}

// What still runs in the sandbox with this command line.
function alive(pattern) {
  return output(`for p in /proc/[0-9]*; do
    tr '\\0' ' ' <$p/cmdline 2>/dev/null; echo
  done | grep -E '${pattern}' || :`);
}

const steps = [
  ["the client connects", async () => {
    await client.connect(transport, { timeout: LIMIT_MS });
    assert.equal(await output("echo ready"), "ready\n");
  }],
  ["progress brings the output while the call goes on", async () => {
    const seen = [];
    let over = false;
    // It goes on only when its first line was seen: by us, not by a clock.
    const ended = call(
      "echo first; until [ -e /tmp/go-on ]; do sleep 0.01; done; echo last", {
        onprogress: (progress) => {
          assert.ok(!over, "progress behind the answer");
          seen.push(progress);
        },
      }).finally(() => {
      over = true;
    });
    await until(() => seen.some(({ message }) => message?.includes("first")));
    assert.ok(!over);
    await output("touch /tmp/go-on");
    const { structuredContent } = await ended;
    assert.equal(
      structuredContent.final.commands[0].stdout, "first\nlast\n");
    for (let i = 1; i < seen.length; i++) {
      assert.ok(seen[i].progress > seen[i - 1].progress);
    }
  }],
  ["who gives no token hears nothing", async () => {
    const before = unasked;
    await call("for i in 1 2 3; do echo $i; sleep 0.2; done");
    assert.equal(unasked, before);
  }],
  ["a cancel ends the run and every process of its tree", async () => {
    const ms = await cancelWhenItSaid("go", `
      sleep 91001 &
      setsid sleep 91002 &
      (setsid sh -c 'sleep 91003 & exec sleep 91004' &)
      trap '' TERM INT HUP
      echo go; sleep 91005; sleep 91006`);
    assert.equal(await alive("[s]leep 9100"), "");
    console.log(`# cancel to canceled: ${ms.toFixed(1)} ms`);
  }],
  ["a cancel ends a program that prints without end", async () => {
    const ms = await cancelWhenItSaid("91007", "exec yes 91007");
    assert.equal(await alive("[y]es 91007"), "");
    console.log(`# cancel to canceled: ${ms.toFixed(1)} ms`);
  }],
  ["the sandbox and the session go on", async () => {
    assert.equal(await output("echo still"), "still\n");
    await client.callTool(
      { name: "delete_sandbox", arguments: { identifier } });
    await transport.terminateSession();
    await client.close();
  }],
];

await runSteps(steps);
