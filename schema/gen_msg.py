#!/usr/bin/python3
"""gen_msg.py header|source|markdown LIST - code and a page from a list

A list says what two programs may say to each other: schema/ipc.txt the
messages between our processes, schema/frame.txt the frames between a worker
and the agent in a sandbox.  From it come the types, the structs, what encodes
and decodes them (as tables for common/msg/codec.c), and for each direction a
table of typed handlers with the function that finds the right one.

The list, line by line ("#" begins a comment, in a line of its own):

    list messages               or: list frames
    version 2
    enum open_mode CREATE ADOPT values 0, 1, ... of one byte on the wire;
                                CREATE=3 counts on from 3
    channel control             messages only: what follows is said there
    states STARTED READY        and depends on these where it says "when"
    direction child_to_master   frames: direction up max 262208 (bytes of a
                                whole frame); what stands in a direction
                                both belongs to all others, too
    7 PEER_GONE of run when STARTED|READY: u32<63> index, str<400> why,
        fd? log
        -- What one line cannot say; for the page and the header.

A message has a number, unique in its list, a name, and its fields in their
order on the wire.  "of run" (messages only) says that the header's id is the
number of a run and gives the struct a field id; without it the id is 0.
"when" names the states that permit it; without it all do.

    u8 u16 u32 u64 i32 i64      little endian; u32<63> is at most 63,
                                u32<1..63> at least 1
    bool                        one byte, 0 or 1
    uuid                        16 bytes
    open_mode                   an enum of the list
    str<255>                    text of at most 255 bytes, with its NUL on
                                the wire; const char *
    bytes<1024>                 at most 1024 bytes; struct span
    bytes[32]                   exactly 32; const uint8_t *
    rest                        frames: all that is left; struct span, last
    fd                          messages: a descriptor beside the bytes; int
    fd?                         one that may be missing: -1; the last one

Texts and bytes of a decoded message are views into it.  Each text and byte
string has its bound as a macro: MSG_PEER_GONE_WHY_MAX.
"""
import re
import sys

NUMBERS = {"u8": 8, "u16": 16, "u32": 32, "u64": 64, "i32": 32, "i64": 64}
MESSAGE_MAX = 65536
MESSAGE_HEADER = 16
FRAME_HEADER = 8
FDS_MAX = 2
NAME = re.compile(r"[A-Z][A-Z0-9_]*\Z")
WORD = re.compile(r"[a-z][a-z0-9_]*\Z")
FIELD = re.compile(r"([a-z0-9_]+)(?:<([^>]*)>|\[([0-9]+)\])?(\?)?\s+(\S+)\Z")
MESSAGE = re.compile(
    r"([0-9]+)\s+(\S+?)(?:\s+of\s+(\S+?))?(?:\s+when\s+(\S+?))?"
    r"\s*(?::\s*(.*))?\Z")


class Fault(Exception):
    """What is wrong with a list, where."""


class Field:
    def __init__(self, kind, name):
        self.kind, self.name = kind, name
        self.low, self.high = 0, 0  # of a number; high: bytes of a string
        self.optional = False
        self.enum = None

    def spelling(self):
        """The type as the list has it."""
        if self.kind == "enum":
            return self.enum.name
        if self.kind == "fixed":
            return f"bytes[{self.high}]"
        if self.kind in ("str", "bytes"):
            return f"{self.kind}<{self.high}>"
        if self.kind == "fd":
            return "fd?" if self.optional else "fd"
        return self.kind + self.bounds()

    def bounds(self):
        if self.kind not in NUMBERS or self.range() == full(self.kind):
            return ""
        low, high = full(self.kind)
        if self.low == low:
            return f"<{self.high}>"
        return f"<{self.low}..{self.high}>"

    def range(self):
        return self.low, self.high

    def wire_max(self):
        """The most bytes that it takes."""
        fixed = {"bool": 1, "enum": 1, "uuid": 16, "fd": 0, "rest": 0,
                 "fixed": self.high, "str": 4 + self.high + 1,
                 "bytes": 4 + self.high}
        if self.kind in NUMBERS:
            return NUMBERS[self.kind] // 8
        return fixed[self.kind]


