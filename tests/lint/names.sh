#!/bin/sh
# names.sh - a public function is found by its name alone
#
# It starts with a word of its file's name or its room's (store/db_run.c: db_,
# run_ or store_), or with the name of a struct that it takes or gives.  Two
# customary names are let through: x... of xmalloc.c, and fatal.
# shellcheck disable=SC2016 # awk's own
set -eu
cd "$(dirname "$0")/../.."
. tests/lint/lib.sh

files '\.c$' | grep -v '^tests/' | xargs -r awk '
FNR == 1 {
	previous = ""
	n = split(FILENAME, part, "/")
	room = part[n - 1]
	base = part[n]
	sub(/\.c$/, "", base)
	words = split(base, word, "_")
}
# With the return type on a line of its own the name is in column 0.
/^[a-z][a-z0-9_]*\(/ && previous !~ /static/ && previous !~ /^(#|}|\/\*)/ {
	name = $0
	sub(/\(.*/, "", name)
	good = name == "main" || index(name, room "_") == 1 || name == room
	stem = base
	sub(/s$/, "", stem)
	good = good || index(name, base "_") == 1 || name == base ||
	    index(name, stem "_") == 1 || index(name, base "s_") == 1
	sub(/e$/, "", stem)
	good = good || index(name, stem "_") == 1
	for (i = 1; i <= words; i++)
		good = good || index(name, word[i] "_") == 1 ||
		    name == word[i]
	good = good || (base == "xmalloc" && name ~ /^x/) ||
	    (base == "log" && name ~ /^fatal/)
	n = split(previous " " $0, part, /struct /)
	for (i = 2; i <= n; i++) {
		sub(/[^a-z0-9_].*/, "", part[i])
		good = good || index(name, part[i] "_") == 1
	}
	if (!good)
		printf "%s:%d: %s belongs to no word of its file or room\n",
		    FILENAME, FNR, name
}
/./ { previous = $0 }' |
    verdict 'name it module_verb_noun, or make it static'
