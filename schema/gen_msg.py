"""Kind msg of gen.py: ipc.txt, the messages between our processes, and
frame.txt, the frames between a worker and the agent in a sandbox; README.md
says how they are written.

From a list come the types, the structs, what encodes and decodes them (as
tables for common/msg/codec.c), and for each direction a table of typed
handlers with the function that finds the right one.
"""
import re

from gen_table import MADE_C, guarded, markdown_table, need

# type: (in C, bytes on the wire beside those of its bound)
TYPES = {"u8": ("uint8_t ", 1), "u16": ("uint16_t ", 2),
         "u32": ("uint32_t ", 4), "u64": ("uint64_t ", 8),
         "i32": ("int32_t ", 4), "i64": ("int64_t ", 8), "bool": ("bool ", 1),
         "uuid": ("struct uuid ", 16), "str": ("const char *", 5),
         "bytes": ("struct span ", 4), "fixed": ("const uint8_t *", 0),
         "rest": ("struct span ", 0), "fd": ("int ", 0)}
NUMBERS = ("u8", "u16", "u32", "u64", "i32", "i64")
ONLY_FOR = {"fd": "messages", "rest": "frames"}
MESSAGE_MAX = 65536
HEADER = {"messages": 16, "frames": 8}
FDS_MAX = 2
NAME = re.compile(r"[A-Z][A-Z0-9_]*\Z")
WORD = re.compile(r"[a-z][a-z0-9_]*\Z")
FIELD = re.compile(r"([a-z0-9_]+)(?:<([^>]*)>|\[([0-9]+)\])?(\?)?\s+(\S+)\Z")
RANGE = re.compile(r"(?:(-?[0-9]+)\.\.)?(-?[0-9]+)\Z")
MESSAGE = re.compile(
    r"([0-9]+)\s+(\S+?)(?:\s+of\s+(\S+?))?(?:\s+when\s+(\S+?))?"
    r"\s*(?::\s*(.*))?\Z")


# ---- the list

def full(kind):
    """What a number of this kind can be."""
    bits = 8 * TYPES[kind][1]
    if kind.startswith("i"):
        return -(1 << (bits - 1)), (1 << (bits - 1)) - 1
    return 0, (1 << bits) - 1


class Field:
    """low and high are a number's; high is also the bound of a string."""

    def __init__(self, listing, text):
        found = FIELD.match(text)
        need(found, f'"{text}" is not TYPE NAME')
        self.kind, bound, exact, optional, self.name = found.groups()
        need(WORD.match(self.name) and self.name != "id",
             f"{self.name} is no new name of a field")
        need(not optional or self.kind == "fd",
             f"{self.name}: only a descriptor may be missing")
        need(not exact or self.kind == "bytes",
             f"{self.name}: only bytes have an exact size")
        self.optional, self.enum = bool(optional), None
        self.low, self.high = 0, int(self.kind == "bool")
        if self.kind in NUMBERS:
            self.take_range(bound)
        elif self.kind in ("str", "bytes"):
            self.take_size(exact or bound)
            self.kind = "fixed" if exact else self.kind
        else:
            need(bound is None, f"{self.name}: {self.kind} takes no bound")
            self.take_plain(listing)

    def take_range(self, bound):
        low, high = self.low, self.high = full(self.kind)
        if bound is None:
            return
        found = RANGE.match(bound)
        need(found, f"{self.name}: <{bound}> is no range")
        self.low, self.high = int(found[1] or low), int(found[2])
        need(low <= self.low <= self.high <= high,
             f"{self.name}: {self.kind} is not <{bound}>")

    def take_size(self, text):
        need(text, f"{self.name}: {self.kind} needs a bound")
        need(text.isdigit() and 0 < int(text) < 1 << 31,
             f"{self.name}: {text} is no size")
        self.high = int(text)

    def take_plain(self, listing):
        self.enum = next(
            (e for e in listing.enums if e.name == self.kind), None)
        if self.enum:
            self.kind = "enum"
            self.low, self.high = (self.enum.values[i][1] for i in (0, -1))
            return
        need(self.kind in TYPES, f"{self.name}: unknown type {self.kind}")
        only = ONLY_FOR.get(self.kind, listing.kind)
        need(only == listing.kind,
             f"{self.name}: {self.kind} is only for {only}")

    def bounds(self):
        """The range as the list has it; nothing for all of its type."""
        if self.kind not in NUMBERS or \
                (self.low, self.high) == full(self.kind):
            return ""
        least = "" if self.low == full(self.kind)[0] else f"{self.low}.."
        return f"<{least}{self.high}>"

    def spelling(self):
        """The type as the list has it."""
        return {"enum": self.enum and self.enum.name,
                "fixed": f"bytes[{self.high}]", "str": f"str<{self.high}>",
                "bytes": f"bytes<{self.high}>",
                "fd": "fd?" if self.optional else "fd"}.get(
                    self.kind, self.kind + self.bounds())

    def wire_max(self):
        if self.kind == "enum":
            return 1
        sized = self.kind in ("str", "bytes", "fixed")
        return TYPES[self.kind][1] + (self.high if sized else 0)