def full(kind):
    """What a number of this kind can be."""
    bits = NUMBERS[kind]
    if kind.startswith("i"):
        return -(1 << (bits - 1)), (1 << (bits - 1)) - 1
    return 0, (1 << bits) - 1


class Enum:
    def __init__(self, name):
        self.name = name
        self.values = []  # (NAME, number)


class Message:
    def __init__(self, number, name):
        self.number, self.name = number, name
        self.id = None  # what the header's id is a number of
        self.when = []
        self.fields = []
        self.text = []
        self.direction = None

    @property
    def low(self):
        return self.name.lower()

    def fds(self):
        return [f for f in self.fields if f.kind == "fd"]


class Direction:
    def __init__(self, name, channel):
        self.name, self.channel = name, channel
        self.max = MESSAGE_MAX
        self.messages = []
        self.shared = None  # the direction both, for the others

    @property
    def handled(self):
        """Its messages, and those of both."""
        return (self.shared.messages if self.shared else []) + self.messages


class Channel:
    def __init__(self, name):
        self.name = name
        self.states = []
        self.text = []
        self.directions = []


class Listing:
    """A list, parsed; parse() gives one that holds together."""

    def __init__(self, path):
        self.path = path
        self.kind = None
        self.version = None
        self.enums = []
        self.channels = []
        self.line = 0
        self.told = None  # what a "--" line tells of

    def fault(self, why):
        return Fault(f"{self.path}:{self.line}: {why}")

    @property
    def directions(self):
        return [d for c in self.channels for d in c.directions]

    @property
    def messages(self):
        return [m for d in self.directions for m in d.messages]

    def message(self, name):
        return next(m for m in self.messages if m.name == name)

    # ---- lines

    def on_list(self, words):
        if self.kind or words not in (["messages"], ["frames"]):
            raise self.fault('one "list messages" or "list frames"')
        self.kind = words[0]
        if self.kind == "frames":
            self.channels.append(Channel("link"))

    def on_version(self, words):
        if self.version or len(words) != 1 or not words[0].isdigit():
            raise self.fault('one "version N"')
        self.version = int(words[0])

    def on_enum(self, words):
        if len(words) < 2 or not WORD.match(words[0]):
            raise self.fault("enum NAME VALUE...")
        if words[0] in [e.name for e in self.enums] + list(NUMBERS) + [
                "bool", "uuid", "str", "bytes", "rest", "fd"]:
            raise self.fault(f"{words[0]} is a type already")
        enum = Enum(words[0])
        for word in words[1:]:
            name, _, number = word.partition("=")
            if number and (enum.values or not number.isdigit()):
                raise self.fault("only the first value has a number")
            value = int(number or 0)
            if enum.values:
                value = enum.values[-1][1] + 1
            if not NAME.match(name) or name in dict(enum.values):
                raise self.fault(f"{name} is no new name of a value")
            if value > 255:
                raise self.fault(f"{name} is {value}, more than a byte")
            enum.values.append((name, value))
        self.enums.append(enum)

    def on_channel(self, words):
        if self.kind != "messages" or len(words) != 1 or \
                not WORD.match(words[0]):
            raise self.fault("channel NAME, in a list of messages")
        self.told = Channel(words[0])
        self.channels.append(self.told)

    def on_states(self, words):
        if not self.channels or self.channels[-1].states or \
                self.channels[-1].directions:
            raise self.fault("states once, before the directions")
        if not words or not all(NAME.match(w) for w in words):
            raise self.fault("states NAME...")
        self.channels[-1].states = words

    def on_direction(self, words):
        if not self.channels:
            raise self.fault("a direction of no channel")
        if not words or not WORD.match(words[0]):
            raise self.fault("direction NAME")
        if words[0] in [d.name for d in self.directions]:
            raise self.fault(f"direction {words[0]} again")
        direction = Direction(words[0], self.channels[-1])
        if self.kind == "frames":
            if len(words) != 3 or words[1] != "max" or \
                    not words[2].isdigit():
                raise self.fault("direction NAME max BYTES")
            direction.max = int(words[2])
            if words[0] != "both":
                direction.shared = next(
                    (d for d in self.directions if d.name == "both"), None)
            elif self.directions:
                raise self.fault("direction both comes first")
        elif len(words) != 1:
            raise self.fault("direction NAME")
        self.channels[-1].directions.append(direction)

    def on_message(self, line):
        parts = MESSAGE.match(line)
        if not parts:
            raise self.fault("NUMBER NAME [of ID] [when STATES]: fields")
        number, name, of, when, fields = parts.groups()
        if not self.channels or not self.channels[-1].directions:
            raise self.fault("a message of no direction")
        message = Message(int(number), name)
        message.direction = self.channels[-1].directions[-1]
        self.check_new(message)
        message.id = self.check_id(of)
        message.when = self.check_states(when)
        if fields is not None:
            for text in fields.split(","):
                message.fields.append(self.field(message, text.strip()))
        self.check_whole(message)
        message.direction.messages.append(message)
        self.told = message

    def check_new(self, message):
        if not 0 < message.number < 1 << 16:
            raise self.fault(f"number {message.number}")
        if not NAME.match(message.name):
            raise self.fault(f"{message.name} is no name in capitals")
        for other in self.messages:
            if other.number == message.number:
                raise self.fault(
                    f"number {message.number} is {other.name} already")
            if other.name == message.name:
                raise self.fault(f"{message.name} again")

    def check_id(self, of):
        if of and (self.kind == "frames" or not WORD.match(of)):
            raise self.fault(f'"of {of}": a word, in a list of messages')
        return of

    def check_states(self, when):
        states = when.split("|") if when else []
        for state in states:
            if state not in self.channels[-1].states:
                raise self.fault(f"{state} is no state of this channel")
        return states

    def check_whole(self, message):
        fds = message.fds()
        if len(fds) > FDS_MAX:
            raise self.fault(f"more than {FDS_MAX} descriptors")
        if any(f.optional for f in fds[:-1]):
            raise self.fault("only the last descriptor may be missing")
        if any(f.kind == "rest" for f in message.fields[:-1]):
            raise self.fault("rest is the last field")
        most = sum(f.wire_max() for f in message.fields)
        most += FRAME_HEADER if self.kind == "frames" else MESSAGE_HEADER
        if most > message.direction.max:
            raise self.fault(f"{message.name} may have {most} bytes, "
                             f"more than {message.direction.max}")

    # ---- fields

    def field(self, message, text):
        parts = FIELD.match(text)
        if not parts:
            raise self.fault(f'"{text}" is not TYPE NAME')
        kind, bound, exact, optional, name = parts.groups()
        if not WORD.match(name) or name == "id" or \
                name in [f.name for f in message.fields]:
            raise self.fault(f"{name} is no new name of a field")
        if optional and kind != "fd":
            raise self.fault(f"{name}: only a descriptor may be missing")
        if exact and kind != "bytes":
            raise self.fault(f"{name}: only bytes have an exact size")
        field = Field(kind, name)
        field.optional = bool(optional)
        if kind in NUMBERS:
            field.low, field.high = self.number_range(field, bound)
        elif kind in ("str", "bytes"):
            field.high = self.size(field, bound, exact)
            field.kind = "fixed" if exact else kind
        elif bound is not None:
            raise self.fault(f"{name}: {kind} takes no bound")
        else:
            self.plain(field)
        return field

    def number_range(self, field, bound):
        low, high = full(field.kind)
        if bound is None:
            return low, high
        parts = re.fullmatch(r"(?:(-?[0-9]+)\.\.)?(-?[0-9]+)", bound)
        if not parts:
            raise self.fault(f"{field.name}: <{bound}> is no range")
        least = int(parts[1]) if parts[1] else low
        most = int(parts[2])
        if not low <= least <= most <= high:
            raise self.fault(f"{field.name}: {field.kind} is not <{bound}>")
        return least, most

    def size(self, field, bound, exact):
        text = exact or bound
        if not text:
            raise self.fault(f"{field.name}: {field.kind} needs a bound")
        if not text.isdigit() or not 0 < int(text) < 1 << 31:
            raise self.fault(f"{field.name}: {text} is no size")
        return int(text)

    def plain(self, field):
        allowed = {"fd": "messages", "rest": "frames"}
        field.enum = next(
            (e for e in self.enums if e.name == field.kind), None)
        if field.enum:
            field.kind = "enum"
            field.low = field.enum.values[0][1]
            field.high = field.enum.values[-1][1]
        elif field.kind in allowed:
            if self.kind != allowed[field.kind]:
                raise self.fault(f"{field.name}: {field.kind} is only for "
                                 f"{allowed[field.kind]}")
        elif field.kind == "bool":
            field.high = 1
        elif field.kind != "uuid":
            raise self.fault(f"{field.name}: unknown type {field.kind}")


