// official.mjs URL BUILD - the official clients, each in the revisions it speaks
//
// Prints TAP.  All kinds at once, each with a sandbox of its own; what they are
// told is read as a model reads it, from the text.
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { KINDS, SSE_KINDS, hasSession } from "./drivers.mjs";
import { until, wanted } from "./server.mjs";
import { runGroups } from "./tap.mjs";

const TEN = [
  "run_sandbox", "delete_sandbox", "restart_sandbox", "initialize_sandbox",
  "execute_code", "stop_sandbox", "get_run", "list_runs", "list_sandboxes",
  "control_run",
];
const RUN_ID = /[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/;
const UNTIL_GO =
  "echo first; until [ -e /tmp/go ]; do sleep 0.02; done; echo last";

const [url, build] = wanted("URL", "BUILD");

// The run's record, as a person sees it.
async function record(runId) {
  const answer = await fetch(new URL(`/mcp/runs/${runId}`, url));
  assert.equal(answer.status, 200);
  return answer.json();
}

function stepsOf(kind) {
  const identifier = `official-${randomUUID().slice(0, 8)}`;
  const hasSessions = hasSession(kind);
  let d;

  const run = (shell, options = {}, more = {}) => d.text("run_sandbox",
    { identifier, commands: [{ shell }], options }, more);

  // The id of this sandbox's run that is in this state.
  const runIn = (state) => until(`a run ${state}`, async () => RUN_ID.exec(
    await d.text("list_runs", { identifier, state, limit: 1 }))?.[0]);

  return [
    ["it connects, and speaks its revision", async () => {
      d = await kind.open(url, { build });
      assert.equal(d.revision, kind.revision);
      assert.equal(d.client.getServerVersion().name, "mcp-sandboxd");
      assert.equal(d.sessionId() !== undefined, hasSessions);
    }],
    ["all tools are listed", async () => {
      const tools = await d.tools();
      const names = tools.map(({ name }) => name);
      for (const name of TEN) assert.ok(names.includes(name), name);
      for (const { name, description, inputSchema } of tools) {
        assert.ok(description.length > 0, name);
        assert.equal(inputSchema.type, "object", name);
      }
    }],
    ["a command's output and exit code are in the text", async () => {
      const text = await run("echo out; echo err >&2; exit 7");
      assert.match(text, /^out$/m);
      assert.match(text, /^err$/m);
      assert.match(text, /exit code 7/);
    }],
    ["a wrong argument is an error that names it", async () => {
      const { isError, content } = await d.call("run_sandbox",
        { identifier, commands: [{ command: "true" }] });
      assert.equal(isError, true);
      assert.match(content[0].text, /unknown argument commands\[0\]\.command/);
    }],
    ["progress brings output while the call goes on", async () => {
      const seen = [];
      const ended = run(UNTIL_GO, { await_timeout_ms: 60_000 }, {
        onprogress: (progress) => seen.push(progress),
      });
      ended.catch(() => {}); // it may fail before it is waited for
      await until("the first line", () => seen.some(({ message }) =>
        kind.revision < "2025-03-26" || message?.includes("first")));
      await run("touch /tmp/go");
      assert.match(await ended, /^first\nlast$/m);
      for (let i = 1; i < seen.length; i++)
        assert.ok(seen[i].progress > seen[i - 1].progress);
      await run("rm /tmp/go");
    }],
    ["a call that is aborted ends its run", async () => {
      const abort = new AbortController();
      const refused = assert.rejects(run(UNTIL_GO,
        { await_timeout_ms: 60_000 }, { signal: abort.signal }));
      const id = await runIn("running");
      abort.abort("enough");
      await refused;
      await until("its end", async () =>
        (await record(id)).state === "canceled");
    }],
    ["what outlives its wait is told where to ask", async () => {
      const text = await run(UNTIL_GO, { await_timeout_ms: 200 });
      assert.match(text, /get_run/);
      const [run_id] = RUN_ID.exec(text);
      await run("touch /tmp/go");
      assert.match(await d.text("get_run", { run_id, wait_ms: 45_000 }),
        /^first\nlast$/m);
    }],
    ["a file of /artifacts can be fetched", async () => {
      const text = await run("echo kept >/artifacts/note.txt");
      assert.match(text, /note\.txt/);
      const [runId] = RUN_ID.exec(text);
      const answer = await fetch(
        new URL(`/artifacts/${identifier}/${runId}/note.txt`, url));
      assert.equal(await answer.text(), "kept\n");
    }],
    ["a run, its output and its file are resources", async () => {
      const [runId] = RUN_ID.exec(await run(
        "echo said; echo kept >/artifacts/note.txt"));
      const base = `sandbox://runs/${runId}`;
      const { resources } = await d.client.listResources();
      assert.ok(resources.some(({ uri }) => uri === base));
      const { resourceTemplates } = await d.client.listResourceTemplates();
      assert.ok(resourceTemplates.length >= 3);
      const read = async (uri) =>
        (await d.client.readResource({ uri })).contents[0].text;
      assert.equal(JSON.parse(await read(base)).state, "completed");
      assert.match(await read(`${base}/output`), /^said$/m);
      assert.equal(await read(`${base}/artifacts/note.txt`), "kept\n");
      // SDK 2 makes one of the two codes that mean it.
      await assert.rejects(read(`${base}/artifacts/none`),
        ({ code }) => [-32002, -32602].includes(code));
    }],
    ["prompts are listed, filled in and completed", async () => {
      const { prompts } = await d.client.listPrompts();
      assert.ok(prompts.some(({ name }) => name === "run_code"));
      const { messages } = await d.client.getPrompt({ name: "run_code",
        arguments: { language: "python", code: "print(6 * 7)" } });
      assert.ok(messages[0].content.text.includes("print(6 * 7)"));
      const { completion } = await d.client.complete({
        ref: { type: "ref/prompt", name: "run_code" },
        argument: { name: "language", value: "py" } });
      assert.deepEqual(completion.values, ["python"]);
    }],
    ["another connection has the same sandbox", async () => {
      await run("echo stays >/workspace/note");
      const other = await kind.open(url, { build });
      assert.match(await other.text("run_sandbox",
        { identifier, commands: [{ shell: "cat /workspace/note" }] }),
      /^stays$/m);
      await other.close();
    }],
    ...!hasSessions ? [] : [["a session is taken up again", async () => {
      const sessionId = d.sessionId();
      await d.close();
      d = await kind.open(url, { build, sessionId });
      assert.equal(d.sessionId(), sessionId);
      assert.match(await run("cat /workspace/note"), /^stays$/m);
    }]],
    ["it ends", async () => {
      await d.call("delete_sandbox", { identifier });
      if (hasSessions) await d.transport.terminateSession();
      await d.close();
    }],
  ];
}

await runGroups([...KINDS, ...SSE_KINDS].map((kind) => [kind.name, stepsOf(kind)]));
