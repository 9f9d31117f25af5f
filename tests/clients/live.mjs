// live.mjs URL - the official MCP client and a call that takes its time:
// progress while it runs, and what is left of it when it is cancelled
//
// Prints TAP.  How long a cancel took is a comment in it, and ten times of what
// is promised a test.  The engine must be on this host: its processes are
// looked for in /proc.
import assert from "node:assert/strict";
import { randomInt, randomUUID } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from
  "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { ErrorCode } from "@modelcontextprotocol/sdk/types.js";
import { STRUCTURED, until as untilIn, wanted } from "./server.mjs";
import { runSteps } from "./tap.mjs";

const LIMIT_MS = 120_000;
const POLL_MS = 5;
const GONE_MS = 10 * 100;
const TIMEOUT_MS = 4_000; // of a client that does not wait for the end

const [url] = wanted("URL");

const client = new Client({ name: "live", version: "1" });
const transport = new StreamableHTTPClientTransport(new URL(url));
const identifier = `live-${randomUUID().slice(0, 8)}`;
const tag = randomInt(100_000, 1_000_000); // others may test on this host, too
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
    _meta: STRUCTURED,
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

const until = (check) => untilIn(String(check), check, LIMIT_MS, POLL_MS);

// Processes of this host, sandboxes' included, with this command line.
function onHost(pattern) {
  return readdirSync("/proc").filter((pid) => {
    try {
      return /^\d+$/.test(pid) && pattern.test(
        readFileSync(`/proc/${pid}/cmdline`, "utf8").replaceAll("\0", " "));
    } catch {
      return false; // it ended meanwhile
    }
  });
}

// Calls shell, waits until it printed word and n processes with such a command
// line are there, cancels the call, and waits until its run has ended.  Gives
// the milliseconds until the last of them was gone.
async function cancelWhenItSaid(word, shell, pattern, n) {
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
  await until(() => going && onHost(pattern).length >= n);
  const began = performance.now();
  abort.abort("enough");
  await until(() => onHost(pattern).length === 0);
  const ms = performance.now() - began;
  await refused;
  await until(async () => await canceledRuns() === before + 1);
  console.log(`# cancel to the last process's end: ${ms.toFixed(1)} ms`);
  assert.ok(ms < GONE_MS);
}

// What still runs in the sandbox with this command line.
function alive(pattern) {
  return output(`for p in /proc/[0-9]*; do
    tr '\\0' ' ' <$p/cmdline 2>/dev/null; echo
  done | grep -E '${pattern}' || :`);
}

// A run is on the list a moment after it began.
async function newestRun() {
  const { structuredContent } = await client.callTool({
    name: "list_runs", arguments: { identifier, limit: 1 }, _meta: STRUCTURED,
  });
  return structuredContent.runs[0];
}

async function endOfNewestRun() {
  const { run_id } = await newestRun();
  const { structuredContent } = await client.callTool({
    name: "get_run", arguments: { run_id, wait_ms: 45_000 }, _meta: STRUCTURED,
  });
  return structuredContent;
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
    await cancelWhenItSaid("go", `
      sleep 91001.${tag} &
      setsid sleep 91002.${tag} &
      (setsid sh -c 'sleep 91003.${tag} & exec sleep 91004.${tag}' &)
      trap '' TERM INT HUP
      echo go; sleep 91005.${tag}; sleep 91006.${tag}`,
      new RegExp(`^sleep 9100\\d.${tag}`), 4);
    assert.equal(await alive("[s]leep 9100"), "");
  }],
  ["a cancel ends a program that prints without end", async () => {
    await cancelWhenItSaid(
      "91007", `exec yes 91007.${tag}`, new RegExp(`^yes 91007.${tag}`), 1);
    assert.equal(await alive("[y]es 91007"), "");
  }],
  ["a client's time-out in the middle of a run leaves what it printed",
    async () => {
      const seen = [];
      const ended = call("for i in $(seq 60); do echo line $i; sleep 1; done", {
        timeout: TIMEOUT_MS,
        onprogress: (progress) => seen.push(progress.message),
      });
      await assert.rejects(ended, { code: ErrorCode.RequestTimeout });
      assert.ok(seen.some((message) => message?.includes("line 2")), seen);
      const run = await endOfNewestRun();
      assert.equal(run.state, "canceled");
      assert.equal(run.end_reason, "canceled");
      assert.match(run.commands[0].stdout, /^line 1\nline 2\n(line \d+\n)*$/);
      assert.doesNotMatch(run.commands[0].stdout, /line 60/);
    }],
  ["a client that just hangs up leaves the run alone", async () => {
    const before = await newestRun();
    const gone = new AbortController();
    const impatient = new Client({ name: "impatient", version: "1" });
    const carrier = new StreamableHTTPClientTransport(new URL(url), {
      fetch: (input, init) => fetch(input, { ...init, signal: gone.signal }),
    });
    await impatient.connect(carrier);
    const ended = impatient.callTool({
      name: "run_sandbox",
      arguments: {
        identifier, commands: [{ shell: `sleep 3.${tag}; echo on` }],
      },
    }).catch(() => {});
    await until(() => onHost(new RegExp(`^sleep 3.${tag}`)).length > 0);
    gone.abort();
    await impatient.close();
    await ended;
    await until(async () => (await newestRun()).run_id !== before.run_id);
    const run = await endOfNewestRun();
    assert.equal(run.state, "completed");
    assert.equal(run.commands[0].stdout, "on\n");
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
