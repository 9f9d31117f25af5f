#!/usr/bin/python3
"""gen.py KIND FORM [--version V] IN... OUT - C and pages from schema/

README.md beside this says which kinds and forms there are, and how a table is
written.  OUT - is standard output.  A fault of a table is told as FILE:LINE
and ends with status 1, and so the build.
"""
import argparse
import errno
import json
import os
import re
import sys
import textwrap
import zlib
from types import SimpleNamespace

import gen_msg
import gen_usage
from gen_table import MADE, MADE_C, Table, Wrong, cstr, guarded, \
    markdown_table, need, remark
from gen_usage import man_head, troff

# ---- conf: config.txt

CONF_WANTS = {"bool": "true or false", "list": "items with commas between",
              "path": "a path", "str": "text"}
CONF_WHO = {"m": "MASTER", "f": "FRONT", "w": "WORKER", "k": "KEYS",
            "c": "COURIER"}


def is_conf_int(text):
    return re.fullmatch(r"-?[0-9]+", text) and len(text) <= 15


def check_conf_value(k):
    """Type, default and limits of a key."""
    if k.type == "int":
        need(is_conf_int(k.default) and is_conf_int(k.min)
             and is_conf_int(k.max),
             f"{k.key}: default, min and max must be numbers")
        need(int(k.min) <= int(k.default) <= int(k.max),
             f"{k.key}: default {k.default} is not in {k.min}..{k.max}")
        return f"{k.min} to {k.max}"
    need(not k.min and not k.max, f"{k.key}: only an int has min and max")
    if k.type == "enum":
        need(re.fullmatch(r"[A-Za-z0-9_-]+(,[A-Za-z0-9_-]+)*", k.items),
             f"{k.key}: want enum:a,b,c")
        need(k.default in k.items.split(","),
             f"{k.key}: default {k.default} is none of {k.items}")
        return k.items.replace(",", ", ")
    need(k.type in CONF_WANTS and not k.items,
         f"{k.key}: unknown type {k.type}")
    need(k.type != "bool" or k.default in ("true", "false"),
         f"{k.key}: default must be true or false")
    return CONF_WANTS[k.type]


def read_conf(table):
    keys, seen = [], {}
    for text in table:
        row = text.split("|")
        need(len(row) == 8, f"{len(row)} columns, want 8")
        for i, cell in enumerate(row, 1):
            need(cell == cell.strip(),
                 f"column {i} starts or ends with a blank")
        need(re.fullmatch("[ -~]*", text), "only printable ASCII, please")
        k = SimpleNamespace(**dict(zip(
            ("key", "type", "default", "min", "max", "who", "reload", "text"),
            row)))
        need(re.fullmatch("[A-Z][A-Z0-9_]*", k.key),
             f'key "{k.key}" is not of A-Z, 0-9 and _')
        need(k.key not in seen, f"key {k.key} was on line {seen.get(k.key)}")
        seen[k.key] = table.line
        k.type, _, k.items = k.type.partition(":")
        k.wants = check_conf_value(k)
        need(k.who and re.fullmatch("m?f?w?k?c?", k.who),
             f'{k.key}: who is "{k.who}", want some of mfwkc, in this order')
        need(k.reload in ("yes", "no"),
             f'{k.key}: reload is "{k.reload}", want yes or no')
        need(k.text, f"{k.key}: no text")
        keys.append(k)
    need(keys, "the table is empty")
    return keys


def conf_keys(keys):
    return guarded("COMMON_CONF_KEYS_H", [
        "", "enum conf_key {", *(f"\tCONF_{k.key}," for k in keys),
        "\tCONF_KEY_COUNT", "};", ""])


def conf_table(keys):
    out = [MADE_C]
    for k in keys:
        who = " | ".join("CONF_" + CONF_WHO[c] for c in k.who)
        reload = "true" if k.reload == "yes" else "false"
        out.append(f"{{{cstr(k.key)}, CONF_TYPE_{k.type.upper()}, "
                   f"{cstr(k.default)}, {cstr(k.items)}, "
                   f"INT64_C({k.min or 0}), INT64_C({k.max or 0}), {who}, "
                   f"{reload}, {cstr(k.text)}}},")
    return out


def conf_markdown(keys):
    return markdown_table(
        ("key", "default", "values", "reload", "what it is"),
        [(f"`{k.key}`", f"`{k.default}`" if k.default else "(empty)",
          k.wants, k.reload, k.text) for k in keys])


def conf_man(keys, version):
    out = [man_head("mcp-sandboxd.conf", "5", version), r""".SH NAME
mcp\-sandboxd.conf \- settings of mcp\-sandboxd
.SH SYNOPSIS
.B mcp\-sandboxd \-\-config
.I FILE
.SH DESCRIPTION
Lines
.IR KEY = value ,
as in an EnvironmentFile of systemd; empty lines and those that begin with # are
passed over. The same keys in the environment win over the file, and
those on the command line over both. A wrong value stops the start and
names its key.
.SH SETTINGS"""]
    for k in keys:
        key, text, default, wants = (
            troff(cell).replace('"', "\\(dq")
            for cell in (k.key, k.text, k.default, k.wants))
        default = f'"{default}"' if default else r"\fR(empty)\fP"
        out += [f".TP\n.B {key}", f"{text}.", "Default:",
                f".BR {default} ;", f"{wants}."]
        if k.reload == "yes":
            out.append("A reload (SIGHUP) takes a new value.")
    return out + [".SH SEE ALSO", ".BR mcp\\-sandboxd (8)"]


