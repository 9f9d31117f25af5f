"""Kind usage of gen.py: usage.txt and ctl.txt, command lines said once.

    source    tables and the text of --help, for options.c, ctl_options.c
    calls     the table of commands, for ctl_commands.c
    markdown  a part of docs/configuration.md
    man       the man page
    bash      completion for bash
    zsh       the same for zsh
"""
import re
import textwrap
from types import SimpleNamespace

from gen_table import MADE, MADE_C, cstr, markdown_table, need

# Kinds of rows and how many columns they have; the last one of some may have
# bars of its own.
COLUMNS = {"program": 3, "usage": 1, "text": 1, "command": 2, "call": 7,
           "option": 3, "signal": 2, "status": 2, "file": 2}
MANUALS = {"1": "User Commands", "5": "File Formats",
           "8": "System Administration"}
OPTION = re.compile(r"(?:-([a-zA-Z]), )?--([a-z-]+)(?: ([A-Z]+))?")
WIDTH = 78
INDENT = 19  # of what is said about a thing in --help


def read_option(rows, forms, command, text):
    found = OPTION.fullmatch(forms)
    need(found, f'"{forms}" is no option')
    need(not command or command in [c for c, _ in rows["command"]],
         f'"{command}" is no command')
    short, name, value = found.groups()
    return SimpleNamespace(
        forms=forms, command=command, short=short, long=name, value=value,
        constant="OPTION_" + name.upper().replace("-", "_"),
        text=(f"with {command}: " if command else "") + text)


def read(table):
    """{kind: rows}"""
    rows = {kind: [] for kind in COLUMNS}
    for text in table:
        kind, _, rest = text.partition("|")
        need(kind in COLUMNS, "this is no entry")
        columns = COLUMNS[kind]
        row = rest.split("|", columns - 1 if kind in ("usage", "text", "call")
                         else -1)
        need(len(row) == columns and row[0] and (row[-1] or kind == "call"),
             "this is no entry")
        need(kind != "status" or not rows[kind]
             or int(rows[kind][-1][0]) < int(row[0]),
             "each status once, in order")
        rows[kind].append(
            read_option(rows, *row) if kind == "option" else row)
    need(len(rows["program"]) == 1, "one program")
    return rows


# ---- --help

def paragraph(text, first="", indent=""):
    return textwrap.wrap(text, WIDTH, initial_indent=first,
                         subsequent_indent=indent, break_on_hyphens=False)


def entry(name, text):
    indent = " " * INDENT
    if len(name) + 3 > INDENT:
        return ["  " + name, *paragraph(text, indent, indent)]
    return paragraph(text, f"  {name:{INDENT - 2}}", indent)


def commands_of(rows):
    """[(as it is called, what it does)]"""
    return rows["command"] + [
        (f"{words} {follows}".strip(), text)
        for words, _, _, _, _, text, follows in rows["call"]]


def options_of(rows):
    return [(o.forms, o.text) for o in rows["option"]]


def help_lines(rows):
    out = []
    for i, (usage,) in enumerate(rows["usage"]):
        out.append(("usage: " if i == 0 else "       ")
                   + f"{rows['program'][0][0]} {usage}")
    for (text,) in rows["text"]:
        out += ["", *paragraph(text)]
    for title, entries in (
            ("Commands", commands_of(rows)), ("Options", options_of(rows)),
            ("Signals", rows["signal"]), ("Exit status", rows["status"]),
            ("Files", rows["file"])):
        out += ["", title + ":"] if entries else []
        for name, text in entries:
            out += entry(name, text)
    return out


# ---- C

COMMANDS = """\
/* Words that stand before settings, and what they make of a start. */
static const struct {
\tconst char *word;
\tenum options_action action;
} usage_commands[] = {"""

WITH = """\
};
static const struct {
\tenum usage_option option;
\tconst char *name;
\tconst char *command;
\tenum options_action action;
} usage_with[] = {"""


