"""A tenant that tries all ids of others: every route, every tool.

Routes come from the router's table (supervisor/front/routes.c) and tools from
the server's own list, so that one which is new must be named here, or the
test says so.
"""
import json
import random
import re
import uuid

from client import parse_events

TOP_ROUTES = re.compile(r'\{ROUTE_(\w+), "([^"]*)",')
NEVER = "00000000-0000-4000-8000-000000000000"

# What of the answers differs by what was asked, and by when.
OWN_WORDS = re.compile(r'"(?:request_id|instance)":\s*"[^"]*"')


def routes(top):
    with open(f"{top}/supervisor/front/routes.c", encoding="utf-8") as f:
        return [("/mcp" if place != "TOP" else "") + path
                for place, path in TOP_ROUTES.findall(f.read())]


class Tenant:
    """One with sandboxes, a run that goes on, artifacts, and a session."""

    def __init__(self, server, name, token):
        self.name = name
        self.token = token
        self.client = server.client(token=token)
        self.canary = f"canary-{name}-{uuid.uuid4().hex}"
        self.secret = f"secret-{name}"
        self.runs = []
        self.identifiers = []
        self.cursors = []
        self.event = ""

    def settle(self, sandboxes):
        for i in range(sandboxes):
            # The first is called the same by all of them.
            name = "box" if i == 0 else f"box-{self.name}-{i}"
            self.identifiers.append(name)
            final = self.client.run(
                name, f"echo {self.canary}; "
                f"echo {self.canary} > /artifacts/{self.canary}.txt")
            assert final["state"] == "completed", final
            self.runs.append(final["run_id"])
        self.runs.append(self.client.start(
            "box", f"echo {self.canary}; sleep 100000")["run_id"])
        _, _, data = self.client.request(
            "GET", f"/mcp/events?run_id={self.runs[0]}")
        self.event = parse_events(data.decode())[0]["id"]
        status, _, _ = self.client.request(
            "PUT", f"/api/v1/secrets/{self.secret}", self.canary)
        assert status == 201
        page = self.client.call("list_runs", limit=1)
        self.cursors.append(page["next_cursor"])
        page = self.client.call("get_run", run_id=self.runs[0], cursor="0")
        if page.get("next_cursor"):
            self.cursors.append(page["next_cursor"])


def mutated(text, rng):
    """The same with one character that it may have changed."""
    at = [i for i, c in enumerate(text) if c.isalnum()]
    i = rng.choice(at)
    digits = "0123456789abcdef"
    new = rng.choice([c for c in digits if c != text[i]])
    return text[:i] + new + text[i + 1:]


def requests(victim, run):
    """(method, path, body) of all routes with a foreign or unknown id.
    Each pattern of the table must have one."""
    file = f"{victim.canary}.txt"
    yield "/mcp/runs/:run", "GET", f"/mcp/runs/{run}"
    yield "/mcp/runs/:run", "DELETE", f"/mcp/runs/{run}"
    yield "/mcp/runs/:run/cancel", "POST", f"/mcp/runs/{run}/cancel"
    yield "/mcp/events", "GET", f"/mcp/events?run_id={run}"
    yield ("/mcp/events", "GET",
           f"/mcp/events?run_id={run}&last_event_id={victim.event}")
    for below, method in (("", "GET"), ("", "DELETE"), ("/output", "GET"),
                          ("/artifacts", "GET"), ("/cancel", "POST"),
                          ("/rerun", "POST")):
        yield (f"/api/v1/runs/:run{below}", method,
               f"/api/v1/runs/{run}{below}")
    yield ("/artifacts/:identifier/:run_or_latest/*path", "GET",
           f"/artifacts/box/{run}/{file}")
    yield ("/artifacts/:identifier/:run_or_latest/*path", "GET",
           f"/artifacts/box/latest/{file}")
    for path in ("/api/v1/tenants", "/api/v1/tokens", "/api/v1/audit",
                 "/api/v1/audit/verify", "/api/v1/status"):
        yield path, "GET", path
    yield "/api/v1/events", "GET", f"/api/v1/events?tenant={victim.name}"
    yield "/api/v1/backups", "POST", "/api/v1/backups"
    for path, more in (("/api/v1/tenants/:tenant", ""),
                       ("/api/v1/tenants/:tenant/tokens", "/tokens"),
                       ("/api/v1/tenants/:tenant/secrets", "/secrets"),
                       ("/api/v1/tenants/:tenant/sandboxes/:identifier",
                        "/sandboxes/box")):
        yield path, "GET", f"/api/v1/tenants/{victim.name}{more}"
        if path.endswith(":identifier"):
            yield path, "DELETE", f"/api/v1/tenants/{victim.name}{more}"
    for name in (f"box-{victim.name}-1", run):
        for method in ("GET", "DELETE"):
            yield ("/api/v1/sandboxes/:identifier", method,
                   f"/api/v1/sandboxes/{name}")
    for name in (victim.secret, run):
        yield ("/api/v1/secrets/:secret", "DELETE", f"/api/v1/secrets/{name}")
    yield ("/api/v1/tenants/:tenant/secrets/:secret", "DELETE",
           f"/api/v1/tenants/{victim.name}/secrets/{victim.secret}")
    for method, more in (("GET", ""), ("PATCH", ""), ("DELETE", ""),
                         ("POST", "/test")):
        yield (f"/api/v1/webhooks/:webhook{more}", method,
               f"/api/v1/webhooks/{run}{more}")
        yield (f"/api/v1/tenants/:tenant/webhooks/:webhook{more}", method,
               f"/api/v1/tenants/{victim.name}/webhooks/{run}{more}")
    yield ("/api/v1/tenants/:tenant/webhooks", "GET",
           f"/api/v1/tenants/{victim.name}/webhooks")
    yield ("/api/v1/tokens/:token", "DELETE",
           "/api/v1/tokens/" + victim.token.split("_")[1])


