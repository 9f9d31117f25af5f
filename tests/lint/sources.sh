#!/bin/sh
# sources.sh [--update] - the file lists of the makefile agree with the tree
#
# sources.am is written by this script from what is there, so that a release
# builds from an explicit list and nobody keeps one by hand.
# shellcheck disable=SC2016 # what is printed is for make
set -eu
export LC_ALL=C

cd "$(dirname "$0")/../.."

files()
{
	find . \( -name .git -o -name node_modules -o -name __pycache__ \
	    -o -name .pytest_cache -o -path './build*' -o -path ./data \
	    -o -path ./autom4te.cache -o -name 'mcp-sandboxd-[0-9]*' \) -prune \
	    -o -type f -print | sed 's,^\./,,' | sort
}

# list VARIABLE - the lines of stdin as a make variable
list()
{
	awk -v name="$1" '
	    BEGIN { printf "%s =", name }
	    { printf " \\\n\t%s", $0 }
	    END { print "" }'
}

base='err|log|xmalloc|clock|buf|fd|uuid|random|utf8|runspec|runlog|runlog_scan|runlog_check|agent_ask|leftlist|frame|base|hashmap|siphash|hex|exit|credit|slice'
base="$base|text|msg/wire|msg/codec"
is_base="^common/($base)\\.[ch]\$"

# library NAME EXPRESSION - C files that match, without a main
library()
{
	grep -E "$2" "$all" | grep -E '\.[ch]$' | grep -v '/main\.c$' |
	    list "$1"
}

