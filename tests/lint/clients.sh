#!/bin/sh
# clients.sh - the test clients' packages are pinned, and their lock file
# names no host to fetch from
set -eu
cd "$(dirname "$0")/../.."
. tests/lint/lib.sh

lock=tests/clients/package-lock.json
{
	grep -n '"resolved"' "$lock" | sed "s,^,$lock:," || :
	# An exact version has digits only.
	jq -r '(.dependencies // {}) + (.devDependencies // {}) | to_entries[]
	    | select(.value | test("^[0-9]+\\.[0-9]+\\.[0-9]+$") | not)
	    | "tests/clients/package.json: \(.key) \(.value) is no exact version"
	    ' tests/clients/package.json
	jq -r --slurpfile p tests/clients/package.json '
	    .packages[""].dependencies as $have
	    | ($p[0].dependencies | to_entries[])
	    | select($have[.key] != .value)
	    | "'$lock': does not hold \(.key) \(.value)"' "$lock"
	for f in $(files '\.m?js$'); do
		node --check "$f" 2>&1 || :
	done
} | verdict 'cd tests/clients && npm install --package-lock-only'