# ---- quota: quota.txt

QUOTA_ROW = re.compile(
    r'([a-z][a-z_]*)\|([^|]*)\|([0-9]+)\|([0-9]+)\|([0-9]+)\|([^|"\\]*)')

QUOTA_PAGE = f"""# Quotas of a tenant

<!-- {MADE} -->

`sandboxctl tenant set NAME quota.KEY=VALUE` sets one, `quota.KEY=default` \
takes it back.
Where the least is 0, 0 is no limit: who is to have nothing is disabled.
The tenant `default` has none but its weight where nothing is set: there the \
configuration's limits are all.
"""


def read_quota(table):
    """(key, unit, least, most, default, text)"""
    quotas = []
    for text in table:
        found = QUOTA_ROW.fullmatch(text)
        need(found, "want: KEY|unit|min|max|default|text")
        key, _, least, most, default, _ = row = found.groups()
        need(key not in [q[0] for q in quotas], f"{key} again")
        need(int(least) <= int(default) <= int(most),
             f"{key}: its default is none of its values")
        quotas.append(row)
    return quotas


def quota_keys(quotas):
    return guarded("COMMON_QUOTA_KEYS_H", [
        "", "enum quota_key {",
        *(f"\tQUOTA_{q[0].upper()}, /* {q[1]}: {q[5]} */" for q in quotas),
        "\tQUOTA_COUNT", "};", ""])


def quota_table(quotas):
    return [MADE_C, *(f'{{"{q[0]}", "{q[1]}", {q[2]}, {q[3]}, {q[4]},\n'
                      f'    "{q[5]}"}},' for q in quotas)]


def quota_markdown(quotas):
    return [QUOTA_PAGE] + markdown_table(
        ("key", "unit", "least", "most", "default", "what"),
        [(f"`{q[0]}`", *q[1:4], q[4] if int(q[4]) else "no limit", q[5])
         for q in quotas])


# ---- words: words.txt

WORDS_FIND = """\
#include "common/words_gen.h"

static const char *
words_find(const char *const *words, unsigned int n, unsigned int number)
{
\treturn number < n ? words[number] : "?";
}

static int
words_parse(const char *const *words, int n, const char *word)
{
\tfor (int i = 0; i < n; i++)
\t\tif (strcmp(words[i], word) == 0)
\t\t\treturn i;
\treturn ERR_INVAL;
}"""

WORDS_HEADER = """\
}};
#define {upper}_COUNT {count}
{texts}
/* "?" for a number that is none */
const char *{speaker}(unsigned int number);
/* ERR_INVAL for a word that is none */
int {name}_parse(
    const char *word, enum {name} *out) MUSTCHECK;"""

WORDS_SOURCE = """
static const char *const {name}_words[] = {{
{words}
}};

const char *
{speaker}(unsigned int number)
{{
\treturn words_find({name}_words, {upper}_COUNT, number);
}}

int
{name}_parse(const char *word, enum {name} *out)
{{
\tint n = words_parse({name}_words, {upper}_COUNT, word);

\tif (n < 0)
\t\treturn n;
\t*out = (enum {name})n;
\treturn 0;
}}"""


def speaker(name):
    """The function from number to word."""
    return name if name.endswith("_word") else name + "_word"


def read_words(table):
    enums = []
    for text in table:
        what = re.sub(" *-- .*", "", text).split()
        if text.split()[0] == "enum":
            need(len(what) == 4 and re.fullmatch("[a-z_]+", what[1])
                 and re.fullmatch("[A-Z_]+", what[2])
                 and what[3] in ("0", "1"),
                 "want: enum NAME PREFIX 0|1 -- what it is")
            need(not enums or enums[-1].words,
                 "the enum before it has no words")
            enums.append(SimpleNamespace(
                name=what[1], upper=what[1].upper(), prefix=what[2],
                first=int(what[3]), about=remark(text), words=[],
                speaker=speaker(what[1])))
            continue
        need(enums and re.fullmatch("[a-z_]+( [A-Z_]+)?", " ".join(what)),
             "want: word [NAME] -- what it means")
        need(what[0] not in [w.word for w in enums[-1].words],
             f"{what[0]} again")
        enums[-1].words.append(SimpleNamespace(
            word=what[0], about=remark(text),
            constant=f"{enums[-1].prefix}_{what[-1].upper()}"))
    need(enums and enums[-1].words, "the last enum has no words")
    return enums


def words_header(enums):
    out = ["", '#include "common/base.h"', '#include "common/err.h"']
    for e in enums:
        out += ["", f"/* {e.about} */", f"enum {e.name} {{"]
        for w in e.words:
            first = f" = {e.first}" if w is e.words[0] else ""
            note = f" /* {w.about} */" if w.about else ""
            out.append(f"\t{w.constant}{first},{note}")
        out.append(WORDS_HEADER.format(
            **vars(e), count=e.first + len(e.words), texts="\n".join(
                f'#define {w.constant}_WORD "{w.word}"' for w in e.words)))
    return guarded("COMMON_WORDS_GEN_H", out + [""])


def words_source(enums):
    out = [MADE_C, WORDS_FIND]
    for e in enums:
        texts = ['    "",'] * e.first + [
            f"    [{w.constant}] = {w.constant}_WORD," for w in e.words]
        out.append(WORDS_SOURCE.format(
            **dict(vars(e), words="\n".join(texts))))
    return out


