"""pods/exec and pods/attach: a WebSocket whose messages bear a channel.

A Session is one such connection, with a stream of the engine behind it.  The
command outlives the connection; what comes of its output then depends on how
the client went.
"""
import asyncio
import base64
import contextlib
import json

from . import frames, web
from .answers import Refusal, bad_request, internal
from .engine import EngineError
from .engine import frames as engine_frames
from .scheduling import NODE_IP
from .waiting import first_of

STDIN, STDOUT, STDERR, STATUS, RESIZE, SHUT = 0, 1, 2, 3, 4, 255
V5, V4 = "v5.channel.k8s.io", "v4.channel.k8s.io"
V4_BASE64 = "v4.base64.channel.k8s.io"
OUTPUT_BYTES = 32 << 10  # at most, of a message
# What waits on the way while one side does not read.
WAITING_BYTES = {V5: 4 << 20, V4: 192 << 10}
KILLED = 137
HELD_S = 0.2
NOT_STARTED = b"OCI runtime exec failed: "


class Wanted:
    """What the query asks for."""

    def __init__(self, request):
        self.command = request.query.get("command", [])
        self.stdin = request.is_set("stdin")
        self.tty = request.is_set("tty")
        self.stdout = request.is_set("stdout")
        self.stderr = request.is_set("stderr") and not self.tty
        if not (self.stdin or self.stdout or request.is_set("stderr")):
            raise Refusal(400, None, "you must specify at least 1 of stdin, "
                          "stdout, stderr", text=True)


def subprotocol(request, has_v5):
    """The one chosen of those offered; None where none was; Refusal where
    none is known: a 403 without a word."""
    offered = [w.strip() for w in
               request.word("sec-websocket-protocol").split(",") if w.strip()]
    known = ([V5] if has_v5 else []) + [V4, V4_BASE64]
    for one in known:
        if one in offered:
            return one
    if offered:
        raise Refusal(403, None, "", text=True)
    return None


def container_of(pod, request):
    """Its name; a Refusal where none such is there to be asked."""
    spec = pod["spec"]
    names = [c["name"] for c in spec["containers"]]
    first = [c["name"] for c in spec.get("initContainers") or ()]
    name = request.param("container")
    if name and name not in names + first:
        raise bad_request(f"container {name} is not valid for pod "
                          f"{pod['metadata']['name']}")
    if not name and len(names) > 1:
        also = f" or one of the init containers: [{' '.join(first)}]" \
            if first else ""
        raise bad_request(
            "a container name must be specified for pod "
            f"{pod['metadata']['name']}, choose one of: "
            f"[{' '.join(names)}]{also}")
    return name or names[0]


def running_container(node, pod, name, verb):
    """Its statuses.Container; refused as the kubelet does, in plain text."""
    meta = pod["metadata"]
    life = node.life_of(pod)
    for c in (life.init + life.containers) if life else ():
        if c.name == name and c.is_running:
            return c
    words = f'container not found ("{name}")' if verb == "exec" else \
        f"container {name} not found in pod {meta['name']}_" \
        f"{meta['namespace']}"
    raise Refusal(500, None, words, text=True)


def no_node():
    return Refusal(500, None, f"error dialing backend: dial tcp {NODE_IP}:"
                   "10250: connect: no route to host")


def is_upgrade(request):
    return "upgrade" in request.word("connection").lower() and \
        request.word("upgrade").lower() == "websocket"


async def serve(cluster, request, pod, verb):
    """Answers the request, and is the session until its end."""
    if request.method != "GET" and is_upgrade(request):
        await request.answer(405)
        return
    # First the API server looks, then the kubelet.
    name = container_of(pod, request)
    if not pod["spec"].get("nodeName"):
        raise bad_request(f"pod {pod['metadata']['name']} does not have a "
                          "host assigned")
    if not is_upgrade(request):
        raise bad_request("Upgrade request required")
    if cluster.node.is_lost:
        raise no_node()
    wanted = Wanted(request)
    container = running_container(cluster.node, pod, name, verb)
    protocol = subprotocol(request, cluster.has_v5)
    source = Exec(cluster.engine, container, wanted) if verb == "exec" else \
        Attach(cluster.engine, container, wanted)
    session = Session(cluster, request, protocol, wanted)
    cluster.sessions.add(session)
    try:
        await session.accept()
        await session.run(source)
    finally:
        cluster.sessions.discard(session)