# unit_tests - each with the libraries of the folder it lies in
unit_tests()
{
	tests=$(grep -E '^tests/unit/[a-z]+/test_[a-z0-9_]+\.c$' "$all" || :)
	for t in $tests; do
		echo "${t%.c}"
	done | list UNIT_TESTS
	for t in $tests; do
		name=$(echo "${t%.c}" | sed 's/[^A-Za-z0-9]/_/g')
		room=${t#tests/unit/}
		room=${room%%/*}
		flags=$(sed -n 's,^/\* link: \(.*\) \*/$,\1,p' "$t")
		printf '%s_SOURCES = %s tests/unit/tap.c\n' "$name" "$t"
		printf '%s_LDADD = $(%s_libs) $(test_libs)\n' "$name" "$room"
		if [ -n "$flags" ]; then
			printf '%s_LDFLAGS = $(AM_LDFLAGS) %s\n' "$name" \
			    "$flags"
		fi
	done
}

# helpers - programs that tests start: tests/unit/<room>/helpers/X.c, and the
# server of the conformance suite
helpers()
{
	tests=$(grep -E '^tests/unit/[a-z]+/helpers/[a-z0-9_]+\.c$' "$all" || :)
	{
		for t in $tests; do
			echo "${t%.c}"
		done
		echo tests/conformance/server
	} | list TEST_HELPERS
	for t in $tests; do
		name=$(echo "${t%.c}" | sed 's/[^A-Za-z0-9]/_/g')
		room=${t#tests/unit/}
		printf '%s_SOURCES = %s\n' "$name" "$t"
		printf '%s_LDADD = $(%s_libs) $(test_libs)\n' "$name" \
		    "${room%%/*}"
	done
	grep -E '^tests/conformance/[a-z0-9_]+\.[ch]$' "$all" |
	    list tests_conformance_server_SOURCES
	echo 'tests_conformance_server_LDADD = $(conformance_libs) $(test_libs)'
}

# bench_programs - tests/bench/X.c, made by hand
bench_programs()
{
	programs=$(grep -E '^tests/bench/[a-z]+\.c$' "$all" || :)
	for t in $programs; do
		echo "${t%.c}"
	done | list BENCH_TARGETS
	for t in $programs; do
		name=$(echo "${t%.c}" | sed 's/[^A-Za-z0-9]/_/g')
		printf '%s_SOURCES = %s\n' "$name" "$t"
		printf '%s_LDADD = $(%s_libs) $(test_libs)\n' "$name" \
		    "$(room_of "$t")"
	done
}

# room_of FILE - from its comment "libs: ROOM", else from what it includes
room_of()
{
	{
		sed -n 's,^.*libs: \([a-z]*\).*$,\1,p' "$1"
		sed -n 's,^#include "supervisor/\([a-z]*\)/.*$,\1,p' "$1"
		sed -n 's,^#include "\(worker\)/.*$,\1,p' "$1"
		echo common
	} | head -n 1
}

# fuzz_targets - tests/fuzz/fuzz_X.c, with FUZZ_MAIN where libFuzzer has none
fuzz_targets()
{
	targets=$(grep -E '^tests/fuzz/fuzz_[a-z0-9_]+\.c$' "$all" || :)
	for t in $targets; do
		echo "${t%.c}"
	done | list FUZZ_TARGETS
	for t in $targets; do
		name=$(echo "${t%.c}" | sed 's/[^A-Za-z0-9]/_/g')
		printf '%s_SOURCES = %s $(FUZZ_MAIN)\n' "$name" "$t"
		printf '%s_LDADD = $(%s_libs) $(test_libs)\n' "$name" \
		    "$(room_of "$t")"
		printf '%s_LDFLAGS = $(AM_LDFLAGS) $(FUZZ_LDFLAGS)\n' "$name"
	done
}

# others - what a release holds and no rule above compiles
others()
{
	grep -v -E \
	    -e '^(common|supervisor|worker|images/agent)/.*\.[ch]$' \
	    -e '^tests/(unit/[a-z]+/test|fuzz/fuzz)_[a-z0-9_]+\.c$' \
	    -e '^tests/bench/[a-z]+\.c$' \
	    -e '^tests/unit/tap\.c$' \
	    -e '^tests/unit/[a-z]+/helpers/[a-z0-9_]+\.c$' \
	    -e '^tests/conformance/[a-z0-9_]+\.[ch]$' \
	    -e '^schema/(sql/.*\.sql|tools/.*\.json)$' \
	    -e '^images/(sandbox/|languages\.json$)' \
	    -e '^(configure|Makefile|aclocal|config\.h)' \
	    -e '^(sources\.am|m4/|README\.md$)' \
	    "$all" | list OTHER_FILES
}

generate()
{
	echo '# Written by tests/lint/sources.sh --update; do not edit.'
	grep -E "$is_base" "$all" | list BASE_SOURCES
	grep -v -E "$is_base" "$all" >"$all.rest"
	grep -E '^common/.*\.[ch]$' "$all.rest" | list COMMON_SOURCES
	library STORE_SOURCES '^supervisor/store/'
	library MCP_SOURCES '^supervisor/mcp/'
	library HTTP_SOURCES '^supervisor/http/'
	library CORE_SOURCES '^supervisor/core/'
	library TOOLS_SOURCES '^supervisor/tools/'
	library FRONT_SOURCES '^supervisor/front/'
	library MASTER_SOURCES '^supervisor/master/'
	library CTL_SOURCES '^supervisor/ctl/'
	library KEYS_SOURCES '^supervisor/keys/'
	library COURIER_SOURCES '^supervisor/courier/'
	library STDIO_SOURCES '^supervisor/stdio/'
	library WORKER_SOURCES '^worker/'
	library AGENT_SOURCES '^images/agent/'
	grep -E '^schema/sql/.*\.sql$' "$all" | list SQL_FILES
	grep -E '^schema/tools/.*\.json$' "$all" | list TOOL_FILES
	echo images/languages.json | list DATA_FILES
	unit_tests
	helpers
	fuzz_targets
	bench_programs
	others
}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
all=$work/all
files >"$all"
generate >"$work/sources.am"
if [ "${1:-}" = --update ]; then
	cmp -s "$work/sources.am" sources.am || cp "$work/sources.am" sources.am
	exit 0
fi
if ! diff -u sources.am "$work/sources.am"; then
	echo "sources.am is not what the tree holds." \
	    "Mend it: tests/lint/sources.sh --update" >&2
	exit 1
fi
