#!/bin/sh
# shell.sh - shellcheck has no word to say about our scripts
set -eu
cd "$(dirname "$0")/../.."
. tests/lint/lib.sh

{
	files '\.sh$'
	scripts 'sh|bash'
} | sort -u | xargs -r shellcheck --external-sources --source-path=SCRIPTDIR \
    --format=gcc | verdict 'as shellcheck says; shellcheck FILE explains'
