// tasks.mjs URL - calls as tasks, by the official clients in both forms
//
// Prints TAP.  Of 2025-11-25 SDK 1 itself has them; SDK 2 leaves them to the
// package ext-tasks, which knows that form and that of 2026-07-28, and wants
// somebody to POST what the SDK cannot send.
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import {
  createTaskSessionFromClient, resultFromTaskOutcome,
} from "@modelcontextprotocol/ext-tasks/client";
import { CallToolResultSchema, CreateTaskResultSchema } from
  "@modelcontextprotocol/sdk/types.js";
import { KINDS, LIMIT_MS } from "./drivers.mjs";
import { until, wanted } from "./server.mjs";
import { runGroups } from "./tap.mjs";

const RUN_ID = /[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/;
const EXTENSION = "io.modelcontextprotocol/tasks";
const TTL_MS = 15 * 60_000;

const [url] = wanted("URL");

// {text(), cancel(), listed()} of a call that became a task.

async function taskOfSdk1({ client }, name, args) {
  const { tasks } = client.experimental;
  const { task: { taskId } } = await client.request({
    method: "tools/call",
    params: { name, arguments: args, task: { ttl: TTL_MS } },
  }, CreateTaskResultSchema);
  return {
    text: async () => (await tasks.getTaskResult(
      taskId, CallToolResultSchema, { timeout: LIMIT_MS })).content[0].text,
    cancel: () => tasks.cancelTask(taskId),
    isListed: async () => (await tasks.listTasks()).tasks.some(
      (task) => task.taskId === taskId),
  };
}

async function post(request) {
  const { method, params } = request;
  const message = { jsonrpc: "2.0", id: randomUUID(), method, params };
  const answer = await fetch(url, {
    method: "POST",
    headers: {
      "Content-Type": "application/json", Accept: "application/json",
      "MCP-Protocol-Version": "2026-07-28", "Mcp-Method": method,
      "Mcp-Name": params.name ?? params.taskId,
    },
    body: JSON.stringify(message),
  });
  return answer.json();
}

const sessions = new Map();

function sessionOf({ client, revision }) {
  if (!sessions.has(client))
    sessions.set(client, createTaskSessionFromClient(client, {
      endpointId: "test", ...(revision < "2026" ? {} : {
        rawDispatch: post,
        v2RequestFraming: {
          protocolVersion: revision,
          clientInfo: { name: "tasks", version: "1" },
          clientCapabilities: { extensions: { [EXTENSION]: {} } },
        },
      }),
    }));
  return sessions.get(client);
}

async function taskOfExtension(d, name, args) {
  const execution = await sessionOf(d).callTool(name, args,
    { declaration: { name, taskSupport: "optional" },
      task: { preference: "require", retentionMs: TTL_MS } });
  assert.equal(execution.kind, "task");
  return {
    text: async () => resultFromTaskOutcome(
      (await execution.settle()).outcome).content[0].text,
    cancel: () => execution.cancel(),
  };
}

function stepsOf(kind, taskOf) {
  const identifier = `tasks-${randomUUID().slice(0, 8)}`;
  // Where the server decides, a call becomes a task when its wait is over.
  const run = (shell) => taskOf(d, "run_sandbox", { identifier,
    commands: [{ shell }], options: { await_timeout_ms: 100 } });
  let d;
  return [
    ["a call becomes a task whose result is the call's", async () => {
      d = await kind.open(url);
      const task = await run("echo said; sleep 2; exit 3");
      const text = await task.text();
      assert.match(text, /^said$/m);
      assert.match(text, /exit code 3/);
      if (task.isListed !== undefined) assert.ok(await task.isListed());
    }],
    ["a task that is cancelled ends its run", async () => {
      const task = await run("sleep 1000");
      const list = await until("the run", async () => {
        const text = await d.text("list_runs",
          { identifier, state: "running", limit: 1 });
        return RUN_ID.test(text) && text;
      });
      await task.cancel();
      await until("its end", async () => /canceled/.test(await d.text(
        "get_run", { run_id: RUN_ID.exec(list)[0] })));
      await d.call("delete_sandbox", { identifier });
      await sessions.get(d.client)?.close();
      await d.close();
    }],
  ];
}

const named = (name) => KINDS.find((kind) => kind.name === name);

await runGroups([
  [named("SDK 1, 2025-11-25"), taskOfSdk1],
  [named("SDK 2, legacy"), taskOfExtension],
  [named("SDK 2, auto"), taskOfExtension],
].map(([kind, taskOf]) => [kind.name, stepsOf(kind, taskOf)]));