class Enum:
    def __init__(self, name):
        self.name = name
        self.values = []  # (NAME, number)


class Message:
    def __init__(self, number, name, of, direction):
        self.number, self.name, self.direction = int(number), name, direction
        self.id = of  # what the header's id is a number of
        self.low = name.lower()
        self.when, self.fields, self.text = [], [], []

    def fds(self):
        return [f for f in self.fields if f.kind == "fd"]


class Direction:
    def __init__(self, name, channel, most, both):
        self.name, self.channel, self.max = name, channel, most
        self.both = both  # the direction both, for the others
        self.messages = []

    @property
    def handled(self):
        return (self.both.messages if self.both else []) + self.messages


class Channel:
    def __init__(self, name):
        self.name = name
        self.states, self.text, self.directions = [], [], []


class Listing:
    def __init__(self, table):
        self.kind = self.version = None
        self.enums, self.channels = [], []
        self.told = None  # what a "--" line tells of
        for table.line, text in joined(table):
            self.take(text)
        need(self.version is not None and self.messages,
             "a list has a version and a message")

    def take(self, text):
        words = text.split()
        need(self.kind or words[0] == "list",
             'begins with "list messages" or "list frames"')
        if words[0] == "--":
            need(self.told, "tells of nothing")
            self.told.text.append(text[2:].strip())
        elif words[0][0].isdigit():
            self.take_message(text)
        else:
            on = getattr(self, "on_" + words[0], None)
            need(on, f"what is {words[0]}?")
            on(words[1:])

    @property
    def directions(self):
        return [d for c in self.channels for d in c.directions]

    @property
    def messages(self):
        return [m for d in self.directions for m in d.messages]

    def message(self, name):
        return next(m for m in self.messages if m.name == name)

    def on_list(self, words):
        need(not self.kind and words in (["messages"], ["frames"]),
             'one "list messages" or "list frames"')
        self.kind = words[0]
        if self.kind == "frames":
            self.channels.append(Channel("link"))

    def on_version(self, words):
        need(not self.version and len(words) == 1 and words[0].isdigit(),
             'one "version N"')
        self.version = int(words[0])

    def on_enum(self, words):
        need(len(words) >= 2 and WORD.match(words[0]), "enum NAME VALUE...")
        need(words[0] not in [e.name for e in self.enums] + list(TYPES),
             f"{words[0]} is a type already")
        enum = Enum(words[0])
        for word in words[1:]:
            name, _, number = word.partition("=")
            need(not number or not enum.values and number.isdigit(),
                 "only the first value has a number")
            value = enum.values[-1][1] + 1 if enum.values else int(number or 0)
            need(NAME.match(name) and name not in dict(enum.values),
                 f"{name} is no new name of a value")
            need(value <= 255, f"{name} is {value}, more than a byte")
            enum.values.append((name, value))
        self.enums.append(enum)

    def on_channel(self, words):
        need(self.kind == "messages" and len(words) == 1
             and WORD.match(words[0]), "channel NAME, in a list of messages")
        self.told = Channel(words[0])
        self.channels.append(self.told)

    def on_states(self, words):
        need(self.channels and not self.channels[-1].states
             and not self.channels[-1].directions,
             "states once, before the directions")
        need(words and all(NAME.match(w) for w in words), "states NAME...")
        self.channels[-1].states = words

    def on_direction(self, words):
        need(self.channels, "a direction of no channel")
        frames = self.kind == "frames"
        need(re.fullmatch("[a-z][a-z0-9_]*"
                          + (" max [0-9]+" if frames else ""),
                          " ".join(words)),
             "direction NAME max BYTES" if frames else "direction NAME")
        name, known = words[0], {d.name: d for d in self.directions}
        need(name not in known, f"direction {name} again")
        need(not frames or name != "both" or not known,
             "direction both comes first")
        self.channels[-1].directions.append(Direction(
            name, self.channels[-1], int(words[2]) if frames else MESSAGE_MAX,
            known.get("both") if frames else None))

    def take_message(self, text):
        found = MESSAGE.match(text)
        need(found, "NUMBER NAME [of ID] [when STATES]: fields")
        number, name, of, when, fields = found.groups()
        need(self.channels and self.channels[-1].directions,
             "a message of no direction")
        channel = self.channels[-1]
        m = Message(number, name, of, channel.directions[-1])
        self.check_new(m)
        m.when = when.split("|") if when else []
        for state in m.when:
            need(state in channel.states,
                 f"{state} is no state of this channel")
        for field in fields.split(",") if fields is not None else []:
            m.fields.append(Field(self, field.strip()))
        self.check_whole(m)
        m.direction.messages.append(m)
        self.told = m

    def check_new(self, m):
        need(0 < m.number < 1 << 16, f"number {m.number}")
        need(NAME.match(m.name), f"{m.name} is no name in capitals")
        need(not m.id or self.kind == "messages" and WORD.match(m.id),
             f'"of {m.id}": a word, in a list of messages')
        for other in self.messages:
            need(other.number != m.number,
                 f"number {m.number} is {other.name} already")
            need(other.name != m.name, f"{m.name} again")

    def check_whole(self, m):
        names = [f.name for f in m.fields]
        for i, name in enumerate(names):
            need(name not in names[:i], f"{name} is no new name of a field")
        need(len(m.fds()) <= FDS_MAX, f"more than {FDS_MAX} descriptors")
        need(not any(f.optional for f in m.fds()[:-1]),
             "only the last descriptor may be missing")
        need(not any(f.kind == "rest" for f in m.fields[:-1]),
             "rest is the last field")
        most = HEADER[self.kind] + sum(f.wire_max() for f in m.fields)
        need(most <= m.direction.max, f"{m.name} may have {most} bytes, "
             f"more than {m.direction.max}")


