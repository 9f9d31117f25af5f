#!/bin/sh
# tidy.sh [BUILD] - clang-tidy has no word to say about our C
#
# One file per call.  A file that was clean before, with the headers that its
# object in BUILD was made of, is not looked at again (BUILD/cache/tidy).
set -eu
cd "$(dirname "$0")/../.."
. tests/lint/lib.sh

build=${BUILD:-${1:-build}}
cache=$build/cache/tidy
flags="-std=gnu11 -D_GNU_SOURCE -I$build -I."

if [ "${2:-}" != one ]; then
	mkdir -p "$cache"
	version=$(clang --version)
	export version
	files '\.c$' | BUILD=$build xargs -r -P "$(nproc)" -n 1 \
	    sh "$0" "$build" one | verdict 'as clang-tidy says; a false alarm
is answered by // NOLINT(check) with a reason beside it'
	exit
fi

file=$3
# What the compiler wrote down of its headers is read much faster than they are
# preprocessed; what is not made by "make all" or "make check" has no such list.
deps=$build/${file%/*}/.deps/$(basename "$file" .c).Po
text()
{
	echo "$version"
	cat .clang-tidy tests/.clang-tidy
	echo "$file"
	if grep -q '^[^ ]*:$' "$deps" 2>/dev/null; then
		cat "$file"
		sed -n 's/^\([^ ]*\):$/\1/p' "$deps" | (cd "$build" && xargs cat) ||
			echo "$$"
	else
		# shellcheck disable=SC2086 # words
		clang -E -C $flags "$file" 2>/dev/null || echo "$$"
	fi
}
key=$(text | sha256sum | cut -c1-40)
[ ! -e "$cache/$key" ] || exit 0
# shellcheck disable=SC2086 # words
if out=$(clang-tidy --quiet "$file" -- $flags 2>/dev/null); then
	: >"$cache/$key"
else
	printf '%s\n' "$out" | grep -E '(error|warning):' | sort -u ||
	    echo "$file: clang-tidy fails"
fi
