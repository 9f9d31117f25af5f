#!/bin/sh
# length.sh - files stay below 1,200 lines, C functions below 80
# shellcheck disable=SC2016 # awk's own
set -eu
cd "$(dirname "$0")/../.."
. tests/lint/lib.sh

{
	{
		files '\.(c|h|py|mjs|js|sh)$'
		scripts 'sh|bash|python3'
	} | sort -u | while read -r f; do
		awk 'END { if (FNR >= 1200)
		    printf "%s:%d: a file of %d lines\n", FILENAME, FNR, FNR
		}' "$f"
	done
	# Formatted C: a function is from its { to its } in column 0.
	files '\.c$' | xargs -r awk '
	FNR == 1 { start = 0 }
	/^[a-z_].*\(/ { head = $1; sub(/\(.*/, "", head) }
	/^{/ { start = FNR; name = head }
	/^}/ && start {
		if (FNR - start >= 80)
			printf "%s:%d: %s has %d lines\n", FILENAME, start,
			    name, FNR - start + 1
		start = 0
	}'
} | verdict 'one duty per file and function: split it'