def joined(table):
    """(number, text), continued lines joined."""
    out = []
    for text in table:
        if text[0] in " \t" and not text.strip().startswith("--"):
            need(out and out[-1][1][0].isdigit(), "continues no message")
            number, whole = out.pop()
            out.append((number, f"{whole} {text.strip()}"))
        else:
            out.append((table.line, text.strip()))
    return out


# ---- C

class Style:
    """What differs between messages and frames in the code."""

    def __init__(self, listing):
        messages = listing.kind == "messages"
        self.prefix = "msg" if messages else "frame"
        self.type = "ipc" if messages else "frame"
        self.packet = "struct ipc_msg" if messages else "struct frame"
        self.include = "common/msg/chan.h" if messages else "common/frame.h"

    def struct(self, m):
        return f"struct {self.prefix}_{m.low}"

    def handled(self, m):
        """What a handler is given; descriptors are taken out of it."""
        return f"{'' if m.fds() else 'const '}{self.struct(m)} *"

    def prototypes(self, m):
        """(type, name and arguments) of what encodes and what decodes it."""
        get = ("int", f"{self.prefix}_get_{m.low}({self.packet} *in, "
               f"{self.struct(m)} *m, struct err *e)")
        if self.prefix == "msg":
            return [("void", f"msg_send_{m.low}(struct ipc_chan *c, "
                     f"const {self.struct(m)} *m)"), get]
        return [("int", f"frame_put_{m.low}(struct buf *b, "
                 f"const {self.struct(m)} *m)"), get]

    def dispatch(self, direction):
        state = "unsigned int state, " if direction.channel.states else ""
        return (f"{self.prefix}_dispatch_{direction.name}("
                f"const struct {self.prefix}_{direction.name} *h, {state}"
                f"{self.packet} *in, void *arg, struct err *e)")


