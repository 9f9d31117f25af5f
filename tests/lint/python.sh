#!/bin/sh
# python.sh - flake8 has no word to say about our Python
set -eu
cd "$(dirname "$0")/../.."
. tests/lint/lib.sh

{
	files '\.py$'
	scripts python3
} | sort -u | xargs -r /usr/bin/python3 -m flake8 --isolated \
    --max-line-length 80 --max-complexity 12 --extend-ignore=W503 |
    verdict 'as flake8 says'
