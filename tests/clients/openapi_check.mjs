// openapi_check.mjs - a document of OpenAPI 3.1 against a server
//
// Knows nothing of the API but what the document says and what its ground
// gives: requests are made from the document, good ones and bad ones, and each
// answer is held against it.  What is found is a list of lines; none: the
// document says what the server does.
//
//   checkDocument(doc)           its own form: OpenAPI's and JSON Schema's
//   checkServer(doc, ground, o)  the server; o.only: these operationIds alone
//
// The ground:
//   send(method, path, headers, body)  {status, headers, bytes}
//   tokens          {role: token}
//   value(op, name) a value of that parameter there is something for, or
//                   undefined: what the document says is enough
//   fresh(op)       {params, body} for one request that changes something, or
//                   undefined: the same can be asked again and again
//   together(op, name)  parameters of the query that are sent together
//   isOpaque(op, name)  only the server makes values of that parameter
//   unknown(name)   a value of a parameter of a path that nothing is there for
import Ajv2020 from "ajv/dist/2020.js";
import addFormats from "ajv-formats";
import { Validator } from "@seriousme/openapi-schema-validator";

const METHODS = ["get", "put", "post", "delete", "patch"];
const SAFE = Number.MAX_SAFE_INTEGER;
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

function schemaOf(doc, schema) {
  const s = follow(doc, schema) ?? {};
  return s.anyOf !== undefined ? { ...schemaOf(doc, s.anyOf[0]) } : s;
}

function types(s) {
  return s.type === undefined ? [] : [s.type].flat();
}

// Some that the schema says are good, its bounds among them.
function goodValues(doc, schema) {
  const s = schemaOf(doc, schema);
  if (s.const !== undefined) return [s.const];
  if (s.enum !== undefined) return s.enum;
  switch (types(s)[0]) {
  case "integer": case "number": {
    const low = s.minimum ?? 0;
    const high = Math.min(s.maximum ?? low + 7, SAFE);
    return [...new Set([low, Math.min(low + 1, high), high])];
  }
  case "boolean":
    return [true, false];
  case "string":
    return goodTexts(s);
  case "array":
    return [[], goodValues(doc, s.items).slice(0, 1)]
      .filter((list) => list.length >= (s.minItems ?? 0));
  case "object":
    return goodObjects(doc, s);
  default:
    return [{}];
  }
}

function goodTexts(s) {
  if (s.format === "uuid") return ["00000000-0000-4000-8000-00000000abcd"];
  if (s.pattern !== undefined) {
    const fit = ["abc", "-30m", "acme-1", "00000000-0000-4000-8000-00000000abcd",
      "a".repeat(12), "0".repeat(64), "https://hooks.example/x"].filter((t) =>
      new RegExp(s.pattern, "u").test(t));
    return fit.slice(0, 1);
  }
  const low = s.minLength ?? 0;
  const high = Math.min(s.maxLength ?? low + 5, 1 << 17);
  return [...new Set([low, Math.max(low, 1), high])].map((n) => "x".repeat(n));
}

// The least, all, and each member's values one after the other.
function goodObjects(doc, s) {
  const must = s.required ?? [];
  const props = Object.entries(s.properties ?? {});
  const first = ([k, v]) => [k, goodValues(doc, v)[0]];
  const least = Object.fromEntries(
    props.filter(([k]) => must.includes(k)).map(first));
  const out = [least, Object.fromEntries(props.map(first))];
  for (const [k, v] of props) {
    for (const value of goodValues(doc, v)) out.push({ ...least, [k]: value });
    if (types(follow(doc, v)).includes("null")) out.push({ ...least, [k]: null });
  }
  return out;
}

// Texts of a parameter that the schema says are bad.
function badTexts(doc, schema) {
  const s = schemaOf(doc, schema);
  const out = [];
  switch (types(s)[0]) {
  case "integer":
    out.push("", "x", "1.5", "+1", "0x10", " 1", "1e3", "9".repeat(40));
    out.push(String((s.minimum ?? 0) - 1));
    if (s.maximum < SAFE) out.push(String(s.maximum + 1));
    break;
  case "boolean":
    out.push("maybe", "2");
    break;
  case "string":
    if (s.enum !== undefined) out.push("", "nonsense", s.enum[0] + "x");
    if (s.pattern !== undefined || s.format === "uuid") out.push("!", "");
    if (s.minLength > 0) out.push("x".repeat(s.minLength - 1));
    if (s.maxLength !== undefined) out.push("x".repeat(s.maxLength + 1));
    break;
  }
  return [...new Set(out)];
}

const OF_TYPES = { string: "text", integer: 7, number: 1.5, boolean: true,
  array: [1], object: { a: 1 }, null: null };