# ---- events: events.txt

EVENTS_HEADER = """\
/* "?" for a number that is none */
const char *event_kind_word(unsigned int number);
/* ERR_INVAL for a word that is none */
int event_kind_parse(
    const char *word, enum event_kind *out) MUSTCHECK;
/* the names of its fields, " a b? ": each between blanks */
const char *event_kind_fields(enum event_kind kind);
"""

EVENTS_SOURCE = """
const char *
event_kind_word(unsigned int number)
{
\treturn number < EVENT_KIND_COUNT ? event_kinds[number] : "?";
}

int
event_kind_parse(const char *word, enum event_kind *out)
{
\tfor (unsigned int i = 0; i < EVENT_KIND_COUNT; i++)
\t\tif (strcmp(event_kinds[i], word) == 0) {
\t\t\t*out = (enum event_kind)i;
\t\t\treturn 0;
\t\t}
\treturn ERR_INVAL;
}

const char *
event_kind_fields(enum event_kind kind)
{
\treturn event_fields[kind];
}"""


def read_events(table):
    kinds = []
    for text in table:
        what, _, about = text.partition(" -- ")
        if text.startswith("\t"):
            found = re.fullmatch(
                r"\t([a-z][a-z_]*)\s+(text|number|bool|time)(\??)", what)
            need(kinds and found and about,
                 "want: <tab>FIELD TYPE -- what it is")
            name, kind, optional = found.groups()
            fields = kinds[-1].fields
            need(name not in [f[0] for f in fields], f"{name} again")
            fields.append((name, kind, optional, about))
            continue
        need(re.fullmatch(r"[a-z]+\.[a-z]+", what) and about,
             "want: KIND -- what happened")
        need(what not in [k.word for k in kinds], f"{what} again")
        kinds.append(SimpleNamespace(
            word=what, about=about, fields=[],
            constant="EVENT_" + what.upper().replace(".", "_")))
    need(len(kinds) <= 64, "more than 64 kinds: a filter is a word of 64 bits")
    return kinds


def events_header(kinds):
    return guarded("COMMON_EVENT_KINDS_GEN_H", [
        "", '#include "common/base.h"', '#include "common/err.h"', "",
        "enum event_kind {",
        *(f"\t{k.constant}, /* {k.about} */" for k in kinds), "};",
        f"#define EVENT_KIND_COUNT {len(kinds)}", EVENTS_HEADER])


def events_source(kinds):
    out = [MADE_C, '#include "common/event_kinds_gen.h"', "",
           "static const char *const event_kinds[] = {"]
    out += [f'    [{k.constant}] = "{k.word}",' for k in kinds]
    out += ["};", "", "static const char *const event_fields[] = {"]
    for k in kinds:
        names = "".join(f"{f[0]}{f[2]} " for f in k.fields)
        out.append(f'    [{k.constant}] = " {names}",')
    return out + ["};", EVENTS_SOURCE]


def events_markdown(kinds):
    return markdown_table(("kind", "what happened", "`data`"), [
        (f"`{k.word}`", k.about, "<br>".join(
            f"`{name}` {kind}{', may be missing' if optional else ''}: "
            f"{about}" for name, kind, optional, about in k.fields))
        for k in kinds])


# ---- rows: rows.txt

# A type's member, and what frees, copies, writes and reads it.
ROW_NUMBER = ("", "")
ROW_POINTER = (
    "\tfree(r->{f});\n",
    "\tif (from->{f} != NULL)\n"
    "\t\tto->{f} = xmemdup(from->{f}, from->{f}_len);\n",
    "\tdb_put_blob(c, r->{f}, r->{f}_len);\n",
    "\tr->{f} = db_get_blob(c, &r->{f}_len);\n")