def logical_lines(path):
    """(number, text): comments gone, continued lines joined."""
    out = []
    with open(path, encoding="utf-8") as f:
        for number, line in enumerate(f, 1):
            text = line.strip()
            if not text or text.startswith("#"):
                continue
            if line[0] in " \t" and not text.startswith("--"):
                if not out or not out[-1][1][0].isdigit():
                    raise Fault(f"{path}:{number}: continues no message")
                out[-1] = (out[-1][0], out[-1][1] + " " + text)
            else:
                out.append((number, text))
    return out


def parse(path):
    listing = Listing(path)
    for listing.line, text in logical_lines(path):
        words = text.split()
        on = getattr(listing, "on_" + words[0], None)
        if listing.kind is None and words[0] != "list":
            raise listing.fault('begins with "list messages" or "list frames"')
        if words[0] == "--":
            if listing.told is None:
                raise listing.fault("tells of nothing")
            listing.told.text.append(text[2:].strip())
        elif words[0][0].isdigit():
            listing.on_message(text)
        elif on is not None and words[0] != "message":
            on(words[1:])
        else:
            raise listing.fault(f"what is {words[0]}?")
    if listing.version is None or not listing.messages:
        raise listing.fault("a list has a version and a message")
    return listing


# ---- C

class Style:
    """What differs between messages and frames in the code."""

    def __init__(self, listing):
        messages = listing.kind == "messages"
        self.prefix = "msg" if messages else "frame"
        self.type = "ipc" if messages else "frame"
        self.packet = "struct ipc_msg" if messages else "struct frame"
        self.name = f"{self.prefix}_gen"
        self.include = "common/msg/chan.h" if messages else "common/frame.h"


