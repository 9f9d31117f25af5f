"""HTTP/1.1 over TLS: connections, requests and answers, as the API server of
Kubernetes has them.

A Link is one connection.  It gives bytes as they come, and a write waits while
the peer does not read.  Nothing is read ahead of what somebody asked for but
what is in its buffer, so that a peer that sends too early is seen.
"""
import asyncio
import contextlib
import http
import json
import socket
import urllib.parse

HEAD_BYTES = 1 << 20
BODY_BYTES = 3 << 20  # of the real server, too
AHEAD_BYTES = 1 << 18
LENGTH_KNOWN_BYTES = 2048  # a longer answer is chunked
HANDSHAKE_S = 10


class Ended(Exception):
    """The peer is gone, or said that it sends no more."""


class Link(asyncio.Protocol):
    def __init__(self, serve, flow=None):
        self.serve = serve
        self.flow = flow  # nothing comes or goes while this is not set
        self.buffer = bytearray()
        self.transport = None
        self.is_at_end = False
        self.is_lost = False
        self.is_reset = False  # gone by an error, not by an end
        self.was_blocked = False  # the peer did not read, when it went
        self.offers_h2 = False
        self.peer_name = None  # of its certificate
        self.task = None
        self._came = asyncio.Event()
        self._is_paused = False
        self._writable = asyncio.Event()
        self._writable.set()

    # ---- what asyncio calls

    def connection_made(self, transport):
        self.transport = transport
        self.peer_name = name_of(transport.get_extra_info("peercert"))
        self.task = asyncio.ensure_future(self.serve(self))

    def data_received(self, data):
        self.buffer += data
        self._came.set()
        if len(self.buffer) > AHEAD_BYTES and not self._is_paused:
            self._is_paused = True
            self.transport.pause_reading()

    def eof_received(self):
        self.is_at_end = True
        self._came.set()

    def connection_lost(self, exc):
        self.is_lost = self.is_at_end = True
        self.is_reset = exc is not None
        self.was_blocked = self.is_blocked
        self._came.set()
        self._writable.set()

    def pause_writing(self):
        self._writable.clear()

    def resume_writing(self):
        self._writable.set()

    # ---- what others call

    async def more(self):
        """Wait until there are bytes that were not there before."""
        if self.is_at_end:
            raise Ended
        if self._is_paused:
            self._is_paused = False
            self.transport.resume_reading()
        self._came.clear()
        await self._came.wait()
        await self.flowing()

    async def flowing(self):
        if self.flow is not None:
            await self.flow.wait()

    async def take(self, count):
        while len(self.buffer) < count:
            await self.more()
        out = bytes(self.buffer[:count])
        del self.buffer[:count]
        return out

    async def take_until(self, end, limit):
        while (at := self.buffer.find(end)) < 0:
            if len(self.buffer) > limit:
                raise Ended
            await self.more()
        return await self.take(at + len(end))

    async def write(self, data):
        await self.flowing()
        if self.is_lost:
            raise Ended
        self.transport.write(data)
        await self._writable.wait()
        if self.is_lost:
            raise Ended

    def write_last(self, data):
        """What is said before a close, whether the peer reads or not."""
        if not self.is_lost:
            self.transport.write(data)

    @property
    def is_blocked(self):
        return not self._writable.is_set()

    def close(self):
        self.transport.close()

    def abort(self):
        self.transport.abort()


def name_of(certificate):
    """The common name, or None."""
    for part in (certificate or {}).get("subject", ()):
        for key, value in part:
            if key == "commonName":
                return value
    return None


class Request:
    def __init__(self, link, method, target, headers, body):
        self.link = link
        self.method = method
        self.target = target
        self.headers = headers
        self.body = body
        parts = urllib.parse.urlsplit(target)
        self.path = urllib.parse.unquote(parts.path)
        self.query = urllib.parse.parse_qs(parts.query,
                                           keep_blank_values=True)
        self.loses_answer = False
        self.extra_headers = {}  # of every answer to it

    def param(self, name, default=""):
        return self.query.get(name, [default])[0]

    def is_set(self, name):
        return self.param(name) in ("true", "1", "True", "TRUE", "t", "T")

    def word(self, header):
        return self.headers.get(header, "")

    def head(self, code, headers, length):
        """length: bytes, or None where the body is chunked"""
        if self.loses_answer:
            self.link.abort()
            raise Ended
        lines = [f"HTTP/1.1 {code} {http.HTTPStatus(code).phrase}"]
        fields = self.extra_headers | headers
        if length is None:
            fields["Transfer-Encoding"] = "chunked"
        elif code not in (101, 204):
            fields["Content-Length"] = str(length)
        lines += [f"{k}: {v}" for k, v in fields.items()]
        return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")

    async def answer(self, code, body=b"", content_type="application/json",
                     **headers):
        headers = {k.replace("_", "-"): v for k, v in headers.items()}
        if body:
            headers["Content-Type"] = content_type
        if len(body) > LENGTH_KNOWN_BYTES:
            stream = await self.stream(code, **headers)
            await stream.write(body)
            await stream.end()
        else:
            await self.link.write(self.head(code, headers, len(body)) + body)

    async def json(self, code, value, **headers):
        await self.answer(code, dumps(value), **headers)

    async def text(self, code, words, **headers):
        await self.answer(code, words.encode(), "text/plain; charset=utf-8",
                          X_Content_Type_Options="nosniff", **headers)

    async def stream(self, code, **headers):
        await self.link.write(self.head(code, headers, None))
        return Stream(self.link)


