// drivers.mjs - the official clients, each kind with what tests ask of it
//
// A kind is {name, open(url, how)}; open connects and gives a driver:
//   revision             what was negotiated
//   tools()              all of the list
//   call(name, arguments, options)
//                        the result of tools/call; options are the client's:
//                        timeout, signal, onprogress
//   text(name, arguments, options)
//                        the text of its one text block; a refusal throws
//   close()              without a word about the session
//   sessionId()          where there are sessions
// how: {sessionId} to go on with a session.
//
// SDK 1 offers its newest revision always; the transport says another in its
// place, as a client of that time would, and the SDK goes on in that.
import assert from "node:assert/strict";
import * as two from "@modelcontextprotocol/client";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from
  "@modelcontextprotocol/sdk/client/streamableHttp.js";

export const LIMIT_MS = 60_000;
const WHO = { name: "official", version: "1" };

// The class of transport, with a revision of its own in initialize.
function saying(Transport, revision) {
  return class extends Transport {
    send(message, options) {
      return super.send(message.method !== "initialize" ? message : {
        ...message,
        params: { ...message.params, protocolVersion: revision },
      }, options);
    }
  };
}

function driver(client, transport, callTool) {
  const self = {
    client, transport,
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
      return callTool({ name, arguments: args },
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

function sdk1(revision) {
  return {
    name: `SDK 1, ${revision}`, revision,
    async open(url, how = {}) {
      const client = new Client(WHO);
      const Transport = saying(StreamableHTTPClientTransport, revision);
      const transport = new Transport(new URL(url), how);
      await client.connect(transport, { timeout: LIMIT_MS });
      if (how.sessionId !== undefined) // it did not initialize
        transport.setProtocolVersion(revision);
      return { ...driver(client, transport, (params, options) =>
        client.callTool(params, undefined, options)),
      revision: transport.protocolVersion };
    },
  };
}

function sdk2(mode, revision) {
  return {
    name: `SDK 2, ${mode}`, revision,
    async open(url, how = {}) {
      const client = new two.Client(WHO, { versionNegotiation: { mode } });
      const transport =
        new two.StreamableHTTPClientTransport(new URL(url), how);
      await client.connect(transport, { timeout: LIMIT_MS });
      if (how.sessionId !== undefined)
        transport.setProtocolVersion(revision);
      return { ...driver(client, transport, (params, options) =>
        client.callTool(params, options)),
      revision: client.getNegotiatedProtocolVersion() };
    },
  };
}

// From 2026-07-28 on there are none.
export const hasSession = ({ revision }) => revision < "2026";

// Whether the client takes an answer up again whose connection it lost.
export const takesUp = ({ revision }) => revision === "2025-11-25";

export const KINDS = [
  sdk1("2024-11-05"),
  sdk1("2025-03-26"),
  sdk1("2025-06-18"),
  sdk1("2025-11-25"),
  sdk2("legacy", "2025-11-25"),
  sdk2("auto", "2026-07-28"),
];
