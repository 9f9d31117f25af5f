// crash.mjs BUILD WORK - the official clients and a server that is killed
//
// Prints TAP.  One server for all kinds, killed by SIGKILL and started again
// on the same port; nobody connects anew.
import assert from "node:assert/strict";
import { KINDS, hasSession } from "./drivers.mjs";
import { freePort, startServer, wanted } from "./server.mjs";
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

const run = ({ d, identifier }, shell, options = {}, more = {}) =>
  d.text("run_sandbox", { identifier, commands: [{ shell }], options }, more);

await runSteps([
  ["all connect and leave a file", async () => {
    await start();
    await each(async (one) => {
      one.d = await one.kind.open(url);
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