def comment(lines):
    """A block comment of these lines, or nothing."""
    return [f"/* {lines[0]}", *(f" * {text}".rstrip() for text in lines[1:])
            ] if lines else []


def closed(lines):
    return lines and lines[:-1] + [lines[-1] + " */"]


def enumeration(name, values):
    return [f"enum {name} {{", *(f"\t{n} = {v}," for n, v in values), "};"]


def c_enums(listing, style):
    upper = style.type.upper()
    types = [(f"{upper}_NONE", 0)] + [
        (f"{upper}_{m.name}", m.number) for m in listing.messages]
    out = [f"#define {upper}_VERSION {listing.version}", "",
           *enumeration(f"{style.type}_type", types),
           f'/* {style.type}_type_name - "?" for an unknown number */',
           f"const char *{style.type}_type_name(unsigned int type);", ""]
    upper = style.prefix.upper()
    for enum in listing.enums:
        out += [*enumeration(f"{style.prefix}_{enum.name}", (
            (f"{upper}_{enum.name.upper()}_{name}", value)
            for name, value in enum.values)), ""]
    for channel in listing.channels:
        if channel.states:
            out += [f"/* What a {channel.name} channel is at; OR-ed. */",
                    *enumeration(f"{style.prefix}_{channel.name}_state", (
                        (f"{upper}_{channel.name.upper()}_{name}", 1 << i)
                        for i, name in enumerate(channel.states))), ""]
    return out


def member(style, f):
    kind = f"enum {style.prefix}_{f.enum.name} " if f.enum else \
        TYPES[f.kind][0]
    note = " /* or -1 */" if f.optional else ""
    if f.kind in ("str", "bytes", "fixed") or f.bounds():
        note = f" /* {f.spelling()} */"
    return f"\t{kind}{f.name};{note}"


def c_struct(style, m):
    upper = f"{style.prefix}_{m.name}".upper()
    members = [f"\tuint64_t id; /* {m.id} */"] if m.id else []
    members += [member(style, f) for f in m.fields]
    return [*closed(comment(m.text)), f"{style.struct(m)} {{",
            *(members or ["\tchar nothing;"]), "};",
            *(f"#define {upper}_{f.name.upper()}_MAX {f.high}"
              for f in m.fields if f.kind in ("str", "bytes"))]


def c_each(style, direction):
    upper = f"{style.prefix}_{direction.name}".upper()
    rows = [f"\tX({m.low}, {'' if m.fds() else 'const'})"
            for m in direction.handled]
    return ["/* Its messages, for tests: X(name, const or nothing) */",
            f"#define {upper}_EACH(X) \\", " \\\n".join(rows), ""]


def c_direction(style, direction):
    out = []
    if style.prefix == "frame":
        out.append(
            f"#define FRAME_{direction.name.upper()}_MAX {direction.max}")
    for m in direction.messages:
        out += c_struct(style, m)
        out += [f"{kind} {rest}{' MUSTCHECK' if kind == 'int' else ''};"
                for kind, rest in style.prototypes(m)] + [""]
    if direction.name != "both":
        out += [f"struct {style.prefix}_{direction.name} {{",
                *(f"\tint (*on_{m.low})(void *arg, {style.handled(m)}m, "
                  "struct err *e);" for m in direction.handled),
                "};", f"int {style.dispatch(direction)} MUSTCHECK;"]
    return out + c_each(style, direction)


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


def header(listing):
    style = Style(listing)
    out = ["", f'#include "{style.include}"', '#include "common/uuid.h"', "",
           *c_enums(listing, style)]
    for direction in listing.directions:
        out += c_direction(style, direction)
    out += ["struct codec;", f"/* {style.prefix}_codec - NULL for an unknown "
            "number */",
            f"const struct codec *{style.prefix}_codec(unsigned int type);",
            ""]
    made, *rest = guarded(f"COMMON_MSG_{style.prefix.upper()}_GEN_H", out)
    return [made, *closed(comment(INTRO[listing.kind].split("\n"))), *rest]