ROW_UUID = "\tdb_get_bytes(c, r->{f}.b, sizeof(r->{f}.b));\n"
ROW_TYPES = {
    "u64": ("uint64_t {f};{c}", *ROW_NUMBER, "\tdb_put_uint(c, r->{f});\n",
            "\tr->{f} = db_get_uint(c);\n"),
    "u32": ("uint32_t {f};{c}", *ROW_NUMBER, "\tdb_put_uint(c, r->{f});\n",
            "\tr->{f} = db_get_u32(c);\n"),
    "i64": ("int64_t {f};{c}", *ROW_NUMBER, "\tdb_put_int(c, r->{f});\n",
            "\tr->{f} = db_get_int(c);\n"),
    "i32": ("int32_t {f};{c}", *ROW_NUMBER, "\tdb_put_int(c, r->{f});\n",
            "\tr->{f} = (int32_t)db_get_int(c);\n"),
    "bool": ("bool {f};{c}", *ROW_NUMBER, "\tdb_put_int(c, r->{f});\n",
             "\tr->{f} = db_get_int(c) != 0;\n"),
    "uuid": ("struct uuid {f};{c}", *ROW_NUMBER,
             "\tdb_put_blob(c, r->{f}.b, sizeof(r->{f}.b));\n", ROW_UUID),
    "uuid0": ("struct uuid {f};{c}", *ROW_NUMBER,
              "\tdb_put_blob(c, uuid_is_zero(&r->{f}) ? NULL : r->{f}.b,\n"
              "\t    sizeof(r->{f}.b));\n", ROW_UUID),
    "sha256": ("uint8_t {f}[32];{c}", *ROW_NUMBER,
               "\tdb_put_blob(c, r->{f}, sizeof(r->{f}));\n",
               "\tdb_get_bytes(c, r->{f}, sizeof(r->{f}));\n"),
    "text": ("char *{f};{c}", "\tfree(r->{f});\n",
             '\tto->{f} = xstrdup(from->{f} == NULL ? "" : from->{f});\n',
             "\tdb_put_text(c, r->{f});\n", "\tr->{f} = db_get_text(c);\n"),
    "bytes": ("uint8_t *{f};{c}\n\tsize_t {f}_len;", *ROW_POINTER),
    "secret": ("uint8_t *{f};{c}\n\tsize_t {f}_len;",
               "\tif (r->{f} != NULL)\n"
               "\t\texplicit_bzero(r->{f}, r->{f}_len);\n" + ROW_POINTER[0],
               *ROW_POINTER[1:]),
    "list": ("struct store_{of} *{f};{c}\n\tuint32_t n{f};",
             "\tfor (uint32_t i = 0; i < r->n{f}; i++)\n"
             "\t\tstore_{of}_clear(&r->{f}[i]);\n\tfree(r->{f});\n",
             "\tto->{f} = xcalloc(from->n{f}, sizeof(*to->{f}));\n"
             "\tfor (uint32_t i = 0; i < from->n{f}; i++)\n"
             "\t\tstore_{of}_copy(&to->{f}[i], &from->{f}[i]);\n"),
    "word": ("enum {t} {f};{c}", *ROW_NUMBER,
             "\tdb_put_text(c, {speaker}(r->{f}));\n",
             "\tword = db_get_word(c);\n"
             "\tif (rc == 0 && {t}_parse(word, &r->{f}) != 0)\n"
             '\t\trc = err_set(e, ERR_DB, "database: \\"%s\\" is'
             ' no {column} of a {row}", word);\n')}
MEMBER, FREE, COPY, PUT, GET = range(5)

ROW_HEADER = """
/* {about} */
struct store_{name} {{
{members}
}};
/* frees what it points to, and zeroes it */
void store_{name}_clear(struct store_{name} *r);
/* a copy of all of it; a text that is NULL becomes "" */
void store_{name}_copy(
    struct store_{name} *to, const struct store_{name} *from);"""

ROW_SQL = """\
{ends}void rows_put_{name}(struct db_call *c, const struct store_{name} *r);
int rows_get_{name}(struct db_call *c, struct store_{name} *r,\
 struct err *e) MUSTCHECK;
int rows_read_{name}(struct db_call *c, struct store_{name} **rows,\
 size_t *n, struct err *e) MUSTCHECK;"""

ROW_ENDS = """\
#define {upper}_END_SET "{set}"
#define {upper}_END_WHERE "{where}"
void rows_put_{name}_end(struct db_call *c, const struct store_{name} *r);
"""

ROW_SOURCE = """
void
store_{name}_clear(struct store_{name} *r)
{{
{free}\tmemset(r, 0, sizeof(*r));
}}

void
store_{name}_copy(struct store_{name} *to, const struct store_{name} *from)
{{
\t*to = *from;
{copy}}}

void
rows_put_{name}(struct db_call *c, const struct store_{name} *r)
{{
{put}}}
"""

ROW_SOURCE_END = """
void
rows_put_{name}_end(struct db_call *c, const struct store_{name} *r)
{{
{put}}}
"""

ROW_SOURCE_GET = """
int
rows_get_{name}(struct db_call *c, struct store_{name} *r, struct err *e)
{{
{begin}\tmemset(r, 0, sizeof(*r));
{get}{end}
}}

int
rows_read_{name}(struct db_call *c, struct store_{name} **rows, size_t *n,
    struct err *e)
{{
\tint rc;

\twhile ((rc = db_call_step(c, e)) == 1) {{
\t\t*rows = array_grow(*rows, *n, sizeof(**rows));
\t\trc = rows_get_{name}(c, &(*rows)[*n], e);
\t\tif (rc != 0) {{
\t\t\tdb_call_end(c);
\t\t\tbreak;
\t\t}}
\t\t(*n)++;
\t}}
\treturn rc;
}}"""


class RowField:
    def __init__(self, row, words, about):
        self.name, kind, self.when, *column = words
        self.column = column[0] if column else self.name
        first, _, of = kind.partition(":")
        self.form = ROW_TYPES.get(first, ROW_TYPES["word"])
        self.is_word = first not in ROW_TYPES
        self.names = {
            "f": self.name, "t": kind, "of": of, "row": row,
            "column": self.column, "speaker": speaker(kind),
            "c": f" /* {about} */" if about else ""}

    def say(self, what):
        return self.form[what].format(**self.names)


class Row:
    def __init__(self, name, before, about):
        self.name, self.before, self.about = name, int(before), about
        self.fields = []

    def when(self, *whens):
        return [f for f in self.fields if f.when in whens]

    def say(self, what, fields=None):
        return "".join(f.say(what) for f in fields or self.fields)


