// oauth.mjs BUILD WORK - a server from BUILD that takes tokens of a real
// authorization server, and the official MCP client that gets them by itself
//
// Prints TAP.  WORK is an empty directory for the server's data.
import assert from "node:assert/strict";
import { once } from "node:events";
import { readFileSync, readlinkSync, readdirSync } from "node:fs";
import http from "node:http";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { UnauthorizedError } from "@modelcontextprotocol/sdk/client/auth.js";
import { ClientCredentialsProvider } from
  "@modelcontextprotocol/sdk/client/auth-extensions.js";
import { StreamableHTTPClientTransport } from
  "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { startIssuer } from "./issuer.mjs";
import {
  LIMIT_MS, STRUCTURED, freePort, startServer, until, wanted,
} from "./server.mjs";
import { runSteps } from "./tap.mjs";

const [build, work] = wanted("BUILD", "WORK");
// Its own URL is what tokens are for, so the port must be known before.
const port = await freePort();
const base = `http://127.0.0.1:${port}`;
const url = `${base}/mcp`;
const issuer = await startIssuer(url);
const server = await startServer(build, work, "oauth",
  { PORT: String(port), OAUTH_ISSUER: issuer.url, OAUTH_AUDIENCE: url });

const bearer = (token) => ({ authorization: `Bearer ${token}` });
const get = (path, token) =>
  fetch(base + path, { headers: token === undefined ? {} : bearer(token) });
const whoami = async (token) => (await get("/api/v1/whoami", token)).json();
const status = async (token, path = "/api/v1/whoami") =>
  (await get(path, token)).status;

async function administer(method, path, body) {
  const token = await issuer.token("admin", "sandbox:admin");
  const answer = await fetch(`${base}/api/v1${path}`, {
    method, body: body && JSON.stringify(body),
    headers: { ...bearer(token), "content-type": "application/json" } });
  assert.ok(answer.ok, `${method} ${path}: ${await answer.clone().text()}`);
}

async function refused(token) {
  const answer = await get("/api/v1/whoami", token);
  return [answer.status, (await answer.json()).error.message];
}

async function runs(authProvider) {
  const client = new Client({ name: "oauth", version: "1" });
  await client.connect(
    new StreamableHTTPClientTransport(new URL(url), { authProvider }));
  const { structuredContent } = await client.callTool({
    name: "run_sandbox",
    arguments: { identifier: "oauth", commands: [{ shell: "echo $((6*7))" }],
      options: { await_completion: true, await_timeout_ms: LIMIT_MS } },
    _meta: STRUCTURED,
  });
  await client.callTool(
    { name: "delete_sandbox", arguments: { identifier: "oauth" } });
  await client.close();
  return structuredContent.final.commands[0].stdout;
}

// A person's browser: follows redirects with its cookies until it is sent
// back to the client.
async function browse(start) {
  const cookies = new Map();
  for (let at = new URL(start); ;) {
    // fetch of Node.js 18 as Debian has it cannot tell cookies apart.
    const cookie = [...cookies].map(([k, v]) => `${k}=${v}`).join("; ");
    const [answer] = await once(http.get(at, { headers: { cookie } }),
      "response");
    answer.resume();
    for (const line of answer.headers["set-cookie"] ?? []) {
      const [, k, v] = line.match(/^([^=]+)=([^;]*)/);
      cookies.set(k, v);
    }
    const { location } = answer.headers;
    assert.ok(location, `${at}: ${answer.statusCode}`);
    at = new URL(location, at);
    if (at.pathname === "/back") {
      assert.ok(at.searchParams.get("code"), at.search);
      return at.searchParams.get("code");
    }
  }
}

class Page { // what a client keeps of one person
  redirectUrl = "http://127.0.0.1/back";
  clientMetadata = { redirect_uris: ["http://127.0.0.1/back"] };
  clientInformation = () => ({ client_id: "page" });
  tokens = () => this.kept;
  saveTokens = (tokens) => { this.kept = tokens; };
  saveCodeVerifier = (verifier) => { this.verifier = verifier; };
  codeVerifier = () => this.verifier;
  redirectToAuthorization = async (to) => { this.code = await browse(to); };
}

function frontPid() {
  return readdirSync("/proc").find((pid) => {
    try {
      return /^\d+$/.test(pid) &&
        readlinkSync(`/proc/${pid}/exe`).endsWith("mcp-sandboxd-front") &&
        readFileSync(`/proc/${pid}/status`, "utf8")
          .includes(`PPid:\t${server.child.pid}\n`);
    } catch {
      return false;
    }
  });
}

