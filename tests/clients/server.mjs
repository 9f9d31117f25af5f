// server.mjs - a server of a program's own, and how it waits
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { createServer } from "node:net";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";

export const LIMIT_MS = 60_000;
// The _meta of a call whose result is for a program.
export const STRUCTURED = { "mcp-sandboxd/structured": true };

// The program's arguments, as many as it wants.
export function wanted(...names) {
  const given = process.argv.slice(2);
  if (given.length < names.length) {
    console.error(`usage: node ${process.argv[1]} ${names.join(" ")}`);
    process.exit(2);
  }
  return given;
}

// What check gives, once it gives something.
export async function until(what, check, limitMs = LIMIT_MS, pollMs = 20) {
  const end = Date.now() + limitMs;
  for (;;) {
    const value = await check();
    if (value) return value;
    assert.ok(Date.now() < end, `not in time: ${what}`);
    await sleep(pollMs);
  }
}

// For who must know it before the server listens.
export function freePort() {
  return new Promise((done) => {
    const s = createServer();
    s.listen(0, "127.0.0.1", () => {
      const { port } = s.address();
      s.close(() => done(port));
    });
  });
}

// Users are no matter here, and may be missing.
export async function startServer(build, work, name, settings) {
  const env = { ...process.env, PORT: "0", DATA_DIR: `${work}/data`,
    INSTANCE: `${name}-${process.pid}`, RUN_AS_FRONT: "", RUN_AS_WORKER: "",
    RUN_AS_KEYS: "", RUN_AS_COURIER: "", ...settings };
  const child = spawn(`${build}/mcp-sandboxd`, [],
    { stdio: ["ignore", "ignore", "pipe"], env });
  process.on("exit", () => child.kill());
  const server = { child, env,
    ended: new Promise((done) => child.on("exit", done)) };
  createInterface({ input: child.stderr }).on("line", (line) => {
    console.error(line);
    server.base ??= /listening on (http:\S+:\d+)/.exec(line)?.[1];
  });
  server.isReady = async () => {
    assert.equal(child.exitCode, null, "the server ended");
    return server.base !== undefined &&
      (await fetch(`${server.base}/readyz`).catch(() => ({}))).status === 200;
  };
  await until("a server that is ready", server.isReady);
  return server;
}