def source(rows):
    options = rows["option"]
    out = [MADE_C, "enum usage_option {", "\tUSAGE_LONG_ONLY = 255,"]
    for o in sorted(options, key=lambda o: o.short is not None):
        value = f" = '{o.short}'" if o.short else ""
        out.append(f"\t{o.constant}{value},")
    short = "".join(o.short + (":" if o.value else "")
                    for o in options if o.short)
    out += ["};", "#define USAGE_END 512",
            f"static const char usage_short[] = {cstr(short)};",
            "static const struct option usage_options[] = {"]
    for o in options:
        takes = "required_argument" if o.value else "no_argument"
        out.append(f"\t{{{cstr(o.long)}, {takes}, NULL, {o.constant}}},")
    out.append("\t{NULL, 0, NULL, 0}};")
    if rows["command"]:
        out.append(COMMANDS)
        out += [f"\t{{{cstr(name)}, OPTIONS_{name.upper()}}},"
                for name, _ in rows["command"]]
        out.append(WITH)
        out += [f"\t{{{o.constant}, {cstr('--' + o.long)}, "
                f"{cstr(o.command)}, OPTIONS_{o.command.upper()}}},"
                for o in options if o.command] + ["};"]
    return out + ["static const char *const usage_help[] = {",
                  *(f"\t{cstr(text)}," for text in help_lines(rows)), "};"]


def calls(rows):
    out = [MADE_C, "static const struct ctl_command commands[] = {"]
    for words, function, least, most, whom, _, follows in rows["call"]:
        first, _, second = words.partition(" ")
        is_local = {"server": "false", "nobody": "true"}[whom]
        out.append(f"\t{{{cstr(first)}, {cstr(second) if second else 'NULL'}, "
                   f"{cstr(follows)}, {least}, {most},\n\t    {function}, "
                   f"{is_local}}},")
    return out + ["};"]


# ---- pages

def markdown(rows):
    def quoted(entries):
        return [(f"`{name}`", text) for name, text in entries]
    out = ["```text", *(f"{rows['program'][0][0]} {usage}"
                        for (usage,) in rows["usage"]), "```", ""]
    for head, entries in (
            ("command or option", quoted(rows["command"] + options_of(rows))),
            ("signal", quoted(rows["signal"])), ("exit status",
                                                 rows["status"])):
        out += markdown_table(
            (head, "what it says" if head == "exit status" else
             "what it does"),
            [[c.replace("|", "\\|") for c in row] for row in entries]) + [""]
    return out


def troff(text):
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return "\\&" + text if text[:1] in (".", "'") else text


def sentence(text):
    """As prose, beginning with a capital unless with an option."""
    text = text[:1].upper() + text[1:] + ("" if text[-1] == "." else ".")
    return troff(text)


def synopsis(usage):
    """Words bold, values in italics, the rest as it is."""
    def font(found):
        word = found.group()
        style = "I" if re.match(r"[A-Z]|value", word) else "B"
        return f"\\f{style}{troff(word)}\\fP"
    return re.sub(r"-*[A-Za-z][A-Za-z-]*", font,
                  usage.replace("...", "\\&..."))


def man_head(name, section, version):
    return f'.TH {name.upper()} {section} "" ' \
           f'"mcp-sandboxd {troff(version)}" "{MANUALS[section]}"'


def man(rows, version):
    name, section, what = rows["program"][0]
    out = [man_head(name, section, version), ".SH NAME",
           f"{troff(name)} \\- {troff(what)}", ".SH SYNOPSIS"]
    for i, (usage,) in enumerate(rows["usage"]):
        out.append((".br\n" if i else "") + f"\\fB{troff(name)}\\fP "
                   + synopsis(usage))
    out.append(".SH DESCRIPTION")
    for i, (text,) in enumerate(rows["text"]):
        out.append((".PP\n" if i else "") + troff(text))
    for title, macro, entries in (
            ("COMMANDS", "B", commands_of(rows)),
            ("OPTIONS", "B", options_of(rows)),
            ("SIGNALS", "B", rows["signal"]),
            ("EXIT STATUS", "B", rows["status"]),
            ("FILES", "I", rows["file"])):
        out += [f".SH {title}"] if entries else []
        out += [f".TP\n.{macro} {troff(term)}\n{sentence(text)}"
                for term, text in entries]
    other = {"1": r".BR mcp\-sandboxd (8)",
             "8": ".BR mcp\\-sandboxd.conf (5),\n.BR sandboxctl (1),\n"
                  ".BR docker (1)"}
    return out + [".SH SEE ALSO", other[section]]