def read_rows(table):
    rows = []
    for text in table:
        words, about = re.sub("-- .*", "", text).split(), remark(text)
        if words[0] == "row":
            need(len(words) == 3 and re.fullmatch("[a-z]+", words[1])
                 and re.fullmatch("[0-9]", words[2]),
                 "want: row NAME BEFORE -- what it is")
            need(not rows or rows[-1].fields, "the row before it has no fields")
            rows.append(Row(*words[1:], about))
            continue
        need(rows and len(words) in (3, 4)
             and re.fullmatch("[a-z][a-z0-9_]*", words[0])
             and re.fullmatch("[a-z][a-z0-9_:]*", words[1])
             and words[2] in ("key", "begin", "end", "apart", "-"),
             "want: FIELD TYPE WHEN [COLUMN] -- what it is")
        need(words[0] not in [f.name for f in rows[-1].fields],
             f"{words[0]} again")
        rows[-1].fields.append(RowField(rows[-1].name, words, about))
    need(rows and rows[-1].fields, "the last row has no fields")
    return rows


def rows_header(rows):
    out = ["", '#include "common/base.h"', '#include "common/uuid.h"',
           '#include "common/event_kinds_gen.h"',
           '#include "common/words_gen.h"']
    out += [ROW_HEADER.format(name=r.name, about=r.about, members="\n".join(
        "\t" + f.say(MEMBER) for f in r.fields)) for r in rows]
    return guarded("STORE_ROWS_GEN_H", out + [""])


def row_sql(row):
    """Pieces of its statements, and what binds and reads them."""
    upper = row.name.upper()
    columns = row.when("key", "begin", "end")
    keys, ends = row.when("key"), row.when("end")
    values = [f"?{row.before + i}" for i in range(1, len(columns) + 1)]
    out = ["", f'#define {upper}_COLUMNS '
           f'"{", ".join(f.column for f in columns)}"',
           f'#define {upper}_VALUES "{", ".join(values)}"']
    if keys and not ends:
        same = ", ".join(f"{f.column} = excluded.{f.column}"
                         for f in columns if f.when != "key")
        out.append(f'#define {upper}_SET_ALL "{same}"')
    where = [f"{f.column} = {v}" for f, v in zip(keys, values)]
    sets = [f"{f.column} = {v}" for f, v in zip(ends, values[len(keys):])]
    return out + [ROW_SQL.format(name=row.name, ends=ROW_ENDS.format(
        upper=upper, name=row.name, set=", ".join(sets),
        where=" AND ".join(where)) if ends else "")]


def rows_sql(rows):
    out = ["", '#include "supervisor/store/rows_gen.h"', "", "struct db_call;",
           "", "/* rows_get_X: the row at hand.  rows_read_X: all that follow,"
           " behind *n that", " * are there; what was read stays when it"
           " fails. */"]
    for row in rows:
        out += row_sql(row)
    return guarded("STORE_ROWS_SQL_GEN_H", out + [""])


def row_source(row):
    columns = row.when("key", "begin", "end")
    names = {"name": row.name}
    out = ROW_SOURCE.format(**names, free=row.say(FREE), copy=row.say(COPY),
                            put=row.say(PUT, columns))
    if row.when("end"):
        out += ROW_SOURCE_END.format(**names, put=row.say(
            PUT, row.when("key") + row.when("end")))
    begin, end = "", "\t(void)e;\n\treturn 0;"
    if any(f.is_word for f in row.fields):
        begin = "\tconst char *word;\n\tint rc = 0;\n\n"
        end = (f"\tif (rc != 0)\n\t\tstore_{row.name}_clear(r);\n"
               "\treturn rc;")
    get = row.say(GET, columns + row.when("apart"))
    return out + ROW_SOURCE_GET.format(**names, begin=begin, end=end, get=get)


def rows_source(rows):
    return [MADE_C, '#include "supervisor/store/rows_sql_gen.h"', "",
            '#include "common/xmalloc.h"', '#include "supervisor/store/db.h"',
            '#include "supervisor/store/store_int.h"',
            *(row_source(row) for row in rows)]


# ---- metrics: metrics.txt

# A cell is a number of 64 bits.  A counter or a gauge has one for each
# combination of its labels' values, the last label's changing quickest; a
# histogram has, for each, one per bucket, that of +Inf, and the sum in
# microseconds.
METRIC_TYPES = ("counter", "gauge", "histogram")
METRIC_HELP_MAX = 200
METRIC_LABELS_MAX = 2
METRIC_LABEL = re.compile(
    r"([a-z]+)=(@[0-9]+|<[a-z]+\.txt|[a-z0-9_]+(?:,[a-z0-9_]+)*)")


class Label:
    """One of a family's labels: values, or (dynamic) how many there may be."""

    def __init__(self, text, table):
        found = METRIC_LABEL.fullmatch(text)
        need(found, f"no label: {text}")
        self.name, values = found.groups()
        self.dynamic = values[0] == "@"
        if self.dynamic:
            self.values, self.count = [], int(values[1:])
            return
        self.values = values.split(",") if values[0] != "<" else [
            line.split("|")[0] for line in table.beside(values[1:])]
        self.count = len(self.values)
        need(len(set(self.values)) == self.count,
             f"a value of {self.name} stands there twice")


