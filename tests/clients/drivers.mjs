// drivers.mjs - the official clients, each kind with what tests ask of it
//
// A kind is {name, revision, way, open(url, how)}: way is what is between,
// "http", "sse", which is HTTP+SSE of 2024-11-05, or "stdio", which is the
// bridge; open connects to the MCP endpoint and gives a driver:
//   revision             what was negotiated
//   tools()              all of the list
//   call(name, arguments, options)
//                        the result of tools/call; options are the client's:
//                        timeout, signal, onprogress
//   text(name, arguments, options)
//                        the text of its one text block; a refusal throws
//   close()              without a word about the session
//   sessionId()          where there are sessions
// how: {sessionId} to go on with a session, {build} where the bridge is.
import assert from "node:assert/strict";
import * as two from "@modelcontextprotocol/client";
import * as stdioOfTwo from "@modelcontextprotocol/client/stdio";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { SSEClientTransport } from
  "@modelcontextprotocol/sdk/client/sse.js";
import { StdioClientTransport } from
  "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from
  "@modelcontextprotocol/sdk/client/streamableHttp.js";

export const LIMIT_MS = 60_000;
const WHO = { name: "official", version: "1" };

// SDK 1 offers its newest revision always; this says another in its place, as
// a client of that time would, and the SDK goes on in what is answered.
function saying(Transport, revision) {
  return class extends Transport {
    send(message, options) {
      return super.send(message.method !== "initialize" ? message : {
        ...message,
        params: { ...message.params, protocolVersion: revision },
      }, options);
    }

    setProtocolVersion(version) {
      this.negotiated = version;
      super.setProtocolVersion?.(version);
    }
  };
}

const SDK1 = {
  http: StreamableHTTPClientTransport,
  sse: SSEClientTransport,
  stdio: StdioClientTransport,
  transport: (Transport, revision) => saying(Transport, revision),
  newClient: () => new Client(WHO),
  call: (client, params, options) =>
    client.callTool(params, undefined, options),
  revisionOf: (client, transport) => transport.negotiated,
};

// Its transports as they are: with others it would not probe as programs do.
const SDK2 = {
  http: two.StreamableHTTPClientTransport,
  sse: two.SSEClientTransport,
  stdio: stdioOfTwo.StdioClientTransport,
  transport: (Transport) => Transport,
  newClient: (mode) =>
    new two.Client(WHO, { versionNegotiation: { mode } }),
  call: (client, params, options) => client.callTool(params, options),
  revisionOf: (client) => client.getNegotiatedProtocolVersion(),
};

function driver(sdk, client, transport, revision) {
  const self = {
    client, transport, revision,
    async tools() {
      const found = [];
      let cursor;
      do {
        const page = await client.listTools(
          cursor === undefined ? undefined : { cursor });
        found.push(...page.tools);
        cursor = page.nextCursor;
      } while (cursor !== undefined);
      return found;
    },
    call(name, args, options) {
      return sdk.call(client, { name, arguments: args },
        { timeout: LIMIT_MS, ...options });
    },
    async text(name, args, options) {
      const { content, isError } = await self.call(name, args, options);
      assert.notEqual(isError, true, JSON.stringify(content));
      const texts = content.filter(({ type }) => type === "text");
      assert.equal(texts.length, 1);
      return texts[0].text;
    },
    close: () => client.close(),
    sessionId: () => transport.sessionId,
  };
  return self;
}

// What each way's transport is made with.
const ARGUMENTS = {
  http: (url, { sessionId }) => [new URL(url), { sessionId }],
  sse: (url, { path }) => [new URL(path, url)],
  stdio: (url, { build }) => [{
    command: `${build}/mcp-sandboxd`, args: ["stdio"],
    env: { ...process.env, MCP_SANDBOXD_URL: url }, stderr: "inherit",
  }],
};

function kind(name, sdk, way, revision, { mode, path } = {}) {
  return {
    name, revision, way,
    async open(url, how = {}) {
      const client = sdk.newClient(mode);
      const Transport = sdk.transport(sdk[way], revision);
      const transport = new Transport(...ARGUMENTS[way](url, { path, ...how }));
      await client.connect(transport, { timeout: LIMIT_MS });
      const goesOn = how.sessionId !== undefined; // it did not initialize
      if (goesOn) transport.setProtocolVersion(revision);
      return driver(sdk, client, transport,
        goesOn ? revision : sdk.revisionOf(client, transport));
    },
  };
}

// Whether it has one that outlives its connection: that of HTTP+SSE is the
// connection, from 2026-07-28 on there are none, and the bridge's is its own.
export const hasSession = ({ way, revision }) =>
  way === "http" && revision < "2026";

// Whether the client is given an id for its answer before there is anything to
// say.  Others get one with the first progress that they asked for.
export const isPrimed = ({ way, revision }) =>
  way === "http" && revision === "2025-11-25";

// Whether the client, or the bridge for it, takes an answer up again whose
// connection was lost.
export const takesUp = ({ revision }) => revision < "2026";

export const KINDS = [
  ...["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"].map((revision) =>
    kind(`SDK 1, ${revision}`, SDK1, "http", revision)),
  kind("SDK 2, legacy", SDK2, "http", "2025-11-25", { mode: "legacy" }),
  kind("SDK 2, auto", SDK2, "http", "2026-07-28", { mode: "auto" }),
  ...["2024-11-05", "2025-11-25"].map((revision) =>
    kind(`SDK 1, stdio, ${revision}`, SDK1, "stdio", revision)),
  kind("SDK 2, stdio, auto", SDK2, "stdio", "2026-07-28",
    { mode: "auto" }),
];

const sse = (name, sdk, path, revision) => kind(
  `${name}, HTTP+SSE at ${path}, ${revision}`, sdk, "sse", revision,
  { path, mode: "legacy" });

// Apart: the connection is all they have, so that a killed server ends them.
export const SSE_KINDS = [
  sse("SDK 1", SDK1, "/sse", "2024-11-05"),
  sse("SDK 1", SDK1, "/mcp", "2024-11-05"),
  sse("SDK 1", SDK1, "/sse", "2025-11-25"),
  sse("SDK 2", SDK2, "/mcp", "2025-11-25"),
];