# ---- completion

def words_after(rows):
    """{words before: words that can follow}, of commands."""
    out = {"": []}
    for name in [c for c, _ in rows["command"]] + \
            [c[0] for c in rows["call"]]:
        before = ""
        for word in name.split():
            follow = out.setdefault(before, [])
            if word not in follow:
                follow.append(word)
            before = f"{before} {word}".strip()
    return out


def kinds_of(rows):
    """What the value of an option, or the word behind a command, is."""
    values = {}
    for o in rows["option"]:
        if o.value:
            values["--" + o.long] = {
                "FILE": "file", "DIR": "directory", "ROLE": "role"}.get(
                    o.value, "word")
    files = [c[0] for c in rows["call"] if c[6].startswith("FILE")]
    return values, files


BASH = """\
# %(made)s
_@()
{
    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}
    local said= i word=

    COMPREPLY=()
    case $prev in
%(values)s    esac
    case $cur in
    -*)
        mapfile -t COMPREPLY < <(compgen -W '%(options)s' -- "$cur")
        return
        ;;
    esac
    for ((i = 1; i < COMP_CWORD; i++)); do
        word=${COMP_WORDS[i]}
        case $word in
        %(valued)s) ((i++)) ;;
        -*) ;;
        *) said="${said:+$said }$word" ;;
        esac
    done
    case $said in
%(words)s    esac
}
complete -F _@ @
"""

ZSH = """\
#compdef @
# %(made)s
_@()
{
    local cur=${words[CURRENT]} prev=${words[CURRENT-1]} said= word
    integer i

    case $prev in
%(values)s    esac
    if [[ $cur == -* ]]; then
        compadd -- %(options)s
        return
    fi
    for ((i = 2; i < CURRENT; i++)); do
        word=${words[i]}
        case $word in
        (%(valued)s) ((i++)) ;;
        (-*) ;;
        (*) said="${said:+$said }$word" ;;
        esac
    done
    case $said in
%(words)s    esac
}
_@ "$@"
"""

BASH_KINDS = {
    "file": """mapfile -t COMPREPLY < <(compgen -f -- "$cur")""",
    "directory": """mapfile -t COMPREPLY < <(compgen -d -- "$cur")""",
    "role": "mapfile -t COMPREPLY < <(compgen -W 'user admin metrics' -- "
            '"$cur")',
    "word": ":"}
ZSH_KINDS = {"file": "_files", "directory": "_files -/",
             "role": "compadd user admin metrics", "word": ":"}


def case_of(pattern, does, opened):
    return (f"    {opened}{pattern})\n        {does}\n        return\n"
            "        ;;\n")


def completion(rows, form, kinds, opened, words_do):
    values, files = kinds_of(rows)
    options = []
    for o in rows["option"]:
        options += (["-" + o.short] if o.short else []) + ["--" + o.long]
    cases = "".join(case_of(name, kinds[kind], opened)
                    for name, kind in values.items())
    words = "".join(
        case_of(f"'{before}'", words_do % " ".join(follow), opened)
        for before, follow in words_after(rows).items())
    words += "".join(case_of(f"'{name}'", kinds["file"], opened)
                     for name in files)
    name = rows["program"][0][0]
    text = form % {"made": MADE, "values": cases, "words": words,
                   "options": " ".join(options),
                   "valued": " | ".join(values)}
    return [text.replace("_@", "_" + name.replace("-", "_"))
            .replace("@\n", name + "\n").rstrip("\n")]


def bash(rows):
    return completion(rows, BASH, BASH_KINDS, "",
                      "mapfile -t COMPREPLY < <(compgen -W '%s' -- \"$cur\")")


def zsh(rows):
    return completion(rows, ZSH, ZSH_KINDS, "(", "compadd -- %s")


FORMS = {"read": read, "source": source, "calls": calls, "markdown": markdown,
         "man": man, "bash": bash, "zsh": zsh}