class Family:
    """A metric with all its samples."""

    def __init__(self, words, text, bounds, table):
        need(len(words) >= 3, "want: NAME TYPE UNIT [LABEL=...]... -- help")
        self.name, kind, unit = words[:3]
        self.type, _, self.bounds = kind.partition(":")
        self.unit = "" if unit == "-" else unit
        self.labels = [Label(w, table) for w in words[3:]]
        self.sparse = kind == "counter:sparse"
        if self.sparse:
            self.bounds = ""
        if self.type == "histogram":
            self.sparse = bool(self.labels)
        self.help = text
        self.check(bounds)
        self.upper = bounds.get(self.bounds, [])
        # Cells of one combination of labels, and of all.
        self.width = len(self.upper) + 2 if self.type == "histogram" else 1
        self.cells = self.width
        for label in self.labels:
            self.cells *= label.count

    def check(self, bounds):
        """What promtool and OpenMetrics ask of names, and what code can."""
        base = self.name.removesuffix("_total")
        need(re.fullmatch(r"(mcp|sandboxd)_[a-z_]+", self.name),
             "a name begins with mcp_ or sandboxd_")
        need(self.type in METRIC_TYPES,
             f"its type is none of {METRIC_TYPES}")
        need((self.type == "counter") == (base != self.name),
             "counters, and only they, end in _total")
        need(not self.unit or base.endswith("_" + self.unit),
             "its name ends in its unit")
        need((self.type == "histogram") == (self.bounds in bounds),
             "a histogram, and only that, has bounds")
        need(len(self.labels) <= METRIC_LABELS_MAX and not any(
            x.dynamic and x.count > 1 for x in self.labels[1:]),
             "two labels at most, and the second is no @N above @1")
        need(self.help.endswith(".") and len(self.help) <= METRIC_HELP_MAX
             and not re.search(r'["\\]', self.help),
             "its help is a sentence without quotes")

    def constant(self, kind="METRIC"):
        """Of its first cell; of kind FAMILY, of itself."""
        return f"{kind}_" + self.name.removeprefix("sandboxd_").upper()


def microseconds(words):
    return [round(float(w) * 1e6) for w in words]


def read_metrics(table):
    """The families, in the table's order, and the bounds by name."""
    families, bounds, of_workers = [], {}, False
    for text in table:
        words = text.partition(" -- ")[0].split()
        if words[0] == "workers":
            of_workers = words[1:] == ["begin"]
        elif words[0] == "bounds":
            us = microseconds(words[2:])
            need(us and us == sorted(set(us)) and us[0] >= 1,
                 "bounds rise, from a microsecond on")
            bounds[words[1]] = words[2:]
        else:
            family = Family(words, remark(text, " -- "), bounds, table)
            need(family.name not in [f.name for f in families],
                 "stands there twice")
            family.of_workers = of_workers
            families.append(family)
    return SimpleNamespace(families=families, bounds=bounds)


def metrics_list(m):
    out, at, workers = ["", "enum metric_cell {"], 0, []
    for f in m.families:
        out.append(f"\t{f.constant()} = {at},")
        if f.of_workers:
            workers += [at, at + f.cells]
        at += f.cells
    out += [f"\tMETRIC_CELLS = {at}", "};", "",
            *(f"#define {f.constant()}_CELLS {f.cells}u" for f in m.families),
            "", "enum metric_number {",
            *(f"\t{f.constant('FAMILY')}," for f in m.families),
            "\tMETRIC_FAMILIES", "};", "",
            f"#define METRIC_WORKERS_FIRST {workers[0]}u",
            f"#define METRIC_WORKERS_END {workers[-1]}u"]
    limits = {x.name: x.count for f in m.families for x in f.labels
              if x.dynamic}
    out += [f"#define METRIC_{name.upper()}S {count}"
            for name, count in limits.items()]
    return guarded("COMMON_METRIC_LIST_H", out + [""])


def metric_family(f):
    """Its initialiser."""
    labels = ", ".join(
        f'{{"{x.name}", {"NULL" if x.dynamic else f"{f.name}_{x.name}"}, '
        f"{x.count}}}" for x in f.labels) or "{NULL, NULL, 0}"
    hist = f"{f.bounds}_us, {f.bounds}_texts, {len(f.upper)}" \
        if f.upper else "NULL, NULL, 0"
    return (f'{{"{f.name}", METRIC_{f.type.upper()}, "{f.unit}", "{f.help}", '
            f"{f.constant()}, {f.width}, {{{labels}}}, {len(f.labels)}, "
            f'{hist}, {"true" if f.sparse else "false"}}},')


def c_texts(name, texts):
    return f"static const char *const {name}[] = " \
           f"{{{', '.join(cstr(t) for t in texts)}}};"


def metrics_table(m):
    out = [MADE_C]
    for name, upper in m.bounds.items():
        us = ", ".join(map(str, microseconds(upper)))
        out += [f"static const uint64_t {name}_us[] = {{{us}}};",
                c_texts(f"{name}_texts", upper)]
    out += [c_texts(f"{f.name}_{x.name}", x.values)
            for f in m.families for x in f.labels if not x.dynamic]
    shape = zlib.crc32(repr([(f.name, f.type, f.upper, [
        (x.name, x.count, x.values) for x in f.labels])
        for f in m.families]).encode())
    return out + [
        f"#define METRIC_LAYOUT {shape}u", "static const struct metric_family "
        "metric_families[METRIC_FAMILIES] = {",
        *(metric_family(f) for f in m.families), "};"]