def c_codec(style, m):
    out = []
    if m.fields:
        out.append(f"static const struct codec_field fields_{m.low}[] = {{")
    for f in m.fields:
        low = int(not f.optional) if f.kind == "fd" else f.low
        least = "INT64_MIN" if low == -(1 << 63) else f"INT64_C({low})"
        most = f"UINT64_C({f.high})" if f.high >= 0 else f"(uint64_t){f.high}"
        out.append(f'\t{{"{f.name}", offsetof({style.struct(m)}, {f.name}), '
                   f"CODEC_{f.kind.upper()}, {least}, {most}}},")
    if m.fields:
        out.append("};")
    fields = f"fields_{m.low}" if m.fields else "NULL"
    return out + [
        f"static const struct codec codec_{m.low} = {{",
        f'\t.type = {m.number}, .name = "{m.name}",',
        f"\t.has_id = {'true' if m.id else 'false'},",
        f"\t.size = sizeof({style.struct(m)}),",
        f"\t.nfields = {len(m.fields)}, .fields = {fields},", "};", ""]


def c_functions(style, m):
    bodies = {"msg": ("ipc_chan_send(c,", "return ipc_msg_get(in,"),
              "frame": ("return frame_put(b,", "return frame_get(in,")}
    out = []
    for (kind, rest), body, end in zip(
            style.prototypes(m), bodies[style.prefix], ("m", "m, e")):
        out += [kind, rest, "{", f"\t{body} &codec_{m.low}, {end});", "}", ""]
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
    return out + [f"\t\treturn codec_handled(&codec_{m.low}, rc, e);"]


def c_dispatch(style, direction):
    out = ["int", style.dispatch(direction), "{", "\tunion {"]
    out += [f"\t\t{style.struct(m)} {m.low};" for m in direction.handled]
    out += ["\t} m;", "\tint rc;", ""]
    if direction.channel.states and \
            not any(m.when for m in direction.handled):
        out.append("\t(void)state;")
    out.append("\tswitch (in->type) {")
    for m in direction.handled:
        out += c_case(style, direction, m)
    return out + [
        "\tdefault:", "\t\tbreak;", "\t}",
        f"\treturn codec_not_here({style.prefix}_codec(in->type), "
        "in->type, e);", "}", ""]


def source(listing):
    style = Style(listing)
    out = [MADE_C, f'#include "common/msg/{style.prefix}_gen.h"', "",
           '#include "common/msg/codec.h"', ""]
    for m in listing.messages:
        out += c_codec(style, m)
    last = max(m.number for m in listing.messages)
    out += [f"static const struct codec *const codecs[{last + 1}] = {{",
            *(f"\t[{m.number}] = &codec_{m.low}," for m in listing.messages),
            "};", "", "const struct codec *",
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

def markdown_direction(listing, direction):
    most = f", at most {direction.max} bytes" \
        if listing.kind == "frames" else ""
    rows = []
    for m in direction.messages:
        fields = ", ".join(f"{f.spelling()} {f.name}" for f in m.fields)
        rows.append((str(m.number), m.name, m.id or "-",
                     " or ".join(m.when) or "-",
                     f"`{fields}`" if fields else "-"))
    head = ("nr", "name", "id of", "when", "fields")
    if listing.kind == "frames":
        head, *rows = (row[:2] + row[4:] for row in (head, *rows))
    notes = [f"- {m.name}: {' '.join(m.text)}"
             for m in direction.messages if m.text]
    return ["", f"### {direction.name.replace('_', ' ')}{most}", "",
            *markdown_table(head, rows), *([""] if notes else []), *notes]


def markdown(listing):
    frames = listing.kind == "frames"
    out = ["# Frames between worker and agent" if frames else
           "# Messages between the processes", "",
           f"Made from `schema/{'frame' if frames else 'ipc'}.txt` by "
           "`schema/gen.py msg markdown`; a lint compares them.",
           "`schema/README.md` tells what the types are."]
    for enum in listing.enums:
        values = ", ".join(f"{n} {v}" for n, v in enum.values)
        out += ["", f"`{enum.name}`: {values}"]
    for channel in listing.channels:
        if not frames:
            out += ["", f"## {channel.name.capitalize()} channel"]
        if channel.text:
            out += ["", *channel.text]
        if channel.states:
            out += ["", f"States: {', '.join(channel.states)}."]
        for direction in channel.directions:
            out += markdown_direction(listing, direction)
    return out


FORMS = {"read": Listing, "header": header, "source": source,
         "markdown": markdown}
