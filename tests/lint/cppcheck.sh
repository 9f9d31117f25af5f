#!/bin/sh
# cppcheck.sh [BUILD] - cppcheck has no word to say about our C
set -eu
cd "$(dirname "$0")/../.."
. tests/lint/lib.sh

build=${1:-build}
cache=$build/cache/cppcheck
mkdir -p "$cache"
# Its lists are macros, which it has to know.
queue=$(echo '#include <sys/queue.h>' | gcc -E - |
    sed -n 's,^# 1 "\(/.*/sys/queue\.h\)".*,\1,p' | head -n 1)
# Its own cache knows what has not changed.
files '\.c$' | cppcheck --file-list=- --cppcheck-build-dir="$cache" \
    -j "$(nproc)" --quiet --enable=warning,performance,portability \
    --std=c11 -D_GNU_SOURCE -I. -I"$build" --inline-suppr \
    --include=tests/lint/cppcheck.h --include="$queue" \
    --suppress=missingIncludeSystem --suppress=arrayIndexThenCheck \
    --template=gcc 2>&1 |
    grep -E '^[^ ]+: (error|warning|performance|portability)' |
    verdict 'as cppcheck says; a false alarm is answered by
// cppcheck-suppress with a reason beside it'
