// openapi_lies.mjs - what can be wrong in a document, one thing each
//
//   name   what it says that is not so
//   tell   changes a copy of the document
//   only   the operations to ask; undefined: the document alone shows it
//   shows  what is to be found of it
const schema = (doc, name) => doc.components.schemas[name];
const op = (doc, path, method = "get") => doc.paths[path][method];
const param = (doc, path, name) =>
  op(doc, path).parameters.find((p) => p.name === name);

export const lies = [
  { name: "an answer has one member more than its schema",
    tell: (d) => { delete schema(d, "Tenant").properties.state;
      schema(d, "Tenant").required = ["name"]; },
    only: ["getTenant"], shows: /additional properties.*state/ },
  { name: "an answer lacks a member",
    tell: (d) => { schema(d, "Whoami").properties.colour = { type: "string" };
      schema(d, "Whoami").required.push("colour"); },
    only: ["whoami"], shows: /required property.*colour/ },
  { name: "a member is of another type",
    tell: (d) => { schema(d, "Secret").properties.bytes =
      { type: "string" }; },
    only: ["getSecret"], shows: /bytes must be string/ },
  { name: "a member is never null",
    tell: (d) => { schema(d, "RunRecord").properties.error =
      { type: "string" }; },
    only: ["getRun"], shows: /error must be string/ },
  { name: "a word is none of its words",
    tell: (d) => { schema(d, "RunState").enum = ["queued", "running"]; },
    only: ["getRun"], shows: /state must be equal to one of/ },
  { name: "times have no milliseconds",
    tell: (d) => { schema(d, "Time").pattern = "^[^.]*Z$"; },
    only: ["listTokens"], shows: /created_at must match pattern/ },
  { name: "a bad status is missing",
    tell: (d) => { delete op(d, "/api/v1/tenants/{tenant}").responses[404]; },
    only: ["getTenant"], shows: /404 is not among its responses/ },
  { name: "a good status is missing",
    tell: (d) => { delete op(d, "/api/v1/secrets/{secret}", "put")
      .responses[201]; },
    only: ["setSecret"], shows: /201 is not among its responses/ },
  { name: "a status that never comes",
    tell: (d) => { op(d, "/api/v1/whoami").responses[203] =
      { description: "never" }; },
    only: ["whoami"], shows: /never answered with 203/ },
  { name: "a path that is not there",
    tell: (d) => { d.paths["/api/v1/nowhere"] =
      { get: { ...op(d, "/api/v1/whoami"), operationId: "nowhere" } }; },
    only: ["nowhere"], shows: /answered with 404, wanted 2xx/ },
  { name: "a method that is not there",
    tell: (d) => { d.paths["/api/v1/whoami"].post =
      { ...op(d, "/api/v1/whoami"), operationId: "whoamiPost" }; },
    only: ["whoamiPost"], shows: /answered with 405, wanted 2xx/ },
  { name: "a method that is there is missing",
    tell: (d) => { delete d.paths["/api/v1/tokens/{token}"].delete; },
    only: ["getToken"], shows: /delete is not for it: answered with 200/ },
  { name: "a parameter that is not there",
    tell: (d) => { op(d, "/api/v1/audit").parameters.push({ name: "colour",
      in: "query", schema: { type: "string" } }); },
    only: ["listAudit"], shows: /colour=.* answered with 400, wanted 2xx/ },
  { name: "a parameter with wider bounds",
    tell: (d) => { param(d, "/api/v1/audit", "limit").schema.maximum = 501; },
    only: ["listAudit"], shows: /limit=501 is good: answered with 400/ },
  { name: "a parameter with closer bounds",
    tell: (d) => { param(d, "/api/v1/audit", "limit").schema.maximum = 10; },
    only: ["listAudit"], shows: /limit is bad: answered with 200/ },
  { name: "a parameter has one word more",
    tell: (d) => { param(d, "/api/v1/runs/{run}/output", "stream").schema.enum
      .push("log"); },
    only: ["getRunOutput"], shows: /stream=log is good: answered with 400/ },
  { name: "a parameter may be left out",
    tell: (d) => { delete param(d, "/mcp/events", "run_id").required; },
    only: ["runEvents"], shows: /may be left out: answered with 400/ },
  { name: "parameters that it has not are passed by",
    tell: (d) => { op(d, "/api/v1/whoami")["x-other-parameters"] = true; },
    only: ["whoami"], shows: /no-such-parameter: answered with 400/ },
  { name: "a body needs less than it does",
    tell: (d) => { schema(d, "NewToken").properties.expires_in_s.minimum = 0; },
    only: ["addToken"], shows: /expires_in_s":0.* answered with 400/ },
  { name: "a body may say less than it may",
    tell: (d) => { schema(d, "NewToken").properties.name.maxLength = 10; },
    only: ["addToken"], shows: /name: one byte too long: answered with 201/ },
  { name: "a member of a body is of another type",
    tell: (d) => { schema(d, "TenantChanges").properties.disabled =
      { type: "string" }; },
    only: ["changeTenant"], shows: /disabled.* answered with 400, wanted 2xx/ },
  { name: "a word of a body that is none",
    tell: (d) => { schema(d, "Role").enum.push("root"); },
    only: ["addToken"], shows: /role":"root.* answered with 400/ },
  { name: "no token is needed",
    tell: (d) => { op(d, "/api/v1/tenants").security = []; },
    only: ["listTenants"], shows: /without a token: answered with 401/ },
  { name: "another role may",
    tell: (d) => { op(d, "/api/v1/tenants")["x-roles"] = ["user"]; },
    only: ["listTenants"], shows: /answered with 403, wanted 2xx/ },
  { name: "another type of content",
    tell: (d) => { const { content } = op(d, "/healthz").responses[200];
      content["text/plain"] = content["application/json"];
      delete content["application/json"]; },
    only: ["healthz"], shows: /is application\/json, not text\/plain/ },
  { name: "a header that does not come",
    tell: (d) => { op(d, "/api/v1/whoami").responses[200].headers.ETag =
      { schema: { type: "string" } }; },
    only: ["whoami"], shows: /200 has no header ETag/ },
  { name: "a condition that is not looked at",
    tell: (d) => { const of = op(d, "/api/v1/whoami");
      of.parameters = [{ name: "If-Match", in: "header",
        schema: { type: "string" } }]; },
    only: ["whoami"], shows: /If-Match: .* answered with 200, wanted 412/ },
  { name: "errors are of another form",
    tell: (d) => { schema(d, "Problem").properties.title =
      { type: "integer" }; },
    only: ["getToken"], shows: /title must be integer/ },
  { name: "no version (its own form)",
    tell: (d) => { delete d.info.version; }, shows: /OpenAPI 3.1: .*version/ },
  { name: "a parameter is nowhere (its own form)",
    tell: (d) => { delete param(d, "/api/v1/audit", "limit").in; },
    shows: /OpenAPI 3.1/ },
  { name: "a type that there is not (its own form)",
    tell: (d) => { schema(d, "Role").type = "word"; }, shows: /JSON Schema/ },
  { name: "a reference to nothing (its own form)",
    tell: (d) => { schema(d, "Tenants").properties.tenants.items =
      { $ref: "#/components/schemas/Nothing" }; },
    shows: /JSON Schema|OpenAPI 3.1/ },
  { name: "an example that its schema does not have (its own form)",
    tell: (d) => { op(d, "/api/v1/tenants", "post").requestBody
      .content["application/json"].example = { title: "acme" }; },
    shows: /its example/ },
];
