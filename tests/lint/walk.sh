#!/bin/sh
# walk.sh - files and functions that documents name are there
#
# Every path between backquotes in docs/ and in the tree's READMEs exists (but
# for what is made in the build directory); in a row of a table that begins
# with a path, each name in the second column is a function of that file.  In a
# picture (mermaid), NAME() is a function of the programs, and A_NAME a message
# or a frame.
# shellcheck disable=SC2016 # awk's own
set -eu
cd "$(dirname "$0")/../.."
. tests/lint/lib.sh

pages=$(files '^(docs/.*|README|images/agent/README|schema/README)\.md$')
known='^(common|supervisor|worker|images|schema|tests|docs)/[A-Za-z0-9_./-]+'
known="$known\\.(c|h|md|txt|sh|py|json)\$"

{
	for page in $pages; do
		# Paths, each with its page.
		grep -n -o '`[^` ]*`' "$page" | tr -d '`' |
		    while IFS=: read -r line path; do
			echo "$path" | grep -q -E "$known" || continue
			case $path in
			*_gen.* | *NAME*) continue ;;
			esac
			[ -e "$path" ] ||
			    echo "$page:$line: $path: there is no such file"
		done
		# Functions of the file in the row's first column.
		awk -F '|' '/^\| `[^`]*\.c` \|/ {
			path = $2
			gsub(/[` ]/, "", path)
			n = split($3, name, "`")
			for (i = 2; i <= n; i += 2)
				print FNR, path, name[i]
		}' "$page" | while read -r line path name; do
			[ -e "$path" ] || continue
			grep -q "^$name(" "$path" ||
			    echo "$page:$line: $path has no function $name"
		done
		# Functions and messages of the pictures.
		awk '/^```/ { on = /mermaid/ } on { print FNR ":" $0 }' "$page" |
		    grep -o -E '^[0-9]+|[a-z_]+\(\)|\b[A-Z]+_[A-Z_]+\b' |
		    while read -r word; do
			case $word in
			*'()') grep -r -q --include='*.c' "^${word%??}(" \
				common supervisor worker images/agent ||
			    echo "$page:$at: no function is $word" ;;
			[0-9]*) at=$word ;;
			*) grep -q -E "^[0-9]+ $word\b" schema/ipc.txt \
				schema/frame.txt ||
			    echo "$page:$at: no message is $word" ;;
			esac
		done
	done
} | verdict 'write what the code says now'
