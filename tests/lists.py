"""The messages of schema/ipc.txt and the frames of schema/frame.txt, for tests
that speak the protocols themselves.

Names and fields come from the lists; the encoding is written here from what
schema/README.md says of it, and not from the C code, so that a mistake in one
of the two shows.
"""
import collections
import importlib
import os
import struct
import sys
import uuid

SCHEMA = os.path.join(os.path.dirname(os.path.dirname(
    os.path.abspath(__file__))), "schema")
NUMBERS = {"u8": "B", "u16": "H", "u32": "I", "u64": "Q", "i32": "i",
           "i64": "q", "bool": "?", "enum": "B"}


def read(name):
    """A list, as the generator reads it."""
    sys.path.insert(0, SCHEMA)
    try:
        gen = importlib.import_module("gen")
    finally:
        sys.path.remove(SCHEMA)
    return gen.load("msg", gen.Table(os.path.join(SCHEMA, name)))


def pack_bytes(data):
    if isinstance(data, str):
        data = data.encode()
    return struct.pack("<I", len(data)) + data


def pack_field(field, value):
    if field.kind in NUMBERS:
        return struct.pack("<" + NUMBERS[field.kind], value)
    if field.kind == "str":
        return pack_bytes(value) + b"\0"
    if field.kind == "bytes":
        return pack_bytes(value)
    if field.kind == "uuid":
        return value.bytes
    assert field.kind in ("fixed", "rest")
    return value.encode() if isinstance(value, str) else bytes(value)


class Cursor:
    """The fields of one message, in order; end() says that none is left."""

    def __init__(self, data):
        self.data = data

    def take(self, n):
        assert len(self.data) >= n, "a message is cut off"
        part, self.data = self.data[:n], self.data[n:]
        return bytes(part)

    def number(self, code):
        code = "<" + code
        return struct.unpack(code, self.take(struct.calcsize(code)))[0]

    def bytes(self):
        return self.take(self.number("I"))

    def field(self, field):
        """As the list has it, within its bounds."""
        if field.kind in NUMBERS:
            value = self.number(NUMBERS[field.kind])
            assert field.low <= value <= field.high
            return value
        if field.kind == "uuid":
            return uuid.UUID(bytes=self.take(16))
        if field.kind == "fixed":
            return self.take(field.high)
        if field.kind == "rest":
            return self.take(len(self.data))
        value = self.bytes()
        assert len(value) <= field.high
        if field.kind == "str":
            assert self.take(1) == b"\0" and b"\0" not in value
            return value.decode()
        return value

    def end(self):
        assert not self.data, "bytes left over in a message"


class Protocol:
    """One list: numbers by name, and bytes of fields by name."""

    def __init__(self, name):
        listing = self.listing = read(name)
        self.version = listing.version
        self.enums = {e.name: dict(e.values) for e in listing.enums}
        self.by_name = {m.name: m for m in listing.messages}
        self.by_number = {m.number: m for m in listing.messages}
        self.tuples = {
            m.name: collections.namedtuple(
                m.name, [f.name for f in self.fields(m.name)], rename=True)
            for m in listing.messages}

    def fields(self, name):
        """Those with bytes; descriptors come beside them."""
        return [f for f in self.by_name[name].fields if f.kind != "fd"]

    def number(self, name):
        return self.by_name[name].number

    def name(self, number):
        return self.by_number[number].name

    def spoken(self, direction):
        """Names of what may be said in that direction."""
        return [name for name, m in self.by_name.items()
                if m.direction.name == direction]

    def pack(self, name, /, **values):
        fields = self.fields(name)
        assert set(values) == {f.name for f in fields}, name
        return b"".join(pack_field(f, values[f.name]) for f in fields)

    def unpack(self, name, data):
        """A named tuple of the fields."""
        cursor = Cursor(data)
        out = self.tuples[name](*[cursor.field(f) for f in self.fields(name)])
        cursor.end()
        return out