def metrics_markdown(m):
    out = markdown_table(("name", "type", "unit", "labels", "what"), [
        (f"`{f.name}`", f.type, f.unit or "-", "; ".join(
            f"`{x.name}`: " + (
                f"at most {x.count}" if x.dynamic else
                " ".join(f"`{v}`" for v in x.values)) for x in f.labels)
         or "-", f.help) for f in m.families])
    for name, upper in m.bounds.items():
        users = ", ".join(f"`{f.name}`" for f in m.families
                          if f.bounds == name)
        out += ["", f"Bounds of {users}: {' '.join(upper)} seconds."]
    return out


# ---- seccomp: seccomp.txt

# The machine's own ABI alone: what an engine elsewhere finds no line for, it
# takes without further ones.
MACHINES = ("X86_64", "AARCH64", "RISCV64")
ARGUMENTS = 6
SECCOMP_LINE = re.compile(
    r"([A-Za-z0-9]+)((?: \S+)*): ([a-z0-9_]+(?: [a-z0-9_]+)*)")
COMPARISON = re.compile(
    r"([0-9])(?:(==|!=|>)|&(0x[0-9a-f]+|[0-9]+)==)(0x[0-9a-f]+|[0-9]+)")
OPERATORS = {"==": "SCMP_CMP_EQ", "!=": "SCMP_CMP_NE", ">": "SCMP_CMP_GT"}


def comparison(text):
    """An entry of args."""
    found = COMPARISON.fullmatch(text)
    need(found, f'"{text}" is no condition')
    index, operator, mask, value = found.groups()
    need(int(index) < ARGUMENTS,
         f'"{text}": arguments are 0 to {ARGUMENTS - 1}')
    if mask is None:
        return {"index": int(index), "value": int(value, 0),
                "op": OPERATORS[operator]}
    need(not int(value, 0) & ~int(mask, 0), f'"{text}" never holds')
    return {"index": int(index), "value": int(mask, 0),
            "valueTwo": int(value, 0), "op": "SCMP_CMP_MASKED_EQ"}


def seccomp_rule(text):
    """(how it acts, its calls) of one line."""
    found = SECCOMP_LINE.fullmatch(text)
    need(found, "want ACTION [CONDITION...]: CALL...")
    action, conditions, calls = found.groups()
    acts = {"action": "SCMP_ACT_ALLOW"}
    if action != "allow":
        need(hasattr(errno, action),
             f'"{action}" is neither allow nor an errno')
        acts = {"action": "SCMP_ACT_ERRNO", "errnoRet": getattr(errno, action)}
    caps = [c[4:] for c in conditions.split() if c.startswith("cap:")]
    args = [comparison(c) for c in conditions.split()
            if not c.startswith("cap:")]
    need(len({a["index"] for a in args}) == len(args),
         "an argument is compared once only")
    if args:
        acts["args"] = args
    if caps:
        acts["includes"] = {"caps": ["CAP_" + c for c in caps]}
    return acts, calls.split()


def read_seccomp(table):
    """[[how, calls]]: lines that act alike are one."""
    rules, plain = [], {}
    for text in table:
        acts, calls = seccomp_rule(text)
        for call in calls:
            # A call without a condition has no second line.
            known = plain.setdefault(call, "args" not in acts)
            need("args" in acts and not known
                 or not any(call in r[1] for r in rules), f"{call} again")
        alike = [r for r in rules if r[0] == acts]
        if alike and "args" not in acts:
            alike[0][1].extend(calls)
        else:
            rules.append([acts, calls])
    return rules


def seccomp_json(rules):
    """The engine's form (archMap, includes.caps), without a blank."""
    return [json.dumps({
        "defaultAction": "SCMP_ACT_ERRNO",
        "defaultErrnoRet": errno.EPERM,
        "archMap": [{"architecture": "SCMP_ARCH_" + m, "subArchitectures": []}
                    for m in MACHINES],
        "syscalls": [{"names": calls, **acts} for acts, calls in rules]},
        separators=(",", ":"))]


# ---- clients: clients.txt

CLIENTS_URL = "http://127.0.0.1:8080/mcp"
CLIENTS_PROGRAM = "mcp-sandboxd"


