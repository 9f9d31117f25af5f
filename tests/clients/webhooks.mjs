// webhooks.mjs BUILD WORK - what a server from BUILD sends to a webhook, as the
// official package standardwebhooks judges it
//
// The lines that docs/webhooks.md has for Node are run as they stand.  Prints
// TAP.  WORK is an empty directory for the server's data.
import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from
  "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { Webhook } from "standardwebhooks";
import { STRUCTURED, startServer, until, wanted } from "./server.mjs";
import { runSteps } from "./tap.mjs";

const [build, work] = wanted("BUILD", "WORK");

// ---- a receiver

const got = [];
const receiver = createServer((request, answer) => {
  const parts = [];
  request.on("data", (part) => parts.push(part));
  request.on("end", () => {
    got.push({ headers: request.headers,
      body: Buffer.concat(parts).toString() });
    answer.writeHead(204).end();
  });
});
await new Promise((done) => receiver.listen(0, "127.0.0.1", done));

// ---- a server

const server = await startServer(build, work, "webhooks",
  { WEBHOOKS: "true", WEBHOOK_ALLOW: "127.0.0.1", WEBHOOK_ALLOW_HTTP: "true" });
const { base } = server;

async function rest(method, path, body) {
  const answer = await fetch(`${base}/api/v1/webhooks${path}`,
    { method, body: body === undefined ? undefined : JSON.stringify(body) });
  assert.ok(answer.ok, `${method} ${path}: ${answer.status}`);
  return answer.json();
}

// ---- the lines of the page

function blockOfPage() {
  const page = readFileSync(fileURLToPath(
    new URL("../../docs/webhooks.md", import.meta.url)), "utf8");
  const blocks = [...page.matchAll(/^```js\n([^]*?)^```$/gm)];
  assert.equal(blocks.length, 1);
  return blocks[0][1];
}

// As a program: what is imported stands outside, the rest in a function.
async function verifierOfPage() {
  const lines = blockOfPage().split("\n");
  const isImport = (line) => line.startsWith("import ");
  const file = join(work, "verify.mjs");
  const from = pathToFileURL(
    createRequire(import.meta.url).resolve("standardwebhooks")).href;
  writeFileSync(file, [...lines.filter(isImport).map((line) =>
    line.replace('"standardwebhooks"', JSON.stringify(from))),
  "export function verify(secret, headers, body) {",
  ...lines.filter((line) => !isImport(line)), "}", ""].join("\n"));
  return (await import(pathToFileURL(file).href)).verify;
}

// ---- steps

let hook, verify;

await runSteps([
  ["the page's lines are a program", async () => {
    verify = await verifierOfPage();
  }],
  ["a run's end comes, and the package takes it", async () => {
    hook = await rest("POST", "",
      { url: `http://127.0.0.1:${receiver.address().port}/` });
    const client = new Client({ name: "webhooks", version: "1" });
    await client.connect(
      new StreamableHTTPClientTransport(new URL(`${base}/mcp`)));
    const result = await client.callTool({ name: "run_sandbox", arguments: {
      identifier: "box", commands: [{ shell: "true" }],
      options: { await_completion: true } }, _meta: STRUCTURED });
    const [one] = await until("delivery", () => got.length > 0 && got);
    const event = new Webhook(hook.secret).verify(one.body, one.headers);
    assert.equal(event.type, "run.ended");
    assert.equal(event.data.run_id, result.structuredContent.run_id);
    verify(hook.secret, one.headers, one.body);
    await client.callTool({ name: "delete_sandbox",
      arguments: { identifier: "box" } });
    await client.close();
  }],
  ["what was changed on its way is refused", () => {
    const { headers, body } = got[0];
    const id = "webhook-id", when = "webhook-timestamp";
    for (const [h, b] of [[headers, body.replace("run.ended", "run.Ended")],
      [{ ...headers, [id]: `${headers[id]}x` }, body],
      [{ ...headers, [when]: String(headers[when] - 1) }, body],
      [{ ...headers, "webhook-signature": "v1,AAAA" }, body]])
      assert.throws(() => verify(hook.secret, h, b), /signature/i);
    assert.throws(() => verify(`whsec_${"A".repeat(43)}=`, headers, body),
      /signature/i);
  }],
  ["another secret holds from the next on", async () => {
    const { secret } = await rest("PATCH", `/${hook.id}`, { new_secret: true });
    const before = got.length;
    assert.equal((await rest("POST", `/${hook.id}/test`)).taken, true);
    const one = await until("test", () => got.slice(before).find((g) =>
      JSON.parse(g.body).type === "webhook.test"));
    verify(secret, one.headers, one.body);
    assert.throws(() => verify(hook.secret, one.headers, one.body),
      /signature/i);
  }],
  ["the server ends", async () => {
    server.child.kill();
    await server.ended;
    receiver.closeAllConnections();
    receiver.close();
  }],
]);
