// openapi.mjs BUILD WORK - schema/openapi.json against a server from BUILD that
// has tenants, tokens, secrets, a sandbox, runs and artifacts
//
// The server's own copy of the document is what is checked; openapi_check.mjs
// makes the requests.  Prints TAP.  WORK is an empty directory for the server's
// data.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { Agent, request } from "node:http";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from
  "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { startIssuer } from "./issuer.mjs";
import { checkDocument, checkServer } from "./openapi_check.mjs";
import { LIMIT_MS, STRUCTURED, freePort, startServer, wanted } from "./server.mjs";
import { runSteps } from "./tap.mjs";

const SHOWN = 20;
const [build, work] = wanted("BUILD", "WORK");
const port = await freePort();
const base = `http://127.0.0.1:${port}`;
const issuer = await startIssuer(`${base}/mcp`);
const server = await startServer(build, work, "openapi",
  { PORT: String(port), WEBHOOKS: "true", OAUTH_ISSUER: issuer.url,
    OAUTH_AUDIENCE: `${base}/mcp` });

const agent = new Agent({ keepAlive: true, maxSockets: 4 });

// An answer that goes on without end is cut off: its beginning will do.
function ask(where, method, path, headers = {}, body = undefined) {
  return new Promise((done, fail) => {
    const r = request({ ...where, method, path, headers }, (answer) => {
      const parts = [];
      const end = () => done({ status: answer.statusCode,
        headers: answer.headers, bytes: Buffer.concat(parts) });
      answer.on("data", (part) => {
        parts.push(part);
        if (method === "GET" && !path.startsWith("/mcp/events") &&
            answer.headers["content-type"] === "text/event-stream") {
          end();
          r.destroy();
        }
      });
      answer.on("end", end);
      answer.on("error", end);
    });
    r.on("error", fail);
    r.setTimeout(LIMIT_MS, () => r.destroy(new Error(`${path}: no answer`)));
    r.end(body);
  });
}

const send = (...of) => ask({ host: "127.0.0.1", port, agent }, ...of);

async function administer(method, path, body) {
  const { status, bytes } = await ask(
    { socketPath: `${work}/data/admin.sock` }, method, path,
    { host: "localhost" }, body === undefined ? undefined :
      typeof body === "string" ? body : JSON.stringify(body));
  assert.ok(status < 300, `${method} ${path}: ${status} ${bytes}`);
  return JSON.parse(bytes);
}

// ---- what the server has

const have = { tokens: {} };
const box = new Client({ name: "openapi", version: "1" });

async function run(shell, identifier = "box") {
  const result = await box.callTool({ name: "run_sandbox", arguments: {
    identifier, commands: [{ shell }],
    options: { await_completion: true } }, _meta: STRUCTURED });
  assert.equal(result.structuredContent?.final?.state, "completed",
    JSON.stringify(result));
  return result.structuredContent.run_id;
}

// Of one that is not enabled: nothing of it changes by itself, and what is sent
// to it by a test comes nowhere.
async function addWebhook() {
  const { id } = await administer("POST", "/api/v1/tenants/acme/webhooks",
    { url: "https://127.0.0.1:9999/", enabled: false });
  return id;
}

// Of HTTP+SSE: have.sse stays open, and /messages?sessionId= is of it.
function openSse() {
  return new Promise((done, fail) => {
    have.sse = request({ host: "127.0.0.1", port, path: "/sse", headers: {
      accept: "text/event-stream",
      authorization: `Bearer ${have.tokens.user}` } }, (answer) => {
      answer.on("data", (part) => {
        have.sessionId ??= /sessionId=(\S+)/.exec(part)?.[1];
        if (have.sessionId !== undefined) done();
      });
      answer.on("error", () => {});
    });
    have.sse.on("error", fail);
    have.sse.end();
  });
}