# Routes that take no id of anybody: what they say is the caller's own; of a
# stream of HTTP+SSE another's id is tried in test_sse_transport.py.
OF_NOBODY = {"/mcp", "/sse", "/messages", "/healthz", "/readyz", "/metrics",
             "/", "/api/v1/whoami", "/api/v1/usage", "/api/v1/secrets",
             "/api/v1/openapi.json",
             "/api/v1/runs", "/api/v1/stats", "/api/v1/export",
             "/api/v1/sandboxes", "/api/v1/webhooks"}

# Arguments of each tool that name something, for a foreign or unknown id.
RUN_TOOLS = {
    "get_run": {}, "control_run": {"action": "cancel"},
}
NAMED_TOOLS = {"run_sandbox", "delete_sandbox", "restart_sandbox",
               "initialize_sandbox", "execute_code", "stop_sandbox"}
LISTS = {"list_runs", "list_sandboxes"}


def plain(data, *ids):
    """An answer without what was asked and what tells requests apart."""
    text = data.decode("utf-8", "replace")
    text = OWN_WORDS.sub("", text)
    for i in ids:
        text = text.replace(i, "ID")
    return text


class Tally:
    """Calls, answers by kind, and what should not have been."""

    def __init__(self):
        self.calls = 0
        self.kinds = {}
        self.wrong = []
        self.answers = {}

    def note(self, what, status, data, others):
        self.calls += 1
        self.kinds[status] = self.kinds.get(status, 0) + 1
        text = data.decode("utf-8", "replace")
        for other in others:
            if other.canary in text or other.token in text:
                self.wrong.append(f"{what}: bytes of {other.name}: {text}")

    def same(self, key, answer, what):
        """All answers of a kind are one."""
        first = self.answers.setdefault(key, answer)
        if first != answer:
            self.wrong.append(f"{what}: {answer} is not {first}")


def tool(client, name, **arguments):
    status, _, data = client.post({
        "jsonrpc": "2.0", "id": 7, "method": "tools/call",
        "params": {"name": name, "arguments": arguments}})
    return status, data


def try_ids(me, victim, others, tally, rng):
    """Every route and every tool once, with ids of the victim, with ids that
    are nobody's, and with ids that are nearly the victim's."""
    run = rng.choice(victim.runs)
    file = f"{victim.canary}.txt"
    for kind in (run, mutated(run, rng), str(uuid.UUID(
            int=rng.getrandbits(128), version=4))):
        for route, method, path in requests(victim, kind):
            status, _, data = me.client.request(method, path)
            what = f"{me.name}: {method} {path}"
            # The path of a file is the asker's word.
            tally.note(what, status, data.replace(file.encode(), b""), others)
            tally.same((route, method),
                       (status, plain(data, kind, victim.name)), what)
        for name, more in RUN_TOOLS.items():
            status, data = tool(me.client, name, run_id=kind, **more)
            what = f"{me.name}: {name} {kind}"
            tally.note(what, status, data, others)
            tally.same(name, (status, plain(data, kind)), what)