C_TYPES = {"u8": "uint8_t ", "u16": "uint16_t ", "u32": "uint32_t ",
           "u64": "uint64_t ", "i32": "int32_t ", "i64": "int64_t ",
           "bool": "bool ", "uuid": "struct uuid ", "str": "const char *",
           "bytes": "struct span ", "fixed": "const uint8_t *",
           "rest": "struct span ", "fd": "int "}


def comment(lines):
    """A block comment of these lines, or nothing."""
    if not lines:
        return []
    out = ["/* " + lines[0]] + [f" * {line}".rstrip() for line in lines[1:]]
    out[-1] += " */"
    return out


def handler_type(style, message):
    const = "" if message.fds() else "const "
    return f"{const}struct {style.prefix}_{message.low} *"


def c_enums(listing, style):
    upper = style.type.upper()
    out = [f"#define {upper}_VERSION {listing.version}", "",
           f"enum {style.type}_type {{", f"\t{upper}_NONE = 0,"]
    out += [f"\t{upper}_{m.name} = {m.number}," for m in listing.messages]
    out += ["};", f"/* {style.type}_type_name - \"?\" for an unknown number "
            "*/", f"const char *{style.type}_type_name(unsigned int type);",
            ""]
    upper = style.prefix.upper()
    for enum in listing.enums:
        out.append(f"enum {style.prefix}_{enum.name} {{")
        out += [f"\t{upper}_{enum.name.upper()}_{name} = {value},"
                for name, value in enum.values]
        out += ["};", ""]
    for channel in listing.channels:
        if not channel.states:
            continue
        out.append(f"/* What a {channel.name} channel is at; OR-ed. */")
        out.append(f"enum {style.prefix}_{channel.name}_state {{")
        out += [f"\t{upper}_{channel.name.upper()}_{name} = {1 << i},"
                for i, name in enumerate(channel.states)]
        out += ["};", ""]
    return out


