#!/usr/bin/python3
"""picture.py - docs/terminal.svg: the session that README shows, drawn

A session is a list of (command, what it printed), of README's text, which
test_pages.py plays.  The same session always makes the same picture.
"""
import os
import re
import sys
import xml.sax.saxutils

from pages import TOP, blocks_of, read

PATH = os.path.join(TOP, "docs/terminal.svg")
HEADING = "### Kill it"
COLUMNS, LINE, CHAR, MARGIN, BAR = 104, 19, 8.0, 18, 30
STYLE = {"frame": "#1d2128", "bar": "#2c323c", "print": "#c8ccd4",
         "type": "#ffffff", "prompt": "#7fd18b"}


def shown_block():
    """README's block of the session, with what it prints."""
    text = read("README.md")
    line = text[:text.index(HEADING)].count("\n")
    return next(b for b in blocks_of("README.md", text)
                if b.line > line and b.prints is not None)


def commands_of(block):
    """A command has its first line at the left, others are indented."""
    return re.findall(r"^\S.*(?:\n[ \t]+.*)*", block.text, re.M)


def session_of_readme():
    block = shown_block()
    commands = commands_of(block)
    return [(c, block.prints if c is commands[-1] else "") for c in commands]


# ---- drawing

def lines_of(session):
    """(style, text) per line, cut to the width of a terminal."""
    for command, printed in session:
        for n, line in enumerate(command.split("\n")):
            yield "type", ("$ " if n == 0 else "> ") + line.strip()
        for line in printed.rstrip("\n").split("\n") if printed else []:
            yield "print", line


def draw(session):
    rows = []
    for style, text in lines_of(session):
        while len(text) > COLUMNS:
            rows.append((style, text[:COLUMNS]))
            text = text[COLUMNS:]
        rows.append((style, text))
    width = round(2 * MARGIN + COLUMNS * CHAR)
    height = BAR + 2 * MARGIN + LINE * len(rows)
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" '
           f'height="{height}" viewBox="0 0 {width} {height}">',
           '<title>A session in a terminal</title>',
           f'<rect width="{width}" height="{height}" rx="8" '
           f'fill="{STYLE["frame"]}"/>',
           f'<path d="M0 {BAR}V8a8 8 0 0 1 8-8H{width - 8}a8 8 0 0 1 8 8V'
           f'{BAR}z" fill="{STYLE["bar"]}"/>']
    for i, color in enumerate(("#e0655f", "#e2b84f", "#65b868")):
        out.append(f'<circle cx="{18 + 20 * i}" cy="{BAR // 2}" r="6" '
                   f'fill="{color}"/>')
    out.append('<g font-family="DejaVu Sans Mono,Menlo,Consolas,monospace" '
               'font-size="13" xml:space="preserve">')
    for i, (style, text) in enumerate(rows):
        y = BAR + MARGIN + LINE * i + 13
        safe = xml.sax.saxutils.escape(text)
        if style == "type" and text[:2] in ("$ ", "> "):
            safe = (f'<tspan fill="{STYLE["prompt"]}">'
                    f'{xml.sax.saxutils.escape(text[:2])}</tspan>'
                    f'{xml.sax.saxutils.escape(text[2:])}')
        out.append(f'<text x="{MARGIN}" y="{y}" fill="{STYLE[style]}">'
                   f'{safe}</text>')
    return "\n".join(out) + "\n</g>\n</svg>\n"


def main():
    if len(sys.argv) != 1:
        sys.exit(__doc__)
    with open(PATH, "w", encoding="utf-8") as f:
        f.write(draw(session_of_readme()))


if __name__ == "__main__":
    main()