class Session:
    def __init__(self, cluster, request, protocol, wanted):
        self.cluster = cluster
        self.request = request
        self.link = request.link
        self.protocol = protocol
        self.wanted = wanted
        self.socket = frames.Socket(
            self.link, self.violate,
            lambda: cluster.faults.are_messages_split)
        self.limit = WAITING_BYTES[V5 if protocol == V5 else V4]
        self.stdin_over = asyncio.Event()
        self.client_over = asyncio.Event()
        self.closed_well = False  # by CLOSE

    def violate(self, words):
        self.cluster.violate(f"{self.request.path}: {words}")

    async def accept(self):
        if self.link.offers_h2:
            self.violate("HTTP/2 was offered: the real server speaks it then")
        if self.link.buffer:
            self.violate("frames came before the 101")
            self.link.buffer.clear()
        headers = {"Upgrade": "websocket", "Connection": "Upgrade",
                   "Sec-WebSocket-Accept": frames.accept_key(
                       self.request.word("sec-websocket-key")),
                   "Sec-WebSocket-Protocol": self.protocol or ""}
        self.link.transport.set_write_buffer_limits(self.limit)
        await self.link.write(self.request.head(101, headers, 0))
        first = STDOUT if self.wanted.stdout else \
            STDERR if self.wanted.stderr else STATUS
        await self.send(first, b"")

    async def send(self, channel, data):
        if self.protocol == V4_BASE64:
            await self.socket.send(
                b"%d" % channel + base64.b64encode(data), frames.TEXT)
        else:
            await self.socket.send(bytes([channel]) + data)

    async def send_output(self, channel, data):
        for at in range(0, len(data), OUTPUT_BYTES):
            await self.send(channel, data[at:at + OUTPUT_BYTES])

    async def run(self, source):
        """Between client and source, until the source has ended or the client
        is gone."""
        try:
            await source.open()
        except EngineError as e:
            await self.finish(internal_error(str(e)))
            return
        reading = asyncio.ensure_future(self.from_client(source))
        try:
            await self.to_client(source)
        finally:
            reading.cancel()
            await asyncio.gather(reading, return_exceptions=True)
        if self.client_over.is_set():
            self.cluster.linger(source.drain() if self.closed_well
                                else source.hold())
            return
        await self.finish(await source.status(self.protocol == V5))
        source.close()

    async def to_client(self, source):
        """All output; returns early when the client is gone, or when an
        attach has no more to say."""
        until = [self.copy_output(source), self.client_over.wait()]
        if source.ends_with_stdin:
            until.append(self.stdin_over.wait())
        await first_of(*until)

    async def copy_output(self, source):
        wanted = {STDOUT: self.wanted.stdout, STDERR: self.wanted.stderr}
        try:
            async for channel, data in source.output():
                await self.cluster.node.reachable.wait()
                if wanted.get(channel):
                    await self.send_output(channel, data)
        except web.Ended:
            self.client_over.set()
        except ConnectionError:  # the engine is gone: nobody knows the rest
            self.link.abort()
            self.client_over.set()

    async def from_client(self, source):
        try:
            while True:
                message = await self.socket.message()
                await self.cluster.node.reachable.wait()
                await self.take(message, source)
        except frames.Closed:
            self.closed_well = True
            self.socket.close()
        except web.Ended:
            # While its reader lags not every end of a client is noticed.
            if self.link.was_blocked and (
                    self.link.is_reset or self.protocol != V5):
                return
        source.end_stdin()
        self.client_over.set()

    async def take(self, message, source):
        if self.protocol == V4_BASE64:
            message = bytes([int(message[:1] or b"0")]) + \
                base64.b64decode(message[1:])
        if not message:
            return
        channel, data = message[0], message[1:]
        if channel == STDIN and self.wanted.stdin:
            await source.write(data, self.limit)
        elif channel == RESIZE:
            await self.resize(data, source)
        elif channel == SHUT and self.protocol == V5:
            if len(data) != 1 or data[0] > RESIZE:
                self.violate(f"a close signal of {data!r}")
                raise frames.Closed
            if data[0] == STDIN:
                source.end_stdin()
                self.stdin_over.set()

    async def resize(self, data, source):
        with contextlib.suppress(ValueError, KeyError, EngineError):
            size = json.loads(data)
            await source.resize(size["Width"], size["Height"])

    async def finish(self, status):
        with contextlib.suppress(web.Ended):
            if self.protocol is None:
                if status["status"] != "Success":
                    await self.send(STATUS, status["message"].encode())
            else:
                await self.send(STATUS, web.dumps(status).rstrip(b"\n"))
            self.socket.close()


SUCCESS = {"metadata": {}, "status": "Success"}