async function settle() {
  for (const name of ["acme", "spare"])
    await administer("POST", "/api/v1/tenants",
      { name, quotas: { webhooks: 1000 } });
  for (const [role, tenant] of [["user", "acme"], ["admin", "-"],
    ["metrics", "-"]]) {
    const made = await administer("POST", `/api/v1/tenants/${tenant}/tokens`,
      { role });
    have.tokens[role] = made.token;
  }
  have.token = (await administer("POST", "/api/v1/tenants/spare/tokens", {})).id;
  await box.connect(new StreamableHTTPClientTransport(new URL(`${base}/mcp`),
    { requestInit: { headers: {
      authorization: `Bearer ${have.tokens.user}` } } }));
  await administer("PUT", "/api/v1/tenants/acme/secrets/API_KEY", "value");
  have.run = await run(
    "echo out; echo err >&2; echo file > /artifacts/a.txt; exit 0");
  have.event = /^id: (\S+)/m.exec((await send("GET",
    `/mcp/events?run_id=${have.run}`, { authorization:
      `Bearer ${have.tokens.user}` })).bytes)[1];
  have.webhook = await addWebhook();
  await openSse();
  have.mark = (await administer("GET", "/api/v1/audit/verify")).at;
}

// ---- what the check needs to know (openapi_check.mjs)

const NOBODYS = { tenant: "nobody", identifier: "nothing", secret: "nothing",
  token: "aaaaaaaaaaaa", run: "00000000-0000-4000-8000-000000000000",
  run_or_latest: "00000000-0000-4000-8000-000000000000",
  webhook: "00000000-0000-4000-8000-000000000000", path: "nothing/at/all" };

const INITIALIZE = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "initialize",
  params: { protocolVersion: "2025-11-25", capabilities: {},
    clientInfo: { name: "openapi", version: "1" } } });
const MCP_HEADERS = { accept: "application/json, text/event-stream",
  "content-type": "application/json" };
let made = 0;
const another = (what) => `${what}-${++made}`;

const values = {
  tenant: "acme", identifier: "box", secret: "API_KEY", run_or_latest: "latest",
  path: "a.txt", "resourceMetadataOf.path": "mcp",
  "getRunOutput.command": 0, "getRunOutput.stream": undefined,
  "events.follow": false, "events.kind": "run", "events.after": "0",
  "listAudit.tenant": undefined, "listAudit.what": undefined,
};

const fresh = {
  changeTenant: () => ({ params: { tenant: "spare" } }),
  deleteTenant: async () => {
    const { name } = await administer("POST", "/api/v1/tenants",
      { name: another("gone") });
    return { params: { tenant: name } };
  },
  addTenant: () => ({ body: JSON.stringify({ name: another("made") }) }),
  addToken: () => ({ params: { tenant: "spare" } }),
  revokeToken: async () => {
    const { id } = await administer("POST", "/api/v1/tenants/acme/tokens", {});
    return { params: { token: id } };
  },
  setSecret: () => ({ params: { secret: another("set") }, body: "value" }),
  deleteSecret: async () => {
    const { name } = await administer("PUT",
      `/api/v1/tenants/acme/secrets/${another("gone")}`, "value");
    return { params: { secret: name } };
  },
  listWebhooksOfTenant: () => ({ params: { tenant: "spare" } }),
  addWebhookOfTenant: () => ({ params: { tenant: "spare" } }),
  deleteWebhook: async () => ({ params: { webhook: await addWebhook() } }),
  deleteSandbox: async () => {
    await run("true", "gone"); // made when it is not there
    return { params: { identifier: "gone" } };
  },
  deleteRun: async () => ({ params: { run: await run("true") } }),
  mcp: () => ({ headers: MCP_HEADERS, body: INITIALIZE }),
  mcpPage: () => ({ headers: { accept: "text/html" } }),
  mcpEnd: async () => {
    const { headers } = await send("POST", "/mcp", { ...MCP_HEADERS,
      authorization: `Bearer ${have.tokens.user}` }, INITIALIZE);
    return { headers: { "mcp-session-id": headers["mcp-session-id"],
      "mcp-protocol-version": "2025-11-25" } };
  },
};
fresh.setSecretOfTenant = fresh.setSecret;
fresh.deleteSecretOfTenant = fresh.deleteSecret;
fresh.changeWebhook = fresh.deleteWebhook;
fresh.changeWebhookOfTenant = fresh.changeWebhook;
fresh.deleteWebhookOfTenant = fresh.deleteWebhook;
fresh.runDelete = fresh.deleteRun;
fresh.deleteSandboxOfTenant = fresh.deleteSandbox;