def member(style, field):
    if field.kind == "enum":
        kind = f"enum {style.prefix}_{field.enum.name} "
    else:
        kind = C_TYPES[field.kind]
    note = ""
    if field.kind in ("str", "bytes", "fixed") or field.bounds():
        note = f" /* {field.spelling()} */"
    elif field.optional:
        note = " /* or -1 */"
    return f"\t{kind}{field.name};{note}"


def c_struct(style, message):
    upper = f"{style.prefix}_{message.name}".upper()
    out = comment(message.text)
    out.append(f"struct {style.prefix}_{message.low} {{")
    if message.id:
        out.append(f"\tuint64_t id; /* {message.id} */")
    out += [member(style, f) for f in message.fields]
    if not message.id and not message.fields:
        out.append("\tchar nothing;")
    out.append("};")
    out += [f"#define {upper}_{f.name.upper()}_MAX {f.high}"
            for f in message.fields if f.kind in ("str", "bytes")]
    return out


def prototypes(style, message):
    """What each message has: (return type, name and arguments)."""
    struct = f"struct {style.prefix}_{message.low}"
    get = ("int", f"{style.prefix}_get_{message.low}({style.packet} *in, "
           f"{struct} *m, struct err *e)")
    if style.prefix == "msg":
        return [("void", f"msg_send_{message.low}(struct ipc_chan *c, "
                 f"const {struct} *m)"), get]
    return [("int", f"frame_put_{message.low}(struct buf *b, "
             f"const {struct} *m)"), get]


def dispatch_prototype(style, direction):
    state = "unsigned int state, " if direction.channel.states else ""
    return (f"{style.prefix}_dispatch_{direction.name}("
            f"const struct {style.prefix}_{direction.name} *h, {state}"
            f"{style.packet} *in, void *arg, struct err *e)")


def c_direction(style, direction):
    out = [f"struct {style.prefix}_{direction.name} {{"]
    out += [f"\tint (*on_{m.low})(void *arg, {handler_type(style, m)}m, "
            "struct err *e);" for m in direction.handled]
    out += ["};", f"int {dispatch_prototype(style, direction)} MUSTCHECK;"]
    return out + c_each(style, direction, direction.handled)


def c_each(style, direction, messages):
    upper = f"{style.prefix}_{direction.name}".upper()
    rows = [f"\tX({m.low}, {'' if m.fds() else 'const'})" for m in messages]
    return ["/* Its messages, for tests: X(name, const or nothing) */",
            f"#define {upper}_EACH(X) \\", " \\\n".join(rows), ""]


INTRO = {
    "messages": """\
msg_gen.h - what our processes say to each other

msg_send_x encodes and sends.  Descriptors in *m are the channel's from then
on; 0 or less is none.  NULL is sent as "".  What is over a bound is our bug
and ends the process.
msg_get_x decodes and checks every bound, that the descriptors are those of
the list, and that nothing is left over: 0, or ERR_PROTO.  Texts and bytes are
views into the message; descriptors are the caller's after success.

msg_dispatch_x calls the handler of a message of one direction.  A NULL
handler, a message of another direction or one that the list does not permit
in this state is a protocol error.  Descriptors that a handler wants to keep
it takes with msg_take_fd; the others are closed when it returns.""",
    "frames": """\
frame_gen.h - what worker and agent say to each other

frame_put_x appends a whole frame: 0, or -1 and nothing changed when it does
not fit into b's limit.  NULL is sent as "".  What is over a bound is our bug
and ends the process.  A rest whose p is NULL is counted but not written: the
sender puts its n bytes behind the frame itself.
frame_get_x decodes and checks every bound and that nothing is left over: 0,
or ERR_PROTO.  Texts and bytes are views into the frame.

frame_dispatch_x calls the handler of a frame of one direction.  A NULL
handler or a frame of another direction is a protocol error.""",
}