def exit_status(code, command, is_v5):
    if code == 0:
        return SUCCESS
    said = f"command terminated with exit code {code}" if is_v5 else \
        f"error executing command [{' '.join(command)}], exit code {code}"
    return {"metadata": {}, "status": "Failure", "message":
            f"command terminated with non-zero exit code: {said}",
            "reason": "NonZeroExitCode", "details": {"causes": [
                {"reason": "ExitCode", "message": str(code)}]}}


def internal_error(said):
    words = "Internal error occurred: error executing command in " \
        f"container: failed to exec in container: failed to start exec: {said}"
    status = internal("Internal error occurred: " + words).status()
    for key in ("kind", "apiVersion"):
        del status[key]
    status["details"] = {"causes": [{"message": words}]}
    return status


class Source:
    """A stream of the engine."""

    ends_with_stdin = False

    def __init__(self, engine, container, wanted):
        self.engine = engine
        self.container = container
        self.wanted = wanted
        self.reader = self.writer = None
        self.is_stdin_ended = False

    async def hijack(self, path, body=None, **query):
        self.reader, self.writer = await self.engine.hijack(
            path, body, **query)
        self.container.streams.add(self)

    async def write(self, data, limit):
        if self.is_stdin_ended:
            return
        self.writer.transport.set_write_buffer_limits(limit)
        with contextlib.suppress(ConnectionError):
            self.writer.write(data)
            await self.writer.drain()

    def end_stdin(self):
        if not self.is_stdin_ended:
            self.is_stdin_ended = True
            with contextlib.suppress(OSError):
                self.writer.write_eof()

    async def output(self):
        async for channel, data in engine_frames(self.reader, self.is_tty):
            yield channel, data

    async def drain(self):
        """What it goes on writing is read and thrown away."""
        with contextlib.suppress(ConnectionError):
            while await self.reader.read(1 << 16):
                pass
        self.close()

    async def hold(self):
        """What it goes on writing is not read: it is stopped by that, until
        its container ends."""
        while not self.writer.is_closing():
            await asyncio.sleep(HELD_S)

    def close(self):
        self.container.streams.discard(self)
        self.writer.close()


class Exec(Source):
    def __init__(self, engine, container, wanted):
        super().__init__(engine, container, wanted)
        self.id = None
        self.is_tty = wanted.tty
        self.said = b""  # by the engine, in place of output

    async def open(self):
        if not self.wanted.command:
            raise EngineError(400, "OCI runtime exec failed: exec failed: "
                              "args must not be empty: unknown")
        made = await self.engine.ask(
            "POST", f"/containers/{self.container.id}/exec", {
                "Cmd": self.wanted.command, "Tty": self.wanted.tty,
                "AttachStdin": self.wanted.stdin,
                "AttachStdout": True, "AttachStderr": True})
        self.id = made["Id"]
        await self.hijack(f"/exec/{self.id}/start",
                          {"Detach": False, "Tty": self.wanted.tty})

    async def output(self):
        """What the engine says of a command that it could not start is no
        output."""
        async for channel, data in super().output():
            if data.startswith(NOT_STARTED) and not self.said:
                self.said = data
                continue
            yield channel, data

    async def resize(self, width, height):
        await self.engine.ask("POST", f"/exec/{self.id}/resize",
                              w=width, h=height)

    async def status(self, is_v5):
        if self.said:
            return internal_error(self.said.decode().strip())
        code = None
        with contextlib.suppress(EngineError):  # gone with its container
            found = await self.engine.ask("GET", f"/exec/{self.id}/json")
            code = found["ExitCode"]
        return exit_status(KILLED if code is None else code,
                           self.wanted.command, is_v5)


class Attach(Source):
    def __init__(self, engine, container, wanted):
        super().__init__(engine, container, wanted)
        self.is_tty = container.spec.get("tty", False)
        self.has_stdin = wanted.stdin and container.spec.get("stdin", False)
        self.ends_with_stdin = wanted.stdin and \
            not container.spec.get("stdinOnce", False)

    async def open(self):
        await self.hijack(
            f"/containers/{self.container.id}/attach", stream=1, stdout=1,
            stderr=1, stdin=int(self.has_stdin))

    async def write(self, data, limit):
        if self.has_stdin:
            await super().write(data, limit)

    async def resize(self, width, height):
        await self.engine.ask("POST", f"/containers/{self.container.id}/"
                              "resize", w=width, h=height)

    async def status(self, is_v5):
        """Success, whatever came of the container."""
        return SUCCESS