def read_clients(table):
    """The head of the page, what it says of tokens, and the clients with
    their lines."""
    head, token, clients, fenced = None, None, [], False
    for text in table.all():
        if text.startswith("@client "):
            part = [p.strip() for p in text[8:].split("|")]
            need(not fenced and len(part) == 4 and "" not in part,
                 "want @client NAME | TITLE | SPEAKS | WAITS")
            need(re.fullmatch(r"[a-z][a-z0-9-]*", part[0])
                 and part[0] not in [c.name for c in clients],
                 f"{part[0]} is no name, or not new")
            clients.append(SimpleNamespace(
                name=part[0], title=part[1], speaks=part[2],
                waits=part[3], lines=[]))
        elif clients:
            if text.startswith("```"):
                need(fenced == (text == "```"),
                     "a block opens with its language and ends with ```")
                fenced = not fenced
            clients[-1].lines.append(text)
        elif text == "@page":
            head = []
        elif text == "@token":
            token = []
        elif token is not None:
            token.append(text)
        elif head is not None:
            head.append(text)
        else:
            need(not text or text.startswith("#"), "text before @page")
    for c in clients:
        marks = re.findall(r"@[\[\]]", "\n".join(c.lines))
        need(marks == ["@[", "@]"] * (len(marks) // 2),
             f"{c.name}: @[ and @] by turns")
    need(head and token and clients and not fenced,
         "a block without end, or no page, token or client")
    return SimpleNamespace(head=head, token=token, clients=clients)


def clients_markdown(page):
    def whole(lines):
        text = re.sub(r"@\[.*?@\]", "", "\n".join(lines), flags=re.S)
        return text.strip("\n").replace(
            "@URL@", CLIENTS_URL).replace("@PROGRAM@", CLIENTS_PROGRAM)
    out = [whole(page.head), "", whole(page.token), "", *markdown_table(
        ("client", "speaks", "waits at most", "name"),
        [(f"[{c.title}](#{c.title.lower().replace(' ', '-')})", c.speaks,
          c.waits, f"`{c.name}`") for c in page.clients])]
    for c in page.clients:
        out += ["", f"## {c.title}", "", whole(c.lines)]
    return out


def on_terminal(lines):
    """Without the marks of Markdown; blocks stand as they are to be pasted."""
    out = []
    text = "\n".join(lines).strip("\n")
    for n, part in enumerate(re.split(r"^```.*\n?", text, flags=re.M)):
        if n % 2:
            out.append(part)
            continue
        for paragraph in part.strip("\n").split("\n\n"):
            out += textwrap.wrap(paragraph.replace("`", ""), 78,
                                 break_on_hyphens=False) + [""]
    return "\n".join(out).strip("\n").split("\n")


def clients_header(page):
    """First what is said of tokens, which is no client."""
    def row(name, lines):
        text = "\n    ".join(cstr(line)[:-1] + '\\n"' for line in lines)
        return f'{{"{name}",\n    {text}}},'
    out = [MADE_C, row("", on_terminal(page.token))]
    for c in page.clients:
        head = f"{c.title} ({c.name}), by {c.speaks}; " \
            f"waits at most: {c.waits}"
        out.append(row(c.name, [head, "", *on_terminal(c.lines)]))
    return out


# ---- embed: files as a C table (common/embed.h)

def embed(name, paths):
    out, rows = ['#include "common/embed.h"'], []
    for n, path in enumerate(paths, 1):
        with open(path, "rb") as f:
            data = f.read()
        out.append(f"static const char file_{n}[] = {{")
        out += ["".join(f"(char){b}," for b in data[at:at + 16])
                for at in range(0, len(data), 16)]
        out.append("0};")
        rows.append(f'{{"{os.path.basename(path)}", file_{n}, '
                    f"sizeof(file_{n}) - 1}},")
    return out + [f"const struct embed_file {name}[] = {{", *rows,
                  "{NULL, NULL, 0}};"]


# ---- pages with parts that are made of tables

PART = re.compile(
    r"<!-- from schema/((\w+)\.txt) -->\n.*?(?=<!-- end -->)", re.S)
KIND_OF = {"config": "conf"}


def page(path):
    """The page at path, with the parts between its marks made anew."""
    def made(found):
        name, stem = found.groups()
        kind = KIND_OF.get(stem, stem)
        table = Table(os.path.join(os.path.dirname(__file__), name))
        lines = KINDS[kind]["markdown"](load(kind, table))
        return "\n".join([f"<!-- from schema/{name} -->", *lines, ""])
    with open(path, encoding="utf-8") as f:
        return [PART.sub(made, f.read()).removesuffix("\n")]


# ---- the program

KINDS = {
    "conf": {"read": read_conf, "keys": conf_keys, "table": conf_table,
             "markdown": conf_markdown, "man": conf_man},
    "quota": {"read": read_quota, "keys": quota_keys, "table": quota_table,
              "markdown": quota_markdown},
    "words": {"read": read_words, "header": words_header,
              "source": words_source},
    "events": {"read": read_events, "header": events_header,
               "source": events_source, "markdown": events_markdown},
    "rows": {"read": read_rows, "header": rows_header, "sql": rows_sql,
             "source": rows_source},
    "metrics": {"read": read_metrics, "list": metrics_list,
                "table": metrics_table, "markdown": metrics_markdown},
    "seccomp": {"read": read_seccomp, "json": seccomp_json},
    "clients": {"read": read_clients, "header": clients_header,
                "markdown": clients_markdown},
    "msg": gen_msg.FORMS,
    "usage": gen_usage.FORMS,
}


def load(kind, table):
    """What a table says; a fault ends the program."""
    try:
        return KINDS[kind]["read"](table)
    except (Wrong, UnicodeDecodeError) as e:
        sys.exit(f"{table.path}:{table.line}: {e}")


def make(args):
    """The lines of OUT."""
    if args.kind == "embed":
        return embed(args.form, args.input)
    if args.kind == "page":
        return page(args.input[0])
    forms = KINDS.get(args.kind, {})
    if args.form not in forms or args.form == "read" or len(args.input) != 1:
        sys.exit(__doc__.split("\n", maxsplit=1)[0])
    said = load(args.kind, Table(args.input[0]))
    return forms[args.form](said, *args.version)


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("kind")
    parser.add_argument("form")
    parser.add_argument("--version", nargs=1, default=[])
    parser.add_argument("input", nargs="+")
    parser.add_argument("output")
    args = parser.parse_args()
    text = "\n".join(make(args)) + "\n"
    if args.output == "-":
        sys.stdout.write(text)
        return
    os.makedirs(os.path.dirname(args.output) or ".", exist_ok=True)
    with open(args.output + ".tmp", "w", encoding="utf-8") as f:
        f.write(text)
    os.replace(args.output + ".tmp", args.output)


if __name__ == "__main__":
    main()
