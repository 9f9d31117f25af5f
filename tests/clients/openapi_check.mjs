// openapi_check.mjs - a document of OpenAPI 3.1 against a server
//
// Each operation is asked for once as it is meant, once by each role, and once
// with each part missing, unknown or malformed; ajv holds each answer against
// the schema of its status.  What is found is a list of lines; none: the
// document says what the server does.
//
//   checkDocument(doc)        its own form: OpenAPI's and JSON Schema's
//   checkServer(doc, ground)  the server
//
// The ground:
//   send(method, path, headers, body)  {status, headers, bytes}
//   tokens          {role: token}
//   value(op, name) a value of that parameter there is something for, or
//                   undefined: what the document says is enough
//   fresh(op)       {params, body} for one request that changes something, or
//                   undefined: the same can be asked again and again
//   unknown(name)   a value of a parameter of a path that nothing is there for
import Ajv2020 from "ajv/dist/2020.js";
import addFormats from "ajv-formats";
import { Validator } from "@seriousme/openapi-schema-validator";

const METHODS = ["get", "put", "post", "delete", "patch"];
const PROBLEM = "application/problem+json";

// ---- the document alone

export async function checkDocument(doc) {
  const found = [];
  const verdict = await new Validator().validate(structuredClone(doc));
  if (!verdict.valid) {
    const errors = typeof verdict.errors === "string" ?
      [{ message: verdict.errors }] : verdict.errors;
    for (const e of errors.slice(0, 5))
      found.push(`OpenAPI 3.1: ${e.instancePath ?? ""} ${e.message}`);
  }
  try {
    const ajv = compiler(doc);
    for (const name of Object.keys(doc.components?.schemas ?? {}))
      ajv.compile({ $ref: `doc#/components/schemas/${name}` });
    each(doc, (at, o) => {
      if (at.at(-1) === "schema") ajv.compile(inDocument(o));
    });
  } catch (error) {
    return [...found, `JSON Schema: ${error.message}`];
  }
  for (const { op, id } of operations(doc)) {
    if (id === undefined) found.push("an operation has no operationId");
    for (const [type, media] of Object.entries(op.requestBody?.content ?? {}))
      if (media.example !== undefined)
        found.push(...judgeValue(doc, media.schema, media.example)
          .map((e) => `${id}: its example of ${type}: ${e}`));
    for (const [status, one] of Object.entries(op.responses ?? {}))
      for (const media of Object.values(follow(doc, one).content ?? {}))
        if (media.example !== undefined)
          found.push(...judgeValue(doc, media.schema, media.example)
            .map((e) => `${id}: its example of ${status}: ${e}`));
  }
  return found;
}

function each(o, visit, at = []) {
  if (o === null || typeof o !== "object") return;
  visit(at, o);
  for (const [key, value] of Object.entries(o)) each(value, visit, [...at, key]);
}

// References of the document, as ajv finds them in it.
function inDocument(schema) {
  return JSON.parse(JSON.stringify(schema).replaceAll('"$ref":"#/',
    '"$ref":"doc#/'));
}

const compilers = new WeakMap();

function compiler(doc) {
  let ajv = compilers.get(doc);
  if (ajv === undefined) {
    ajv = new Ajv2020({ strict: true, strictRequired: false,
      allowUnionTypes: true, allErrors: true, validateFormats: true });
    addFormats(ajv);
    ajv.addVocabulary(["components"]);
    ajv.addSchema({ $id: "doc", components: inDocument(doc.components ?? {}) });
    compilers.set(doc, ajv);
  }
  return ajv;
}

const compiled = new WeakMap();

function judgeValue(doc, schema, value) {
  let validate = compiled.get(schema);
  if (validate === undefined) {
    validate = compiler(doc).compile(inDocument(schema));
    compiled.set(schema, validate);
  }
  return validate(value) ? [] : validate.errors.slice(0, 3).map((e) =>
    `${e.instancePath} ${e.message} ${JSON.stringify(e.params)}`);
}

function follow(doc, o) {
  while (o?.$ref !== undefined)
    o = o.$ref.slice(2).split("/").reduce((at, part) => at?.[part], doc);
  return o;
}

