"""The Docker engine at its Unix socket, for asyncio."""
import asyncio
import contextlib
import json
import urllib.parse

READ_BYTES = 1 << 16


class EngineError(Exception):
    def __init__(self, status, message):
        super().__init__(message)
        self.status = status


class Engine:
    def __init__(self, host):
        if not host.startswith("unix://"):
            raise SystemExit("set DOCKER_HOST to unix:///PATH of an engine")
        self.path = host.removeprefix("unix://")

    async def open(self, method, path, body=None, headers=None, /,
                   **query):
        """(status, headers, reader, writer), the body still to be read."""
        target = path
        if query:
            target += "?" + urllib.parse.urlencode(
                {k: v if isinstance(v, (str, int)) else json.dumps(v)
                 for k, v in query.items()})
        if body is not None and not isinstance(body, bytes):
            body = json.dumps(body).encode()
        fields = {"Host": "engine", "Content-Type": "application/json",
                  "Content-Length": str(len(body or b""))} | (headers or {})
        reader, writer = await asyncio.open_unix_connection(
            self.path, limit=1 << 20)
        lines = "".join(f"{k}: {v}\r\n" for k, v in fields.items())
        writer.write(f"{method} {target} HTTP/1.1\r\n{lines}\r\n".encode() +
                     (body or b""))
        head = await reader.readuntil(b"\r\n\r\n")
        first, *rest = head.decode("latin-1").rstrip().split("\r\n")
        found = {k.strip().lower(): v.strip() for k, v in
                 (line.split(":", 1) for line in rest)}
        return int(first.split(" ")[1]), found, reader, writer

    async def ask(self, method, path, body=None, headers=None, /, **query):
        """The JSON or bytes of the answer; raises EngineError."""
        status, found, reader, writer = await self.open(
            method, path, body, headers, **query)
        try:
            data = b"".join([part async for part in parts(found, reader)])
        finally:
            writer.close()
        is_json = "json" in found.get("content-type", "")
        if status >= 400:
            with contextlib.suppress(ValueError, KeyError):
                data = json.loads(data)["message"]
            raise EngineError(status, data if isinstance(data, str)
                              else data.decode(errors="replace"))
        return json.loads(data) if is_json and data.strip() else data

    async def hijack(self, path, body=None, /, **query):
        """(reader, writer) of a stream of raw bytes both ways."""
        status, found, reader, writer = await self.open(
            "POST", path, body, {"Connection": "Upgrade", "Upgrade": "tcp"},
            **query)
        if status not in (101, 200):
            data = b"".join([part async for part in parts(found, reader)])
            writer.close()
            with contextlib.suppress(ValueError, KeyError):
                data = json.loads(data)["message"].encode()
            raise EngineError(status, data.decode(errors="replace"))
        return reader, writer


async def parts(headers, reader):
    """The body of an answer, as it comes."""
    if "chunked" in headers.get("transfer-encoding", ""):
        while size := int(await reader.readline(), 16):
            yield await reader.readexactly(size)
            await reader.readexactly(2)
    elif "content-length" in headers:
        yield await reader.readexactly(int(headers["content-length"]))
    elif headers.get("connection") == "close":
        while data := await reader.read(READ_BYTES):
            yield data


async def frames(reader, is_tty):
    """(channel, bytes) of a hijacked stream: 1 standard output, 2 error."""
    while True:
        if is_tty:
            data = await reader.read(READ_BYTES)
            if not data:
                return
            yield 1, data
            continue
        try:
            head = await reader.readexactly(8)
            yield head[0], await reader.readexactly(
                int.from_bytes(head[4:], "big"))
        except asyncio.IncompleteReadError:
            return
