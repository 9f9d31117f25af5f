#!/bin/sh
# spell.sh - codespell finds no misspelt word
set -eu
cd "$(dirname "$0")/../.."
. tests/lint/lib.sh

files . | grep -v -E -e '(^LICENSE|package-lock\.json)$' -e '/corpus/' |
    xargs -r codespell --ignore-words tests/lint/spell.txt |
    verdict 'spell it right; a word that is right goes into tests/lint/spell.txt'
