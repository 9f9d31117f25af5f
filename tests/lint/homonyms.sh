#!/bin/sh
# homonyms.sh - no two things of the programs share a name
#
# Not two files of different folders, not two structs, enums or unions, not two
# functions that are not static.  X.c and X.h are one thing, and main.c is each
# program's own.
#
# Exceptions stand in homonyms.txt: KIND NAME: REASON, KIND being file, type or
# function.  One that is not needed any more is a fault.
# shellcheck disable=SC2016 # awk's own
set -eu
cd "$(dirname "$0")/../.."
. tests/lint/lib.sh

files '\.[ch]$' | grep -v '^tests/' | xargs -r awk '
# thing(KIND, NAME, OWNER): the first to have a name owns it
function thing(kind, name, owner)
{
	if (!((kind, name) in owners)) {
		owners[kind, name] = owner
		place[kind, name] = FILENAME ":" FNR
	} else if (owners[kind, name] != owner) {
		if ((kind, name) in excuse)
			needed[kind, name] = 1
		else
			printf "%s:%d: %s %s is also at %s\n", FILENAME, FNR,
			    kind, name, place[kind, name]
	}
}
BEGIN {
	while ((getline line < "tests/lint/homonyms.txt") > 0) {
		if (line ~ /^(#|$)/)
			continue
		if (line !~ /: ./)
			printf "tests/lint/homonyms.txt:1: no reason: %s\n",
			    line
		sub(/:.*/, "", line)
		split(line, word, " ")
		excuse[word[1], word[2]] = line
	}
}
FNR == 1 {
	base = room = FILENAME
	sub(/^.*\//, "", base)
	sub(/\.[ch]$/, "", base)
	sub(/\/[^\/]*$/, "", room)
	previous = ""
	if (base != "main")
		thing("file", base, room)
}
/^(static |const )*(struct|enum|union) [a-z0-9_]+ \{/ {
	name = $0
	sub(/ \{.*/, "", name)
	sub(/^.* /, "", name)
	thing("type", name, FILENAME ":" FNR)
}
# With the return type on a line of its own the name is in column 0.
/^[a-z][a-z0-9_]*\(/ && FILENAME ~ /\.c$/ &&
    previous !~ /static|^(#|}|\/\*)/ && !/^main\(/ {
	name = $0
	sub(/\(.*/, "", name)
	thing("function", name, FILENAME ":" FNR)
}
/./ { previous = $0 }
END {
	for (i in excuse)
		if (!(i in needed))
			printf "tests/lint/homonyms.txt:1: not needed any " \
			    "more: %s\n", excuse[i]
}' | verdict 'let the name say the duty: whose it is, or what is done with it'