class Stream:
    """A chunked body."""

    def __init__(self, link):
        self.link = link

    async def write(self, data):
        if data:
            await self.link.write(b"%x\r\n%b\r\n" % (len(data), data))

    async def end(self):
        await self.link.write(b"0\r\n\r\n")


def dumps(value):
    """As Go writes JSON: what HTML could take for its own is escaped."""
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=False)
    for sign in "<>&":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return text.encode() + b"\n"


async def read_request(link):
    """The next one, or None at the end of the connection."""
    try:
        head = await link.take_until(b"\r\n\r\n", HEAD_BYTES)
        first, *rest = head.decode("latin-1").rstrip("\r\n").split("\r\n")
        method, target, _ = first.split(" ", 2)
        headers = {}
        for line in rest:
            name, _, value = line.partition(":")
            name, value = name.strip().lower(), value.strip()
            headers[name] = f"{headers[name]}, {value}" \
                if name in headers else value
        if headers.get("expect", "").lower() == "100-continue":
            await link.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        body = await read_body(link, headers)
    except Ended:
        return None
    except ValueError:
        await link.write(b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n"
                         b"Content-Type: text/plain; charset=utf-8\r\n\r\n"
                         b"400 Bad Request")
        return None
    return Request(link, method, target, headers, body)


async def read_body(link, headers):
    if "chunked" not in headers.get("transfer-encoding", "").lower():
        length = int(headers.get("content-length", 0))
        if length > BODY_BYTES:
            raise ValueError("too long")
        return await link.take(length)
    body = b""
    while True:
        line = await link.take_until(b"\r\n", 1024)
        size = int(line.split(b";")[0], 16)
        if size == 0:
            while await link.take_until(b"\r\n", HEAD_BYTES) != b"\r\n":
                pass
            return body
        body += await link.take(size)
        await link.take(2)
        if len(body) > BODY_BYTES:
            raise ValueError("too long")


class Listener:
    """Takes connections at a port of loopback."""

    def __init__(self, context, serve, port=0):
        self.context = context
        self.serve = serve
        self.port = port
        self.socket = None
        self.task = None
        self.is_silent = False  # connections are taken and left alone
        self.left_alone = []
        self.flow = asyncio.Event()
        self.flow.set()
        self.links = set()

    async def open(self):
        self.socket = socket.create_server(("127.0.0.1", self.port),
                                           backlog=512)
        self.socket.setblocking(False)
        self.port = self.socket.getsockname()[1]
        self.task = asyncio.ensure_future(self.accept())

    async def close(self):
        """Who comes now is refused."""
        if self.task is not None:
            # The loop has to let go of the socket before its number is free.
            self.task.cancel()
            await asyncio.wait([self.task])
            self.task = None
            self.socket.close()

    def abort_all(self):
        for link in list(self.links):
            link.abort()
        for left in self.left_alone:
            left.close()
        self.left_alone.clear()

    def go_on(self):
        """After a time of silence."""
        self.is_silent = False
        self.flow.set()
        for left in self.left_alone:
            asyncio.ensure_future(self.welcome(left))
        self.left_alone.clear()

    async def accept(self):
        loop = asyncio.get_running_loop()
        while True:
            connection, _ = await loop.sock_accept(self.socket)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if self.is_silent:
                self.left_alone.append(connection)
            else:
                asyncio.ensure_future(self.welcome(connection))

    async def welcome(self, connection):
        loop = asyncio.get_running_loop()
        offers = await offers_h2(connection)
        link = Link(self.run, self.flow)
        link.offers_h2 = offers
        with contextlib.suppress(OSError):  # what is no TLS is let go
            await loop.connect_accepted_socket(
                lambda: link, connection, ssl=self.context,
                ssl_handshake_timeout=HANDSHAKE_S)

    async def run(self, link):
        self.links.add(link)
        try:
            with contextlib.suppress(Ended):
                while (request := await read_request(link)) is not None:
                    if not await self.serve(request):
                        break
        finally:
            self.links.discard(link)
            link.close()


async def offers_h2(connection):
    """Whether a client's first words of TLS name HTTP/2: the real server
    would speak it then.  They are looked at and left where they are."""
    loop = asyncio.get_running_loop()
    ready = asyncio.Event()
    loop.add_reader(connection, ready.set)
    try:
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(ready.wait(), HANDSHAKE_S)
    finally:
        loop.remove_reader(connection)
    try:
        hello = connection.recv(4096, socket.MSG_PEEK)
    except OSError:
        return False
    return b"\x00\x10" in hello and b"\x02h2" in hello
