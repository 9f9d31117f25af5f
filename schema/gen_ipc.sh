#!/bin/sh
# gen_ipc.sh FILE - print docs/ipc.md from the catalogue of messages
set -eu
cat <<'TEXT'
# Messages between the processes

Made from `schema/ipc.txt` by `sh schema/gen_ipc.sh schema/ipc.txt`; a lint compares them.
Encoding and rules: `common/ipc.h`, `common/wire.h`. "fds" is how many descriptors travel along.
TEXT
awk '
/^# [a-z]+ channel/ {
	sub(/^# /, "")
	printf "\n## %s\n\n", toupper(substr($0, 1, 1)) substr($0, 2)
	print "| nr | name | from > to | fds | id | fields |"
	print "| --- | --- | --- | --- | --- | --- |"
	next
}
/^[0-9]/ {
	fields = $0
	for (i = 0; i < 5; i++)
		sub(/^[^ ]+ +/, "", fields)
	printf "| %s | %s | %s | %s | %s | %s |\n", $1, $2, $3, $4, $5, fields
}' "$1"
