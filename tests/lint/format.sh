#!/bin/sh
# format.sh - C files are as clang-format leaves them
set -eu
cd "$(dirname "$0")/../.."
. tests/lint/lib.sh

files '\.[ch]$' | xargs -r \
    clang-format --dry-run -Werror 2>&1 | grep -E 'error:' |
    sed 's/ code should be clang-formatted.*/ not formatted/' |
    verdict 'clang-format -i FILE (version 14, as in Debian 12)'
