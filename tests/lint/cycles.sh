#!/bin/sh
# cycles.sh - files of one folder do not call each other in circles
#
# Who knows a public function of another file of its folder, by calling it or
# by naming it (in a table of operations), stands above that file.  Where the
# lower one has to reach up, it is given a callback.  Nothing but text is
# looked at: a public function is a name in column 0 with "(" behind it and no
# "static" on the line before, a use is that name as a word.
#
# Exceptions stand in cycles.txt: FOLDER FILE...: REASON.  They allow circles
# among these files alone, and one that no circle needs any more is a fault.
# shellcheck disable=SC2016 # awk's own
set -eu
cd "$(dirname "$0")/../.."
. tests/lint/lib.sh

files '\.c$' | grep -v '^tests/' | xargs -r awk '
# ---- 1: the files of each folder, and who defines what
FNR == 1 {
	room = FILENAME
	sub(/\/[^\/]*$/, "", room)
	base = FILENAME
	sub(/^.*\//, "", base)
	sub(/\.c$/, "", base)
	member[room] = member[room] " " base
	previous = ""
	comment = 0
}
{
	line = $0
	if (comment) {
		if (!sub(/^.*\*\//, "", line))
			next
		comment = 0
	}
	gsub(/"([^"\\]|\\.)*"/, "", line)
	gsub(/\/\*([^*]|\*[^\/])*\*\//, "", line)
	sub(/\/\/.*$/, "", line)
	if (sub(/\/\*.*$/, "", line))
		comment = 1
	if (line ~ /^[a-z][a-z0-9_]*\(/) {
		name = line
		sub(/\(.*/, "", name)
		if (previous ~ /(^| )static( |$)/ || line ~ /^static /)
			own[room, base, name] = 1
		else
			where[room, name] = base
	}
	if (line ~ /[^ \t]/)
		previous = line
	text[++n] = line
	from[n] = room SUBSEP base
}
# ---- 2: who uses what; 3: what reaches what; 4: the circles
function use(room, base, word) {
	if (!((room, word) in where) || (room, base, word) in own)
		return
	if (where[room, word] != base)
		edge[room, base, where[room, word]] = word
}
function excused(room, list,   i, k, m, f) {
	for (i = 1; i <= nexcuses; i++) {
		if (excuse_room[i] != room)
			continue
		m = split(list, f, " ")
		for (k = 1; k <= m; k++)
			if (index(excuse[i], " " f[k] " ") == 0)
				break
		if (k > m) {
			needed[i] = 1
			return 1
		}
	}
	return 0
}
function circles(room,   f, m, i, j, k, list, how, reach, done) {
	m = split(member[room], f, " ")
	for (i = 1; i <= m; i++)
		for (j = 1; j <= m; j++)
			reach[i, j] = (room, f[i], f[j]) in edge
	for (k = 1; k <= m; k++)
		for (i = 1; i <= m; i++)
			if (reach[i, k])
				for (j = 1; j <= m; j++)
					if (reach[k, j])
						reach[i, j] = 1
	for (i = 1; i <= m; i++) {
		if (done[i] || !reach[i, i])
			continue
		list = how = ""
		for (j = i; j <= m; j++)
			if (reach[i, j] && reach[j, i]) {
				done[j] = 1
				list = list " " f[j]
			}
		if (excused(room, list))
			continue
		for (j = 1; j <= m; j++)
			for (k = 1; k <= m; k++)
				if (reach[i, j] && reach[j, i] &&
				    reach[i, k] && reach[k, i] &&
				    (room, f[j], f[k]) in edge)
					how = how sprintf("\n\t%s uses %s of " \
					    "%s", f[j], edge[room, f[j], f[k]],
					    f[k])
		printf "%s/%s.c:1: a circle of%s%s\n", room, f[i], list, how
	}
}
END {
	while ((getline line < "tests/lint/cycles.txt") > 0) {
		if (line ~ /^(#|$)/)
			continue
		nexcuses++
		if (line !~ /: ./)
			printf "tests/lint/cycles.txt:1: no reason: %s\n", line
		sub(/:.*/, " ", line)
		excuse_room[nexcuses] = line
		sub(/ .*/, "", excuse_room[nexcuses])
		excuse[nexcuses] = line
	}
	for (i = 1; i <= n; i++) {
		split(from[i], at, SUBSEP)
		line = text[i]
		# Members and structs may be named as functions are.
		gsub(/(->|\.|struct |enum )[a-z][a-z0-9_]*/, "", line)
		while (match(line, /[a-z_][a-z0-9_]*/)) {
			use(at[1], at[2], substr(line, RSTART, RLENGTH))
			line = substr(line, RSTART + RLENGTH)
		}
	}
	for (r in member)
		circles(r)
	for (i = 1; i <= nexcuses; i++)
		if (!needed[i])
			printf "tests/lint/cycles.txt:1: not needed any " \
			    "more:%s\n", " " excuse[i]
}' | verdict 'give the lower file a callback, or put one subject in one file'