// Requests that a document cannot say of itself.
const more = {
  setSecret: () => [{ what: "of one that there is", want: [200],
    request: { params: { secret: "API_KEY" }, body: "other" } }],
  getArtifact: () => [
    { what: "a range", want: [206], request: { headers: { range: "bytes=1-2" } } },
    { what: "a range behind its end", want: [416],
      request: { headers: { range: "bytes=99-" } } }],
  runEvents: () => [{ what: "of an unknown run", want: [404],
    request: { query: [["run_id", NOBODYS.run]] } }],
  usage: () => [
    { what: "of an unknown tenant", want: [404],
      request: { query: [["tenant", "nobody"]], token: have.tokens.admin } },
    { what: "of all", want: [200],
      request: { query: [], token: have.tokens.admin } }],
};
more.setSecretOfTenant = more.setSecret;
for (const op of ["events", "listRuns", "runStats", "exportRuns",
  "listSandboxes"])
  more[op] = () => [{ what: "of an unknown tenant", want: [404],
    request: { query: [["tenant", "nobody"]] } }];

// What cannot be brought about here.
const RARE = ["setSecret 404", "listSecrets 404", "listWebhooks 404",
  "addWebhook 404", "mcp 202", "resourceMetadata 200",
  "resourceMetadata 404", "resourceMetadataOf 404"];

const ground = {
  send,
  get tokens() { return have.tokens; },
  value: (op, name) => {
    if (name === "run" || name === "run_id") return have.run;
    if (name === "webhook") return have.webhook;
    if (name === "token") return have.token;
    if (name === "last_event_id") return have.event;
    if (name === "sessionId") return have.sessionId;
    if (op === "verifyAudit" && name === "after") return have.mark.seq;
    if (op === "verifyAudit" && name === "hash") return have.mark.hash;
    return `${op}.${name}` in values ? values[`${op}.${name}`] : values[name];
  },
  fresh: async (op) => fresh[op]?.(),
  unknown: (name) => NOBODYS[name],
  makes: (op, name) => /^setSecret/.test(op) && name === "secret",
  isProtocol: (op) => /^mcp/.test(op),
  isStream: (op) => /[eE]vents$/.test(op),
  rare: (op, status) => RARE.includes(`${op} ${status}`),
  queryOf: (op, role) =>
    op === "events" && role === "user" ? [["follow", "false"]] : undefined,
  more: async (op) => [...await more[op]?.() ?? [],
    { what: "a Host that is not its own", want: [403, 421],
      request: { headers: { host: "evil.example" } } },
    { what: "Origin twice", want: [400],
      request: { headers: { origin: ["http://a.example", "http://b.example"] } } },
  ],
};

// ---- steps

let doc;

function none(found) {
  assert.ok(found.length === 0, `${found.length} differences:\n` +
    found.slice(0, SHOWN).join("\n"));
}

await runSteps([
  ["the server has what is to be asked for", settle],
  ["the document is served", async () => {
    const { status, bytes } = await send("GET", "/api/v1/openapi.json",
      { authorization: `Bearer ${have.tokens.metrics}` });
    assert.equal(status, 200);
    doc = JSON.parse(bytes);
  }],
  ["the document is one of OpenAPI 3.1", async () =>
    none(await checkDocument(doc))],
  ["the server does what the document says", async () => {
    const { found, sent } = await checkServer(doc, ground);
    console.log(`# ${sent} requests, ${Object.keys(doc.paths).length} paths`);
    none(found);
  }],
  ["the server ends", async () => {
    await box.close();
    have.sse.destroy();
    agent.destroy();
    server.child.kill();
    await server.ended;
    execFileSync(`${build}/mcp-sandboxd`,
      ["purge", "--yes"], { env: server.env, stdio: "ignore" });
    await issuer.stop?.();
  }],
]);
