#!/bin/sh
# schema.sh [--update] - what schema/ says is what code and documents say
#
# --update writes the pages of docs/ that are made from it anew.
set -eu
cd "$(dirname "$0")/../.."
. tests/lint/lib.sh

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# page NAME KIND FORM IN - docs/NAME.md as it should be, into $work
page()
{
	/usr/bin/python3 -B schema/gen.py "$2" "$3" "$4" "$work/$1.md"
}

pages()
{
	page ipc msg markdown schema/ipc.txt
	page frame msg markdown schema/frame.txt
	page clients clients markdown schema/clients.txt
	page quotas quota markdown schema/quota.txt
	# These have parts between marks.
	for name in configuration events metrics; do
		page "$name" page - "docs/$name.md"
	done
}

documents()
{
	pages
	for made in "$work"/*.md; do
		name=docs/${made##*/}
		cmp -s "$made" "$name" || echo "$name is not what schema/ says"
	done
}

# Migrations are numbered 0001, 0002, ... without a gap.
migrations()
{
	n=0
	for f in $(files '^schema/sql/'); do
		n=$((n + 1))
		case ${f##*/} in
		"$(printf %04d "$n")"_*.sql) ;;
		*) echo "$f: its number should be $(printf %04d "$n")" ;;
		esac
	done
}

# JSON files parse and repeat no key.
json()
{
	files '\.json$' | while read -r f; do
		/usr/bin/python3 - "$f" <<-'END' || :
		import json
		import sys

		def unique(pairs):
		    keys = [k for k, _ in pairs]
		    again = {k for k in keys if keys.count(k) > 1}
		    if again:
		        raise ValueError(f"repeats {sorted(again)}")
		    return dict(pairs)

		try:
		    with open(sys.argv[1], encoding="utf-8") as f:
		        json.load(f, object_pairs_hook=unique)
		except ValueError as e:
		    print(f"{sys.argv[1]}: {e}")
		END
	done
}

# Rules and the dashboard of docs/prometheus use metrics that there are.
prometheus()
{
	/usr/bin/python3 tests/prometheus/used.py || :
}

if [ "${1:-}" = --update ]; then
	pages
	cp "$work"/*.md docs/
	exit
fi
{
	documents
	migrations
	json
	prometheus
} | verdict 'change both sides; for the documents:
  tests/lint/schema.sh --update'
