// crash.mjs BUILD WORK - the official clients and a server that is killed
//
// Prints TAP.  One server for all kinds, killed by SIGKILL and started again
// on the same port; nobody connects anew.
import assert from "node:assert/strict";
import { KINDS, hasSession, isPrimed, takesUp } from "./drivers.mjs";
import { freePort, startServer, until, wanted } from "./server.mjs";
import { runSteps } from "./tap.mjs";

const [build, work] = wanted("BUILD", "WORK");
const settings = { PORT: String(await freePort()) };
const url = `http://127.0.0.1:${settings.PORT}/mcp`;

let server;

async function start() {
  server = await startServer(build, work, "crash", settings);
}

async function kill() {
  server.child.kill("SIGKILL");
  await server.ended;
}

// What check comes to for every kind, by name.
async function each(check) {
  const outcomes = await Promise.allSettled(all.map(check));
  const bad = outcomes.flatMap(({ reason }, i) => reason === undefined
    ? [] : [`${all[i].kind.name}: ${reason.stack ?? reason}`]);
  assert.equal(bad.length, 0, bad.join("\n"));
}

const all = KINDS.map((kind, i) => ({ kind, identifier: `crash-${i}` }));

// Silent until its end, which says that it ran once.
const SLOW = "echo once >>times; sleep 8; grep -c once times";
const RUN_ID = /[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/;

const run = ({ d, identifier }, shell, options = {}, more = {}) =>
  d.text("run_sandbox", { identifier, commands: [{ shell }], options }, more);

// Of its newest run, as one asks whose answer is lost.
async function end({ d, identifier }) {
  const list = await d.text("list_runs", { identifier, limit: 1 });
  return d.text("get_run", { run_id: RUN_ID.exec(list)[0], wait_ms: 45_000 });
}

await runSteps([
  ["all connect and leave a file", async () => {
    await start();
    await each(async (one) => {
      one.d = await one.kind.open(url, { build });
      one.sessionId = one.d.sessionId();
      await run(one, "echo stays >note");
    });
  }],
  ["killed between two calls, it is as if nothing had been", async () => {
    await kill();
    await start();
    await each(async (one) => {
      assert.match(await run(one, "cat note"), /^stays$/m);
      assert.equal(one.d.sessionId(), one.sessionId);
    });
  }],
  ["killed in the middle of a call, the answer comes all the same",
    async () => {
      await each(async (one, i) => {
        const seen = [];
        const onprogress = (progress) => seen.push(progress);
        one.ended = run(one, SLOW, { await_timeout_ms: 60_000 }, {
          onresumptiontoken: (token) => seen.push(token),
          // Many programs do not ask for it; but without an id it is all
          // that tells that the call got there.
          ...(isPrimed(one.kind) && i % 2 === 1 ? {} : { onprogress }),
        });
        one.ended.catch(() => {}); // it may fail before it is waited for
        await until("something of the answer", () => seen.length > 0);
      });
      await kill();
      await start();
      await each(async (one) => {
        const text = takesUp(one.kind) ? await one.ended : await end(one);
        assert.match(text, /^1$/m);
      });
    }],
  ["they delete what they made, and end", async () => {
    await each(async ({ d, kind, identifier }) => {
      await d.call("delete_sandbox", { identifier });
      if (hasSession(kind)) await d.transport.terminateSession();
      await d.close();
    });
    server.child.kill();
    await server.ended;
  }],
]);
