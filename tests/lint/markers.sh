#!/bin/sh
# markers.sh - no conflict of a merge was left in a file
set -eu
cd "$(dirname "$0")/../.."
. tests/lint/lib.sh

files . | xargs -r -d '\n' grep -I -n -E '^(<<<<<<<|>>>>>>>) ' |
	sed 's/:\([0-9]*\):.*/:\1: a conflict that nobody resolved/' |
	verdict 'make one text of both sides'
