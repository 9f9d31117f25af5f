"""MCP over bare sockets, so that nothing is made better on the way: lines and
bytes are those of the test, and so is what comes back."""
import base64
import collections
import http.client
import json
import urllib.parse

OLDEST, FIRST_HTTP, ONE_BY_ONE = "2024-11-05", "2025-03-26", "2025-06-18"
LEGACY = "2025-11-25"
MODERN = "2026-07-28"
LEGACIES = (OLDEST, FIRST_HTTP, ONE_BY_ONE, LEGACY)
IO = "io.modelcontextprotocol/"
JSON = "Content-Type: application/json"
BOTH = "Accept: application/json, text/event-stream"
NAMED = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri",
         "tasks/get": "taskId", "tasks/cancel": "taskId",
         "tasks/update": "taskId"}


class Answer(collections.namedtuple("Answer", "status headers body")):
    """What came back for one request."""

    @property
    def json(self):
        return json.loads(self.body)

    @property
    def messages(self):
        """Those of JSON, or of an event stream."""
        kind = self.headers.get("Content-Type", "")
        if not kind.startswith("text/event-stream"):
            found = self.json
            return found if isinstance(found, list) else [found]
        return [json.loads(data) for data in (
            event.get("data") for event in events(self.body)) if data]

    @property
    def last(self):
        return self.messages[-1]

    @property
    def code(self):
        """Of a JSON-RPC error; None: it is none."""
        return self.last.get("error", {}).get("code")

    @property
    def result(self):
        assert self.status == 200 and "result" in self.last, self
        return self.last["result"]


def events(stream):
    """Events as {field: value}; a comment has the field "" """
    found = []
    for block in stream.decode().split("\n\n"):
        event = {}
        for line in block.split("\n"):
            field, _, value = line.partition(":")
            event[field] = value.removeprefix(" ")
        if block:
            found.append(event)
    return found


def read(sock):
    """The whole answer that comes next."""
    answer = http.client.HTTPResponse(sock)
    answer.begin()
    return Answer(answer.status, answer.headers, answer.read())


def ask(server, line, *fields, body=b""):
    """An answer, on a connection of its own."""
    with server.send(line, *fields, body=body) as sock:
        return read(sock)


def as_bytes(body):
    return body if isinstance(body, bytes) else json.dumps(body).encode()


def bearer(token):
    """Header lines; token: None, where nobody wants one."""
    return [] if token is None else [f"Authorization: Bearer {token}"]


def post(server, body, *fields, token=None):
    return ask(server, "POST /mcp", JSON, BOTH, *bearer(token), *fields,
               body=as_bytes(body))


def request(method, params=None, ident=1):
    message = {"jsonrpc": "2.0", "id": ident, "method": method}
    return message if params is None else {**message, "params": params}


def initialize(revision=LEGACY, ident=1):
    return request("initialize", {
        "protocolVersion": revision, "capabilities": {},
        "clientInfo": {"name": "raw", "version": "1"}}, ident)


def session(server, revision=LEGACY, token=None):
    """Header lines of a new session of this revision."""
    answer = post(server, initialize(revision), token=token)
    assert answer.result["protocolVersion"] == revision
    lines = [f"Mcp-Session-Id: {answer.headers['Mcp-Session-Id']}"]
    if revision >= ONE_BY_ONE:
        lines.append(f"MCP-Protocol-Version: {revision}")
    return [*bearer(token), *lines]


def meta(revision=MODERN, capabilities=None, **more):
    return {IO + "protocolVersion": revision,
            IO + "clientCapabilities": capabilities or {},
            **{IO + k: v for k, v in more.items()}}


def modern_message(method, params=None, ident=1, **more):
    return request(method, {**(params or {}), "_meta": meta(**more)}, ident)


def modern_lines(method, params=None):
    lines = [f"MCP-Protocol-Version: {MODERN}", f"Mcp-Method: {method}"]
    name = (params or {}).get(NAMED.get(method))
    return lines + ([f"Mcp-Name: {name}"] if name is not None else [])


def modern(server, method, params=None, *fields, token=None, ident=1, **more):
    """A whole request of 2026-07-28, with what it wants of headers."""
    return post(server, modern_message(method, params, ident, **more),
                *modern_lines(method, params), *fields, token=token)


class Stream:
    """HTTP+SSE of 2024-11-05: a stream, and messages posted beside it."""

    def __init__(self, server):
        self.server = server
        self.sock = server.send("GET /sse", "Accept: text/event-stream")
        self.answer = http.client.HTTPResponse(self.sock)
        self.answer.begin()
        assert self.answer.status == 200
        event = self.next()
        assert event["event"] == "endpoint"
        self.path = urllib.parse.urljoin("/sse", event["data"])

    def __enter__(self):
        return self

    def __exit__(self, *why):
        self.sock.close()

    def next(self):
        """The event that comes next."""
        block = b""
        while not block.endswith(b"\n\n"):
            line = self.answer.readline()
            assert line, "the stream has ended"
            block += line
        event, = events(block)
        return event if set(event) != {""} else self.next()

    def ask(self, message):
        """The answer to a request."""
        done = ask(self.server, f"POST {self.path}", JSON,
                   body=as_bytes(message))
        assert done.status == 202, done
        event = self.next()
        assert event["event"] == "message"
        answer = json.loads(event["data"])
        assert answer["id"] == message["id"]
        return answer


def wrapped(text):
    """A value of a header in base64."""
    return f"=?base64?{base64.b64encode(text.encode()).decode()}?="
