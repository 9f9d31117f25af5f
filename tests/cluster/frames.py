"""The server's side of WebSocket (RFC 6455), as Go's library has it behind
the API server: it takes every frame for a message.

What a client must not send is written down as a violation, and then treated
as the real server treats it.
"""
import base64
import hashlib
import struct

GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
TEXT, BINARY, CLOSE, PING, PONG = 1, 2, 8, 9, 10
MESSAGE_BYTES = 32 << 20
NORMAL, PROTOCOL_ERROR = 1000, 1002


class Closed(Exception):
    """The peer closed as it should, or was sent away."""


def accept_key(key):
    return base64.b64encode(
        hashlib.sha1(key.encode() + GUID).digest()).decode()


def frame(opcode, data, is_last=True):
    length, first = len(data), opcode | (0x80 if is_last else 0)
    if length < 126:
        head = struct.pack("!BB", first, length)
    elif length < 1 << 16:
        head = struct.pack("!BBH", first, 126, length)
    else:
        head = struct.pack("!BBQ", first, 127, length)
    return head + data


class Socket:
    """A connection that became a WebSocket."""

    def __init__(self, link, violate, is_split):
        self.link = link
        self.violate = violate  # violate(words)
        self.is_split = is_split  # is_split(): send in fragments
        self.has_closed = False

    async def message(self):
        """The payload of the next frame of data; raises Closed, or
        web.Ended."""
        while True:
            opcode, data = await self.next_frame()
            if opcode == CLOSE:
                raise Closed
            if opcode == PING:
                await self.link.write(frame(PONG, data))
            elif opcode != PONG:
                return data

    async def next_frame(self):
        first, second = await self.link.take(2)
        length = second & 0x7f
        if length >= 126:
            size = 2 if length == 126 else 8
            length = int.from_bytes(await self.link.take(size), "big")
        if not second & 0x80:
            self.violate("a frame without a mask")
            await self.link.write(frame(
                CLOSE, struct.pack("!H", PROTOCOL_ERROR)))
            self.close()
            raise Closed
        if length > MESSAGE_BYTES:
            self.violate(f"a message of {length} bytes")
            self.link.abort()
            raise Closed
        opcode = first & 0x0f
        if not first & 0x80 or opcode == 0:
            self.violate("a message in fragments")
        if first & 0x70:
            self.violate("a frame with reserved bits")
        mask = await self.link.take(4)
        return opcode, unmasked(await self.link.take(length), mask)

    async def send(self, data, opcode=BINARY):
        if self.is_split():
            half = len(data) // 2
            await self.link.write(frame(opcode, data[:half], is_last=False) +
                                  frame(0, data[half:]))
        else:
            await self.link.write(frame(opcode, data))

    async def ping(self):
        await self.link.write(frame(PING, b"ping"))

    def close(self):
        if not self.has_closed:
            self.has_closed = True
            self.link.write_last(frame(CLOSE, struct.pack("!H", NORMAL)))
        self.link.close()


def unmasked(data, mask):
    size = len(data)
    key = int.from_bytes(mask * (size // 4 + 1), "big") >> \
        8 * (4 - size % 4) if size else 0
    return (int.from_bytes(data, "big") ^ key).to_bytes(size, "big")