def try_cursors(me, victim, others, tally):
    for cursor in victim.cursors:
        for name in sorted(LISTS):
            status, data = tool(me.client, name, cursor=cursor)
            tally.note(f"{me.name}: {name} cursor {cursor}", status, data,
                       others)
        status, data = tool(me.client, "get_run", run_id=me.runs[0],
                            cursor=cursor)
        tally.note(f"{me.name}: get_run cursor", status, data, others)
    # A foreign one is as one of one's own for another question.
    for cursor, more in ((victim.cursors[0], {}),
                         (me.cursors[0], {"identifier": "another"})):
        status, data = tool(me.client, "list_runs", cursor=cursor, **more)
        tally.same("list_runs cursor", (status, plain(data, cursor)),
                   f"{me.name}: list_runs cursor {cursor}")


def try_session(me, victim, others, tally):
    """A session of somebody else is none."""
    own, me.client.session = me.client.session, victim.client.session
    status, data = tool(me.client, "list_runs")
    me.client.session = own
    tally.note(f"{me.name}: foreign session", status, data, others)
    if status != 404:
        tally.wrong.append(f"{me.name}: a foreign session: {status}")


def try_secrets(me, victim, others, tally):
    for name in (victim.secret, NEVER):
        status, data = tool(
            me.client, "run_sandbox", identifier="box",
            commands=[{"shell": "echo $S", "env": {"S": f"secret://{name}"}}])
        what = f"{me.name}: run_sandbox with secret {name}"
        tally.note(what, status, data, others)
        tally.same("secret", (status, plain(data, name)), what)


def look_around(me, victim, others, tally):
    """What it may see is its own."""
    foreign = [run for other in others for run in other.runs]
    for name in sorted(LISTS):
        status, data = tool(me.client, name, limit=100)
        tally.note(f"{me.name}: {name}", status, data, others)
        tally.wrong += [f"{name}: {run} of another" for run in foreign
                        if run.encode() in data]
    for path in ("runs", "export", "stats?group_by=identifier", "sandboxes",
                 f"runs?tenant={victim.name}", f"export?tenant={victim.name}",
                 f"runs?identifier=box-{victim.name}-1",
                 f"runs?q={victim.canary}", "export?format=csv"):
        status, _, data = me.client.request("GET", f"/api/v1/{path}")
        tally.note(f"{me.name}: {path}", status, data, others)
        tally.wrong += [f"{path}: {run} of another" for run in foreign
                        if run.encode() in data]
    for name in (victim.name, NEVER):
        status, _, data = me.client.request(
            "GET", f"/api/v1/stats?tenant={name}")
        tally.same("tenant", (status, plain(data, name)),
                   f"{me.name}: stats of {name}")
    for cursor in victim.cursors[:1] + [NEVER]:
        for path in ("runs", "sandboxes"):
            status, _, data = me.client.request(
                "GET", f"/api/v1/{path}?cursor={cursor}")
            tally.note(f"{me.name}: {path} cursor", status, data, others)
    _, _, data = me.client.request("GET", "/api/v1/secrets")
    tally.note(f"{me.name}: /api/v1/secrets", 200, data, others)
    if [s["name"] for s in json.loads(data)["secrets"]] != [me.secret]:
        tally.wrong.append(f"{me.name}: secrets: {data}")
    for path in ("/api/v1/whoami", "/api/v1/usage",
                 f"/api/v1/usage?tenant={victim.name}"):
        status, _, data = me.client.request("GET", path)
        tally.note(f"{me.name}: {path}", status, data, others)
        if json.loads(data)["tenant"] != me.name:
            tally.wrong.append(f"{path}: {data}")


def attack(me, victim, others, tally, rng):
    try_ids(me, victim, others, tally, rng)
    try_cursors(me, victim, others, tally)
    try_session(me, victim, others, tally)
    try_secrets(me, victim, others, tally)
    look_around(me, victim, others, tally)


def check_lists(top, client):
    """What is new in the server is known here."""
    probe = Tenant.__new__(Tenant)
    probe.name, probe.canary, probe.token = "x", "y", "mcps_z_"
    probe.secret, probe.event = "s", "e"
    known = {route for route, _, _ in requests(probe, NEVER)} | OF_NOBODY
    assert set(routes(top)) == known, set(routes(top)) ^ known
    tools = {t["name"] for t in client.rpc("tools/list")["tools"]}
    assert tools == set(RUN_TOOLS) | NAMED_TOOLS | LISTS, tools


def rng_of(seed):
    return random.Random(seed)