def c_header(listing):
    style = Style(listing)
    guard = f"COMMON_MSG_{style.name.upper()}_H"
    source = listing.path.rsplit("/", 1)[-1]
    out = [f"/* Made from schema/{source} by schema/gen_msg.py. */"]
    out += comment(INTRO[listing.kind].split("\n"))
    out += [f"#ifndef {guard}", f"#define {guard}", "",
            f'#include "{style.include}"', '#include "common/uuid.h"', ""]
    out += c_enums(listing, style)
    for direction in listing.directions:
        if style.prefix == "frame":
            out.append(f"#define FRAME_{direction.name.upper()}_MAX "
                       f"{direction.max}")
        for m in direction.messages:
            out += c_struct(style, m)
            for kind, rest in prototypes(style, m):
                must = " MUSTCHECK" if kind == "int" else ""
                out.append(f"{kind} {rest}{must};")
            out.append("")
        if direction.name == "both":
            out += c_each(style, direction, direction.messages)
        else:
            out += c_direction(style, direction)
    out += ["struct codec;", f"/* {style.prefix}_codec - NULL for an unknown "
            "number */",
            f"const struct codec *{style.prefix}_codec(unsigned int type);",
            "", "#endif"]
    return out


def c_codec(style, m):
    struct = f"struct {style.prefix}_{m.low}"
    out = []
    if m.fields:
        out.append(f"static const struct codec_field fields_{m.low}[] = {{")
        for f in m.fields:
            low, high = f.low, f.high
            if f.kind == "fd":
                low = 0 if f.optional else 1
            least = "INT64_MIN" if low == -(1 << 63) else f"INT64_C({low})"
            most = f"UINT64_C({high})" if high >= 0 else f"(uint64_t){high}"
            out.append(
                f'\t{{"{f.name}", offsetof({struct}, {f.name}), '
                f"CODEC_{f.kind.upper()}, {least}, {most}}},")
        out.append("};")
    fields = f"fields_{m.low}" if m.fields else "NULL"
    out += [f"static const struct codec codec_{m.low} = {{",
            f'\t.type = {m.number}, .name = "{m.name}",',
            f"\t.has_id = {'true' if m.id else 'false'},",
            f"\t.size = sizeof({struct}),",
            f"\t.nfields = {len(m.fields)}, .fields = {fields},", "};", ""]
    return out


def c_functions(style, m):
    out = []
    for kind, rest in prototypes(style, m):
        out += [kind, rest, "{"]
        if rest.startswith("msg_send"):
            out.append(f"\tipc_chan_send(c, &codec_{m.low}, m);")
        elif rest.startswith("frame_put"):
            out.append(f"\treturn frame_put(b, &codec_{m.low}, m);")
        elif style.prefix == "msg":
            out.append(f"\treturn ipc_msg_get(in, &codec_{m.low}, m, e);")
        else:
            out.append(f"\treturn frame_get(in, &codec_{m.low}, m, e);")
        out += ["}", ""]
    return out


def c_case(style, direction, m):
    out = [f"\tcase {style.type.upper()}_{m.name}:",
           f"\t\tif (h->on_{m.low} == NULL)", "\t\t\tbreak;"]
    if m.when:
        prefix = f"{style.prefix}_{direction.channel.name}_".upper()
        states = " | ".join(prefix + s for s in m.when)
        out += [f"\t\tif ((state & ({states})) == 0)",
                f"\t\t\treturn codec_not_now(&codec_{m.low}, e);"]
    out += [f"\t\trc = {style.prefix}_get_{m.low}(in, &m.{m.low}, e);",
            "\t\tif (rc != 0)", "\t\t\treturn rc;",
            f"\t\trc = h->on_{m.low}(arg, &m.{m.low}, e);"]
    if m.fds():
        out.append(f"\t\tcodec_close_fds(&codec_{m.low}, &m.{m.low});")
    out.append(f"\t\treturn codec_handled(&codec_{m.low}, rc, e);")
    return out