function operations(doc) {
  return Object.entries(doc.paths ?? {}).flatMap(([path, item]) =>
    METHODS.filter((m) => item[m] !== undefined).map((method) => ({
      path, method, op: item[method], id: item[method].operationId,
      params: (item[method].parameters ?? []).map((p) => follow(doc, p)) })));
}

// ---- values

// A small one that the schema says is good.
function someValue(doc, schema) {
  let s = follow(doc, schema) ?? {};
  if (s.anyOf !== undefined) s = follow(doc, s.anyOf[0]);
  if (s.const !== undefined || s.enum !== undefined)
    return s.const ?? s.enum[0];
  switch ([s.type].flat()[0]) {
  case "integer": case "number":
    return s.minimum ?? 0;
  case "boolean":
    return true;
  case "string":
    return s.pattern === undefined ? "x".repeat(s.minLength ?? 0) :
      ["abc", "-30m", "https://hooks.example/x"].find((t) =>
        new RegExp(s.pattern, "u").test(t));
  case "array":
    return (s.minItems ?? 0) === 0 ? [] : [someValue(doc, s.items)];
  default:
    return Object.fromEntries((s.required ?? []).map((k) =>
      [k, someValue(doc, s.properties[k])]));
  }
}

// ---- requests

class Check {
  constructor(doc, ground) {
    this.doc = doc;
    this.ground = ground;
    this.found = [];
    this.seen = new Map(); // operation: statuses it answered with
    this.sent = 0;
  }

  report(where, text) {
    const line = `${where}: ${text}`;
    if (!this.found.includes(line)) this.found.push(line);
  }

  // One request; want says which statuses are right, in words.
  async ask(o, what, { params = {}, query = [], headers = {}, body, token,
    method = o.method, path }, want, isRight) {
    const target = (path ?? this.fill(o, params)) + (query.length === 0 ? "" :
      "?" + query.map(([k, v]) => `${k}=${v}`).join("&"));
    const h = { ...headers };
    if (token !== undefined) h.authorization = `Bearer ${token}`;
    const where = `${o.id} (${method} ${target.slice(0, 150)}), ${what}`;
    this.sent++;
    const answer = await this.ground.send(method.toUpperCase(), target, h, body);
    if (!isRight(answer.status))
      this.report(where, `answered with ${answer.status}, wanted ${want}: ` +
        answer.bytes.toString().slice(0, 200));
    if (method === o.method) this.judge(o, where, answer);
    return answer;
  }

  fill(o, params) {
    return o.path.replaceAll(/\{([^}]*)\}/g, (_, name) => {
      const value = String(params[name] ?? this.good(o, name));
      return value.split("/").map(encodeURIComponent).join("/");
    });
  }

  // A value of a parameter that something is there for.
  good(o, name) {
    const p = o.params.find((q) => q.name === name);
    return this.ground.value(o.id, name) ?? someValue(this.doc, p.schema);
  }

  // An answer against what the document says of its status.
  judge(o, where, { status, headers, bytes }) {
    const said = follow(this.doc, o.op.responses?.[String(status)]);
    if (!this.seen.has(o.id)) this.seen.set(o.id, new Set());
    this.seen.get(o.id).add(String(status));
    if (status >= 500)
      this.report(where, `${status}: ${bytes.toString().slice(0, 300)}`);
    if (said === undefined) {
      this.report(where, `${status} is not among its responses`);
      return;
    }
    // One that is there at times only says so.
    for (const [name, header] of Object.entries(said.headers ?? {}))
      if (headers[name.toLowerCase()] === undefined &&
          header.required !== false)
        this.report(where, `${status} has no header ${name}`);
    this.judgeBody(where, status, said.content, headers, bytes);
  }

  judgeBody(where, status, content, headers, bytes) {
    const type = headers["content-type"];
    if (content === undefined) {
      if (bytes.length > 0)
        this.report(where, `${status} has a body, and is said to have none`);
      return;
    }
    const media = content[type];
    if (media === undefined) {
      this.report(where, `${status} is ${type}, not ${Object.keys(content)}`);
      return;
    }
    if (!/json$/.test(type) || media.schema === undefined) return;
    let value;
    try {
      value = JSON.parse(bytes);
    } catch {
      this.report(where, `${status} is no JSON: ${bytes.subarray(0, 100)}`);
      return;
    }
    for (const e of judgeValue(this.doc, media.schema, value))
      this.report(where, `${status} is not as its schema says: ${e}`);
    if (type === PROBLEM && value.status !== status)
      this.report(where, `${status} says that it is ${value.status}`);
  }

  token(o) {
    return o.op["x-roles"] === undefined ? undefined :
      this.ground.tokens[o.op["x-roles"][0]];
  }

  // What a request of this operation needs to be a good one.
  async basis(o) {
    const fresh = await this.ground.fresh?.(o.id) ?? {};
    const query = o.params
      .filter((p) => p.in === "query" && (p.required ||
        this.ground.value(o.id, p.name) !== undefined))
      .map((p) => [p.name, encodeURIComponent(this.good(o, p.name))]);
    const media = Object.entries(o.op.requestBody?.content ?? {})[0];
    const body = fresh.body ?? (media === undefined ? undefined :
      this.encode(media[0], media[1].example ??
        someValue(this.doc, media[1].schema)));
    const headers = media === undefined ? {} : { "content-type": media[0] };
    return { params: fresh.params ?? {}, query, headers: { ...headers,
      ...fresh.headers }, body, token: this.token(o) };
  }

  encode(type, value) {
    return type.includes("json") ? JSON.stringify(value) : String(value);
  }
}

