"""A plain MCP client and HTTP helpers; the standard library only."""
import concurrent.futures
import contextlib
import http.client
import json
import socket
import threading
import time


class McpError(Exception):
    """A JSON-RPC error answer."""

    def __init__(self, error):
        super().__init__(f"{error.get('code')}: {error.get('message')}")
        self.code = error.get("code")
        self.message = error.get("message", "")
        self.data = error.get("data")


class Client:
    """One keep-alive connection with one MCP session."""

    def __init__(self, port, revision="2025-11-25", timeout=90, token=None):
        self.port = port
        self.token = token
        self.timeout = timeout
        self.revision = revision
        self.session = None
        self.next_id = 1
        self.conn = None

    def connect(self):
        if self.conn is None:
            self.conn = http.client.HTTPConnection(
                "127.0.0.1", self.port, timeout=self.timeout)
            self.conn.connect()
            self.conn.sock.setsockopt(
                socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return self.conn

    def close(self):
        if self.conn is not None:
            self.conn.close()
            self.conn = None

    def request(self, method, path, body=None, headers=None):
        """(status, headers, bytes) of one exchange."""
        conn = self.connect()
        headers = dict(headers or {})
        if self.token is not None:
            headers.setdefault("Authorization", f"Bearer {self.token}")
        try:
            conn.request(method, path, body=body, headers=headers)
            answer = conn.getresponse()
            data = answer.read()
        except (OSError, http.client.HTTPException):
            self.close()
            raise
        if answer.will_close:
            self.close()
        return answer.status, answer.headers, data

    def post(self, message, headers=None):
        head = {"Content-Type": "application/json",
                "Accept": "application/json, text/event-stream"}
        if self.session is not None:
            head["Mcp-Session-Id"] = self.session
            head["MCP-Protocol-Version"] = self.revision
        head.update(headers or {})
        body = message if isinstance(message, (bytes, str)) \
            else json.dumps(message)
        return self.request("POST", "/mcp", body, head)

    def rpc(self, method, params=None):
        """The result of one request; McpError for an error answer."""
        message = {"jsonrpc": "2.0", "id": self.next_id, "method": method}
        self.next_id += 1
        if params is not None:
            message["params"] = params
        status, headers, data = self.post(message)
        kind = headers.get("Content-Type", "")
        if kind.startswith("text/event-stream"):
            answer = last_response(data)
        else:
            answer = json.loads(data)
        if "error" in answer:
            raise McpError(answer["error"])
        assert status == 200, (status, data)
        assert answer["id"] == message["id"]
        if headers.get("Mcp-Session-Id"):
            self.session = headers["Mcp-Session-Id"]
        return answer["result"]

    def initialize(self):
        result = self.rpc("initialize", {
            "protocolVersion": self.revision, "capabilities": {},
            "clientInfo": {"name": "test", "version": "1"}})
        status, _, body = self.post(
            {"jsonrpc": "2.0", "method": "notifications/initialized"})
        assert status == 202 and body == b""
        return result

    def tool(self, tool_name, **arguments):
        """The whole tool result, as a program asks for it."""
        return self.ask_tool(tool_name, arguments,
                             {"mcp-sandboxd/structured": True})

    def shown(self, tool_name, **arguments):
        """The whole tool result, as a model gets it."""
        return self.ask_tool(tool_name, arguments)

    def text(self, tool_name, **arguments):
        """What a model reads of a result that is no error."""
        result = self.shown(tool_name, **arguments)
        assert not result.get("isError"), result
        return result["content"][0]["text"]

    def ask_tool(self, tool_name, arguments, meta=None):
        if self.session is None:
            self.initialize()
        params = {"name": tool_name, "arguments": arguments}
        if meta is not None:
            params["_meta"] = meta
        return self.rpc("tools/call", params)

    def call(self, tool_name, **arguments):
        """structuredContent of a result that is no error."""
        result = self.tool(tool_name, **arguments)
        assert not result.get("isError"), result
        return result["structuredContent"]

    def fail(self, tool_name, **arguments):
        """The text of an isError result."""
        result = self.tool(tool_name, **arguments)
        assert result.get("isError"), result
        return result["content"][0]["text"]

    def run(self, identifier, *commands, wait_ms=60000, **options):
        """final of an awaited run; commands are dicts or shell texts."""
        options.update(await_completion=True, await_timeout_ms=wait_ms)
        return self.start(identifier, *commands, **options)["final"]

    def start(self, identifier, *commands, **options):
        commands = [as_command(c) for c in commands]
        options.setdefault("await_completion", False)
        arguments = {"identifier": identifier, "commands": commands,
                     "options": options}
        return self.call("run_sandbox", **arguments)

    def out(self, identifier, *commands, **options):
        """What the first of awaited commands printed."""
        return stdout(self.run(identifier, *commands, **options))

    def refused(self, identifier, *commands, **options):
        """What is said of commands that are not taken."""
        return self.fail("run_sandbox", identifier=identifier,
                         commands=[as_command(c) for c in commands],
                         options={"await_completion": True, **options})

    def cancel(self, run_id):
        return self.call("control_run", run_id=run_id, action="cancel")

    def delete(self, identifier):
        return self.call("delete_sandbox", identifier=identifier)

    def get(self, path, want=200):
        """The JSON that is there."""
        return self.ask("GET", path, want=want)

    def ask(self, method, path, body=None, want=200, **headers):
        """The JSON of an answer, None for none; body: JSON or bytes."""
        status, _, data = self.request(
            method, path, body if body is None or isinstance(
                body, (bytes, str)) else json.dumps(body), headers)
        assert status == want, (method, path, status, data)
        return json.loads(data) if data else None

    def status(self, run_id):
        return self.get(f"/mcp/runs/{run_id}")

    def stdout_of(self, run_id):
        """What the first command of a run has printed."""
        return stdout(self.status(run_id))

    def wait_output(self, run_id, seconds=60):
        """Until its first command has printed something."""
        return wait_for(lambda: self.stdout_of(run_id), seconds,
                        f"output of run {run_id}")

    def wait_state(self, run_id, state="running", seconds=60):
        return wait_for(lambda: self.status(run_id)["state"] == state,
                        seconds, f"run {run_id} to be {state}")

    def wait_end(self, run_id, seconds=60):
        return wait_for(lambda: self.ended(run_id), seconds,
                        f"the end of run {run_id}")

    def pages(self, tool_name, what, **arguments):
        """The lists of that name of all pages of a tool."""
        more = {}
        while more is not None:
            page = self.call(tool_name, **{**arguments, **more})
            yield page[what]
            cursor = page.get("next_cursor")
            more = {"cursor": cursor} if cursor is not None else None

    def ended(self, run_id):
        view = self.status(run_id)
        done = view["state"] in ("completed", "failed", "canceled")
        return view if done else None


def as_command(command):
    return {"shell": command} if isinstance(command, str) else command


def python(text, *words, **more):
    """A command."""
    return {"argv": ["python3", "-c", text, *words], **more}


# More memory than a sandbox has.
TOO_MUCH = python("x = bytearray(3 << 30)\n"
                  "for i in range(0, len(x), 4096): x[i] = 1")


def stdout(view):
    """What the first command of a run's view has printed."""
    return view["commands"][0]["stdout"]


def last_response(data):
    """The JSON-RPC response in a whole event stream."""
    for event in parse_events(data.decode()):
        message = json.loads(event["data"]) if event.get("data") else {}
        if "result" in message or "error" in message:
            return message
    raise AssertionError(f"no response in {data[:300]!r}")


def parse_events(text):
    """The events of a whole SSE text, comments left out."""
    events = []
    for block in text.split("\n\n"):
        event = {}
        for line in block.split("\n"):
            key, _, value = line.partition(":")
            if key:
                event[key] = value[1:] if value.startswith(" ") else value
        if event:
            events.append(event)
    return events


class Stream(threading.Thread):
    """Follows a stream of events, and comes again behind what it saw when it
    is cut off, until .is_over."""

    def __init__(self, port, path, token=None):
        super().__init__(daemon=True)
        self.port, self.path, self.token = port, path, token
        self.events = []
        self.last_id = None
        self.connects = 0
        self.is_over = False
        self.give_up = time.monotonic() + 90

    def run(self):
        while not self.is_over and time.monotonic() < self.give_up:
            with contextlib.suppress(OSError, http.client.HTTPException):
                self.read()
            time.sleep(0.02)

    def read(self):
        conn = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        headers = {"Accept": "text/event-stream"}
        if self.token is not None:
            headers["Authorization"] = f"Bearer {self.token}"
        if self.last_id is not None:
            headers["Last-Event-ID"] = self.last_id
        conn.request("GET", self.path, headers=headers)
        answer = conn.getresponse()
        if answer.status >= 500:
            return  # it is starting, or about to end
        assert answer.status == 200, answer.read()
        self.connects += 1
        event = {}
        while not self.is_over and (line := answer.readline()) != b"":
            line = line.decode().rstrip("\n")
            if line == "":
                self.take(event)
                event = {}
            else:
                key, _, value = line.partition(": ")
                event[key] = value

    def take(self, event):
        """The id counts once the event is whole, as a browser has it."""
        if "data" in event:
            event["data"] = json.loads(event["data"])
            self.events.append(event)
        self.last_id = event.get("id", self.last_id)

    def kinds(self):
        return [e["event"] for e in self.events]


class Follower(Stream):
    """Of a run, to its end."""

    def __init__(self, port, run_id):
        super().__init__(port, f"/mcp/events?run_id={run_id}")

    def take(self, event):
        super().take(event)
        self.is_over = event.get("event") in ("run_finished", "run_failed")

    def text(self, index=0, stream="command_stdout"):
        return "".join(e["data"]["chunk"] for e in self.events
                       if e["event"] == stream and e["data"]["index"] == index)


def at_once(calls):
    """What functions give that are called at the same time."""
    with concurrent.futures.ThreadPoolExecutor(len(calls)) as pool:
        return [f.result() for f in [pool.submit(c) for c in calls]]


def wait_for(check, seconds, what):
    """Poll until check() gives something; a generous guard, not a timing."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        value = check()
        if value:
            return value
        time.sleep(0.02)
    raise AssertionError(f"gave up after {seconds} s waiting for {what}")
