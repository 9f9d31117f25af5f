#!/bin/sh
# links.sh [BUILD] - what a program cannot do, it does not even link
set -eu
cd "$(dirname "$0")/../.."
. tests/lint/lib.sh

build=${1:-${MCP_SANDBOXD_BUILD:-build}}

# links PROGRAM ALLOWED - the program needs nothing but these libraries
links()
{
	if [ ! -x "$build/$1" ]; then
		echo "$1: is not built"
		return
	fi
	readelf -d "$build/$1" | sed -n 's/.*NEEDED.*\[\(.*\)\.so.*/\1/p' |
	    grep -v -x -E "libc|ld-linux-.*|$2" |
	    sed "s,^,$1: links ," || :
}

# size PROGRAM BYTES - of the stripped program
size()
{
	[ -x "$build/$1" ] || return 0
	strip -o "$work/stripped" "$build/$1"
	bytes=$(stat -c %s "$work/stripped")
	[ "$bytes" -le "$2" ] || echo "$1: $bytes bytes, more than $2"
}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
{
	links mcp-sandboxd 'libevent_core-2.1'
	links mcp-sandboxd-front \
	    'libevent_(core|extra|openssl|pthreads)-2.1|libjansson|libsqlite3|libseccomp|libcrypto|libssl|libtre|libz|libm'
	links mcp-sandboxd-worker \
	    'libevent_core-2.1|libjansson|libcurl|libseccomp|libssl|libcrypto|libwslay|libyaml-0'
	links mcp-sandboxd-keys \
	    'libevent_core-2.1|libjansson|libcurl|libseccomp'
	links mcp-sandboxd-courier 'libevent_core-2.1|libcurl|libseccomp'
	links mcp-sandboxd-stdio 'libevent_core-2.1|libjansson|libcurl'
	links sandbox-agent ''
	size mcp-sandboxd 2000000
	size mcp-sandboxd-front 2000000
	size mcp-sandboxd-worker 2000000
	size mcp-sandboxd-keys 500000
	size mcp-sandboxd-courier 500000
	size mcp-sandboxd-stdio 500000
	size sandbox-agent 1000000
} | verdict 'move the code that needs the library to the program that may'