const isGood = (s) => s >= 200 && s < 400;
const isRefusal = (s) => s >= 400 && s < 500;
const is = (...list) => (s) => list.includes(s);

async function tryGood(c, o) {
  await c.ask(o, "as it is", await c.basis(o), "2xx", isGood);
}

async function tryQuery(c, o) {
  const others = o.op["x-other-parameters"] === true;
  const b = await c.basis(o);
  await c.ask(o, "a parameter it has not",
    { ...b, query: [...b.query, ["no-such-parameter", "1"]] },
    others ? "2xx" : "400", others ? isGood : is(400));
  for (const p of o.params.filter((q) => q.in === "query" && q.required))
    await c.ask(o, `without ${p.name}`,
      { ...b, query: b.query.filter(([k]) => k !== p.name) }, "4xx",
      isRefusal);
}

async function tryPath(c, o) {
  for (const p of o.params.filter((q) => q.in === "path")) {
    const b = await c.basis(o);
    const unknown = c.ground.unknown(p.name);
    await c.ask(o, `${p.name} is bad`, { ...b,
      params: { ...b.params, [p.name]: "!" } }, "400 or 404", is(400, 404));
    if (unknown !== undefined && !c.ground.makes?.(o.id, p.name))
      await c.ask(o, `${p.name} that nothing is there for`, { ...b,
        params: { ...b.params, [p.name]: unknown } }, "404", is(404));
  }
}

async function tryBody(c, o) {
  for (const [type, media] of Object.entries(o.op.requestBody?.content ?? {})) {
    const b = await c.basis(o);
    const s = follow(c.doc, media.schema);
    const bad = type.includes("json") ? ["{", "[]",
      ...(s.additionalProperties === false ? ['{"no-such-member":1}'] : [])] :
      [...(s.minLength > 0 ? [""] : []),
        ...(s.maxLength === undefined ? [] : ["x".repeat(s.maxLength + 1)])];
    for (const body of bad)
      await c.ask(o, `its body is ${body.slice(0, 20)}`, { ...b, body }, "4xx",
        isRefusal);
  }
}

async function tryConditions(c, o) {
  const takes = (name) => o.params.some((p) => p.in === "header" &&
    p.name === name);
  if (takes("If-Match")) {
    for (const [tag, want] of [['"stale"', 412], ["unquoted", 400],
      ['W/"stale"', 412]]) {
      const b = await c.basis(o);
      await c.ask(o, `If-Match: ${tag}`, { ...b,
        headers: { ...b.headers, "if-match": tag } }, want, is(want));
    }
  }
  if (!takes("If-None-Match") || o.method !== "get") return;
  const b = await c.basis(o);
  const with_ = (headers) => ({ ...b, headers: { ...b.headers, ...headers } });
  const first = await c.ask(o, "as it is", b, "200", is(200));
  const tag = first.headers.etag;
  await c.ask(o, "If-None-Match with its ETag",
    with_({ "if-none-match": tag ?? '"none"' }), "304", is(304));
  await c.ask(o, "If-None-Match with another",
    with_({ "if-none-match": '"other"' }), "200", is(200));
  await c.ask(o, "If-Match with its ETag",
    with_({ "if-match": tag ?? '"none"' }), "200", is(200));
}