await runSteps([
  ["a request without a token is led to the issuer", async () => {
    const answer = await get("/mcp");
    assert.equal(answer.status, 401);
    const challenge = answer.headers.get("www-authenticate");
    const where = challenge.match(/resource_metadata="([^"]+)"/)[1];
    assert.match(challenge, /scope="sandbox"/);
    assert.doesNotMatch(challenge, /error=/);
    assert.equal(where, `${base}/.well-known/oauth-protected-resource/mcp`);
    for (const at of [where, `${base}/.well-known/oauth-protected-resource`])
      assert.deepEqual(await (await fetch(at)).json(), {
        resource: url, authorization_servers: [issuer.url],
        scopes_supported: ["sandbox"], bearer_methods_supported: ["header"],
        resource_name: "mcp-sandboxd" });
    assert.equal(await status(undefined,
      "/.well-known/oauth-protected-resource/other"), 404);
  }],
  ["a tenant that is not there is none", async () => {
    const [code, text] = await refused(await issuer.token("es"));
    assert.equal(code, 403);
    assert.match(text, /names no tenant/);
  }],
  ["the scope for administration administers", async () => {
    await administer("POST", "/tenants", { name: "acme" });
    await administer("POST", "/tenants", { name: "globex" });
    const token = await issuer.token("es");
    const answer = await get("/api/v1/tenants", token);
    assert.equal(answer.status, 403);
    const challenge = answer.headers.get("www-authenticate");
    assert.match(challenge, /error="insufficient_scope"/);
    assert.match(challenge, /scope="sandbox:admin"/);
    assert.match(challenge, /resource_metadata="/);
    const admin = await issuer.token("admin", "sandbox:admin");
    assert.equal(await status(admin, "/mcp"), 403);
  }],
  ["tokens by ES256, RS256 and EdDSA say who calls", async () => {
    for (const [client, tenant] of
      [["es", "acme"], ["rs", "acme"], ["ed", "globex"]]) {
      const who = await whoami(await issuer.token(client));
      assert.equal(who.tenant, tenant);
      assert.equal(who.role, "user");
      assert.equal(who.subject, client);
      assert.equal(who.issuer, issuer.url);
      assert.equal(who.token_id, null);
      assert.ok(Date.parse(who.expires_at) > Date.now());
    }
  }],
  ["a token for another server is refused", async () => {
    const token =
      await issuer.token("es", "sandbox", "https://other.example/mcp");
    const [code, text] = await refused(token);
    assert.equal(code, 401);
    assert.match(text, /another server/);
  }],
  ["a changed token is refused", async () => {
    const token = await issuer.token("es");
    const [header, claims, signature] = token.split(".");
    const other = Buffer.from(JSON.stringify({
      ...JSON.parse(Buffer.from(claims, "base64url")), tenant: "globex" }))
      .toString("base64url");
    const [code, text] = await refused(`${header}.${other}.${signature}`);
    assert.equal(code, 401);
    assert.match(text, /signature/);
  }],
  ["the official client gets a token by its secret and runs", async () => {
    const stdout = await runs(new ClientCredentialsProvider({
      clientId: "es", clientSecret: "secret of es", scope: "sandbox",
      expectedIssuer: issuer.url }));
    assert.equal(stdout, "42\n");
  }],
  ["the official client signs a person in and runs", async () => {
    const page = new Page();
    const transport =
      new StreamableHTTPClientTransport(new URL(url), { authProvider: page });
    const client = new Client({ name: "oauth", version: "1" });
    await assert.rejects(client.connect(transport), UnauthorizedError);
    await transport.finishAuth(page.code);
    assert.equal((await whoami(page.kept.access_token)).subject, "alice");
    assert.equal(await runs(page), "42\n");
  }],
  ["a disabled tenant's tokens are refused at once", async () => {
    const token = await issuer.token("ed");
    assert.equal(await status(token), 200);
    await administer("PATCH", "/tenants/globex", { disabled: true });
    assert.equal(await status(token), 403);
    await administer("PATCH", "/tenants/globex", { disabled: false });
    assert.equal(await status(token), 200);
  }],
  ["tokens of the server's own are as good as before", async () => {
    const admin = await issuer.token("admin", "sandbox:admin");
    const answer = await fetch(`${base}/api/v1/tenants/acme/tokens`, {
      method: "POST", body: "{}",
      headers: { ...bearer(admin), "content-type": "application/json" } });
    const { token } = await answer.json();
    assert.equal((await whoami(token)).tenant, "acme");
    assert.equal((await whoami(token)).subject, null);
  }],
  ["new keys are asked for when a token names one, once", async () => {
    const before = await issuer.token("es");
    assert.equal(await status(before), 200);
    issuer.rotate();
    const asked = issuer.asked();
    const after = await issuer.token("es");
    const both = await Promise.all([status(after), status(after)]);
    assert.deepEqual(both, [200, 200]);
    assert.equal(issuer.asked(), asked + 1);
    assert.equal(await status(before), 401); // its key is gone
    assert.equal(await status(before), 401);
    assert.equal(issuer.asked(), asked + 1);
  }],
  ["keys stay while the issuer is away", async () => {
    const [first, second] =
      [await issuer.token("rs"), await issuer.token("ed")];
    issuer.away(true);
    assert.equal(await status(first), 200);
    assert.equal(await status(second), 200);
    issuer.away(false);
  }],
  ["a front that died gets them again", async () => {
    const token = await issuer.token("rs");
    process.kill(Number(frontPid()), "SIGKILL");
    await until("ready again", server.isReady);
    await until("keys again", async () => await status(token) === 200);
  }],
  ["the audit has the subject and the issuer", async () => {
    const admin = await issuer.token("admin", "sandbox:admin");
    const { audit } =
      await (await get("/api/v1/audit?limit=100", admin)).json();
    const row = audit.find((r) => r.what === "auth.oauth" && r.subject === "es");
    assert.equal(row.actor, "oauth:es");
    assert.equal(row.tenant, "acme");
    assert.equal(row.detail, issuer.url);
  }],
  ["it ends", async () => {
    server.child.kill();
    assert.equal(await server.ended, 0);
    await issuer.close();
  }],
]);