def c_dispatch(style, direction):
    out = ["int", dispatch_prototype(style, direction), "{", "\tunion {"]
    out += [f"\t\tstruct {style.prefix}_{m.low} {m.low};"
            for m in direction.handled]
    out += ["\t} m;", "\tint rc;", ""]
    if direction.channel.states and \
            not any(m.when for m in direction.handled):
        out.append("\t(void)state;")
    out.append("\tswitch (in->type) {")
    for m in direction.handled:
        out += c_case(style, direction, m)
    out += ["\tdefault:", "\t\tbreak;", "\t}",
            f"\treturn codec_not_here({style.prefix}_codec(in->type), "
            "in->type, e);", "}", ""]
    return out


def c_source(listing):
    style = Style(listing)
    source = listing.path.rsplit("/", 1)[-1]
    out = [f"/* Made from schema/{source} by schema/gen_msg.py. */",
           f'#include "common/msg/{style.name}.h"', "",
           '#include "common/msg/codec.h"']
    out.append("")
    for m in listing.messages:
        out += c_codec(style, m)
    last = max(m.number for m in listing.messages)
    out += [f"static const struct codec *const codecs[{last + 1}] = {{"]
    out += [f"\t[{m.number}] = &codec_{m.low}," for m in listing.messages]
    out += ["};", "", "const struct codec *",
            f"{style.prefix}_codec(unsigned int type)", "{",
            f"\treturn type <= {last} ? codecs[type] : NULL;", "}", "",
            "const char *", f"{style.type}_type_name(unsigned int type)", "{",
            f"\tconst struct codec *c = {style.prefix}_codec(type);", "",
            '\treturn c != NULL ? c->name : "?";', "}", ""]
    for m in listing.messages:
        out += c_functions(style, m)
    for direction in listing.directions:
        if direction.name != "both":
            out += c_dispatch(style, direction)
    return out


# ---- the page

def markdown_rows(direction):
    messages = direction.channel.name != "link"
    head = ["nr", "name", "id of", "when", "fields"] if messages else [
        "nr", "name", "fields"]
    rows = [head, ["---"] * len(head)]
    for m in direction.messages:
        fields = ", ".join(f"{f.spelling()} {f.name}" for f in m.fields)
        row = [str(m.number), m.name]
        if messages:
            row += [m.id or "-", " or ".join(m.when) or "-"]
        rows.append(row + [f"`{fields}`" if fields else "-"])
    out = [f"| {' | '.join(row)} |" for row in rows]
    notes = [f"- {m.name}: {' '.join(m.text)}"
             for m in direction.messages if m.text]
    return out + ([""] + notes if notes else [])


def markdown(listing):
    frames = listing.kind == "frames"
    source = listing.path.rsplit("/", 1)[-1]
    out = ["# Frames between worker and agent" if frames else
           "# Messages between the processes", "",
           f"Made from `schema/{source}` by `schema/gen_msg.py markdown`; a "
           "lint compares them.",
           "`schema/gen_msg.py` tells what the types are."]
    for enum in listing.enums:
        values = ", ".join(f"{n} {v}" for n, v in enum.values)
        out += ["", f"`{enum.name}`: {values}"]
    for channel in listing.channels:
        if not frames:
            out += ["", f"## {channel.name.capitalize()} channel"]
        if channel.text:
            out += [""] + channel.text
        if channel.states:
            out += ["", f"States: {', '.join(channel.states)}."]
        for direction in channel.directions:
            most = f", at most {direction.max} bytes" if frames else ""
            out += ["", f"### {direction.name.replace('_', ' ')}{most}", ""]
            out += markdown_rows(direction)
    return out


OUTPUTS = {"header": c_header, "source": c_source, "markdown": markdown}


def main(argv):
    if len(argv) != 3 or argv[1] not in OUTPUTS:
        sys.exit("usage: gen_msg.py header|source|markdown LIST")
    try:
        lines = OUTPUTS[argv[1]](parse(argv[2]))
    except Fault as fault:
        sys.exit(str(fault))
    print("\n".join(lines))


if __name__ == "__main__":
    main(sys.argv)