async function tryWho(c, o) {
  const roles = o.op["x-roles"];
  const b = await c.basis(o);
  if (roles === undefined) return;
  const open = o.op.security?.length === 0;
  const anon = { ...b, token: undefined };
  const first = await c.ask(o, "without a token", anon,
    open ? "2xx" : "401", open ? isGood : is(401));
  if (!open && first.headers["www-authenticate"] === undefined)
    c.report(o.id, "401 does not say where a token is to be had");
  await c.ask(o, "with a wrong token", { ...b, token: "mcps_wrong" },
    open ? "2xx" : "401", open ? isGood : is(401));
  for (const role of Object.keys(c.ground.tokens))
    if (!roles.includes(role))
      await c.ask(o, `as ${role}`, { ...b, token: c.ground.tokens[role] },
        "403", is(403));
    else if (o.method === "get" && role !== roles[0])
      await c.ask(o, `as ${role}`, { ...b, token: c.ground.tokens[role],
        query: c.ground.queryOf?.(o.id, role) ?? b.query }, "2xx", isGood);
}

// What a path does not take, and HEAD, which goes with GET.
async function tryMethods(c, path, ops) {
  const o = ops[0];
  const b = { token: c.token(o), params: (await c.basis(o)).params };
  const has = ops.map((one) => one.method);
  for (const method of METHODS) {
    if (has.includes(method)) continue;
    const answer = await c.ask(o, `${method} is not for it`,
      { ...b, method, body: method === "get" ? undefined : "" }, "405",
      is(405));
    const allow = (answer.headers.allow ?? "").split(", ");
    for (const m of has)
      if (m !== "get" && !allow.includes(m.toUpperCase()))
        c.report(path, `Allow lacks ${m}: ${answer.headers.allow}`);
  }
  if (!has.includes("get") || c.ground.isStream?.(o.id)) return;
  const get = ops.find((one) => one.method === "get");
  const basis = await c.basis(get);
  const answer = await c.ask(get, "HEAD", { ...basis, method: "head" },
    "what GET gets, or 405", (s) => isGood(s) || s === 405);
  if (answer.bytes.length > 0) c.report(path, "HEAD has a body");
}

// What it is said to answer with must be seen: all but what only a fault, a
// crowd or a full disk brings.
const NEED_NOT = ["409", "410", "413", "415", "406", "429", "431", "500",
  "503", "507"];

function checkSeen(c, o) {
  const seen = c.seen.get(o.id) ?? new Set();
  for (const status of Object.keys(o.op.responses ?? {}))
    if (!seen.has(status) && !NEED_NOT.includes(status) &&
        !c.ground.rare?.(o.id, status))
      c.report(o.id, `never answered with ${status}`);
}

export async function checkServer(doc, ground) {
  const c = new Check(doc, ground);
  const all = operations(doc);
  for (const o of all) {
    if (ground.isProtocol?.(o.id)) {
      await c.ask(o, "as it is", await c.basis(o), "2xx", isGood);
      await tryWho(c, o);
      continue;
    }
    for (const step of [tryGood, tryQuery, tryPath, tryBody, tryConditions,
      tryWho])
      await step(c, o);
    for (const more of await ground.more?.(o.id) ?? [])
      await c.ask(o, more.what, { ...await c.basis(o), ...more.request },
        more.want, is(...more.want));
    checkSeen(c, o);
  }
  for (const path of new Set(all.map((o) => o.path)))
    if (!all.some((o) => ground.isProtocol?.(o.id) && o.path === path))
      await tryMethods(c, path, all.filter((o) => o.path === path));
  return { found: c.found, sent: c.sent };
}
