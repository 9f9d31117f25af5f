# lib.sh - what the lints share; sourced, with the top of the tree as cwd
#
# A lint prints each fault as FILE:LINE: what is wrong, and at the end how to
# mend it; its exit status is 0 only if it found none.
# shellcheck shell=sh
export LC_ALL=C.UTF-8

# files EXTENDED_REGEX - the tree's own files whose path matches, sorted
files()
{
	find . \( -name .git -o -name node_modules -o -name __pycache__ \
	    -o -name .pytest_cache -o -path './build*' -o -path ./data \
	    -o -path ./autom4te.cache -o -path ./configure \
	    -o -path './configure~' -o -path ./aclocal.m4 \
	    -o -path ./Makefile.in -o -name 'mcp-sandboxd-[0-9]*' \) -prune \
	    -o -type f -print | sed 's,^\./,,' | LC_ALL=C sort |
	    grep -E "$1" || :
}

# scripts INTERPRETERS - files that begin with such a #! line
scripts()
{
	files . | while read -r f; do
		if head -n 1 "$f" | grep -a -q -E "^#!.*[/ ]($1)( |\$)"; then
			echo "$f"
		fi
	done
}

# verdict HOW-TO-MEND - stdin is the list of faults; none is success
verdict()
{
	verdict_faults=$(cat)
	[ -n "$verdict_faults" ] || return 0
	printf '%s\n' "$verdict_faults"
	printf 'Mend it: %s\n' "$1"
	return 1
}