// Values that the schema says are bad, each with its reason.
function badValues(doc, schema) {
  const s = schemaOf(doc, schema);
  const allowed = types(follow(doc, schema));
  const out = Object.entries(OF_TYPES)
    .filter(([t]) => !allowed.includes(t) &&
      !(t === "integer" && allowed.includes("number")))
    .map(([t, v]) => [`a value of type ${t}`, v]);
  if (s.enum !== undefined) out.push(["a word it has not", "nonsense"]);
  if (s.pattern !== undefined) out.push(["no match", "!"]);
  if (s.maxLength !== undefined && s.enum === undefined)
    out.push(["one byte too long", "x".repeat(s.maxLength + 1)]);
  if (s.minimum !== undefined) out.push(["too small", s.minimum - 1]);
  if (s.maximum < SAFE) out.push(["too large", s.maximum + 1]);
  if (s.minItems > 0) out.push(["an empty list", []]);
  if (s.items !== undefined)
    for (const [why, value] of badValues(doc, s.items))
      out.push([`a list with ${why}`, [value]]);
  if (types(s).includes("object")) {
    if (s.additionalProperties === false)
      out.push(["a member it has not", { "no-such-member": 1 }]);
    for (const [k, v] of Object.entries(s.properties ?? {}))
      for (const [why, value] of badValues(doc, v))
        out.push([`${k}: ${why}`, { [k]: value }]);
  }
  return out;
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
    return this.ground.value(o.id, name) ?? goodValues(this.doc, p.schema)[0];
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
        goodValues(this.doc, media[1].schema)[0]));
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
  const { doc } = c;
  await c.ask(o, "as it is", await c.basis(o), "2xx", isGood);
  for (const p of o.params.filter((q) => q.in === "query"))
    for (const value of goodValues(doc, p.schema)) {
      if (c.ground.value(o.id, p.name) !== undefined ||
          c.ground.isOpaque?.(o.id, p.name)) continue;
      const b = await c.basis(o);
      b.query = [...b.query, [p.name, encodeURIComponent(value)]];
      await c.ask(o, `${p.name}=${String(value).slice(0, 40)} is good`, b,
        "2xx", isGood);
    }
  for (const p of o.params.filter((q) => q.in === "query" && !q.required)) {
    if (c.ground.value(o.id, p.name) === undefined) continue;
    const b = await c.basis(o);
    const less = c.ground.together?.(o.id, p.name) ?? [p.name];
    b.query = b.query.filter(([k]) => !less.includes(k));
    await c.ask(o, `without ${less}, which may be left out`, b, "2xx", isGood);
  }
  for (const [type, media] of Object.entries(o.op.requestBody?.content ?? {}))
    for (const value of goodValues(doc, media.schema)) {
      const b = await c.basis(o);
      if (o["x-body"] === "opaque" || c.ground.isOwnWord?.(o.id)) break;
      b.body = c.encode(type, c.ground.make?.(o.id, value) ?? value);
      await c.ask(o, `${String(b.body).slice(0, 100)} is good`, b, "2xx",
        isGood);
    }
}

async function tryQuery(c, o) {
  const queries = o.params.filter((p) => p.in === "query");
  const others = o.op["x-other-parameters"] === true;
  for (const p of queries) {
    const b = await c.basis(o);
    const rest = b.query.filter(([k]) => k !== p.name);
    for (const text of badTexts(c.doc, p.schema))
      await c.ask(o, `${p.name} is bad`, { ...b,
        query: [...rest, [p.name, encodeURIComponent(text)]] }, "4xx",
      isRefusal);
    if (p.required)
      await c.ask(o, `without ${p.name}`, { ...b, query: rest }, "4xx",
        isRefusal);
    const value = encodeURIComponent(c.good(o, p.name));
    if (others) continue;
    await c.ask(o, `${p.name} twice`, { ...b, query: [...rest,
      [p.name, value], [p.name, value]] }, "4xx", isRefusal);
    await c.ask(o, `${p.name} badly escaped`, { ...b, query: [...rest,
      [p.name, "%zz"]] }, "4xx", isRefusal);
  }
  for (const [k, v] of [["no-such-parameter", "1"], ["limitt", "1"]]) {
    const b = await c.basis(o);
    await c.ask(o, `a parameter it has not, ${k}`,
      { ...b, query: [...b.query, [k, v]] },
      others ? "2xx" : "400", others ? isGood : is(400));
  }
}

async function tryPath(c, o) {
  for (const p of o.params.filter((q) => q.in === "path")) {
    const b = await c.basis(o);
    for (const text of ["!", "%00", "x".repeat(200), "no such"])
      await c.ask(o, `${p.name} is bad`, { ...b,
        params: { ...b.params, [p.name]: text } }, "400 or 404", is(400, 404));
    const unknown = c.ground.unknown(p.name);
    if (unknown !== undefined && !c.ground.makes?.(o.id, p.name))
      await c.ask(o, `${p.name} that nothing is there for`, { ...b,
        params: { ...b.params, [p.name]: unknown } }, "404", is(404));
  }
}

async function tryBody(c, o) {
  for (const [type, media] of Object.entries(o.op.requestBody?.content ?? {})) {
    const b = await c.basis(o);
    const bad = (what, body) =>
      c.ask(o, `its body is ${what}`, { ...b, body }, "4xx", isRefusal);
    const s = schemaOf(c.doc, media.schema);
    if (!type.includes("json")) {
      if (s.minLength > 0) await bad("empty", "");
      if (s.maxLength !== undefined)
        await bad("one byte too long", "x".repeat(s.maxLength + 1));
      continue;
    }
    for (const text of ["{", "[]", "7", '"text"', "null", "{}{}", '{"a":1,"a":2}',
      "\u0000", "[".repeat(1000)])
      await bad(JSON.stringify(text.slice(0, 20)), text);
    if ((s.required ?? []).length > 0 || o.op.requestBody.required)
      await bad("an object without what is required", "{}");
    if (s.additionalProperties !== false) continue;
    const base = goodValues(c.doc, s)[0];
    for (const [why, value] of badValues(c.doc, s))
      if (typeof value === "object" && value !== null && !Array.isArray(value))
        await bad(why, JSON.stringify(
          { ...c.ground.make?.(o.id, base) ?? base, ...value }));
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

export async function checkServer(doc, ground, { only } = {}) {
  const c = new Check(doc, ground);
  const all = operations(doc).filter((o) =>
    only === undefined || only.includes(o.id));
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
      await tryMethods(c, path, operations(doc).filter((o) => o.path === path));
  return { found: c.found, sent: c.sent };
}
