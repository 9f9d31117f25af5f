#!/bin/sh
# schema.sh [--update] - what schema/ says is what code and documents say
#
# --update writes the tables of docs/configuration.md, docs/metrics.md and
# docs/events.md, docs/ipc.md, docs/frame.md, docs/clients.md and docs/quotas.md
# anew.
# shellcheck disable=SC2016 # awk's own
set -eu
cd "$(dirname "$0")/../.."
. tests/lint/lib.sh

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# These pages of docs/ are made from the lists of the same names.
pages='ipc frame clients'
page()
{
	case $1 in
	clients) /usr/bin/python3 schema/gen_clients.py markdown "schema/$1.txt" ;;
	*) /usr/bin/python3 schema/gen_msg.py markdown "schema/$1.txt" ;;
	esac
}

messages()
{
	for name in $pages; do
		page "$name" >"$work/$name.md"
		cmp -s "$work/$name.md" "docs/$name.md" ||
		    echo "docs/$name.md is not what schema/$name.txt says"
	done
}

# docs/configuration.md with what is made between its marks.
configuration_page()
{
	sh schema/gen_conf.sh markdown schema/config.txt >"$work/config.txt"
	/usr/bin/python3 schema/gen_usage.py markdown schema/usage.txt \
	    >"$work/usage.txt"
	awk -v made="$work" '
	    /^<!-- from schema\/[a-z]*\.txt -->$/ {
		print
		sub("^<!-- from schema/", "")
		sub(" -->$", "")
		while ((getline line < (made "/" $0)) > 0)
			print line
		skip = 1
	    }
	    /^<!-- end -->$/ { skip = 0 }
	    !skip { print }' docs/configuration.md
}

configuration()
{
	configuration_page >"$work/configuration.md"
	cmp -s "$work/configuration.md" docs/configuration.md ||
	    echo 'docs/configuration.md is not what schema/config.txt and' \
		'schema/usage.txt say'
}

# docs/events.md with what is made between its marks.
events_page()
{
	sh schema/gen_events.sh markdown schema/events.txt >"$work/events.txt"
	awk -v made="$work/events.txt" '
	    /^<!-- from schema\/events.txt -->$/ {
		print
		while ((getline line < made) > 0)
			print line
		skip = 1
	    }
	    /^<!-- end -->$/ { skip = 0 }
	    !skip { print }' docs/events.md
}

events()
{
	events_page >"$work/events.md"
	cmp -s "$work/events.md" docs/events.md ||
	    echo 'docs/events.md is not what schema/events.txt says'
}

update()
{
	events_page >"$work/events.md"
	cat "$work/events.md" >docs/events.md
	configuration_page >"$work/configuration.md"
	cat "$work/configuration.md" >docs/configuration.md
	metrics_page >"$work/metrics.md"
	cat "$work/metrics.md" >docs/metrics.md
	for name in $pages; do
		page "$name" >"docs/$name.md"
	done
	sh schema/gen_quota.sh markdown schema/quota.txt >docs/quotas.md
}

# docs/metrics.md with what is made between its marks.
metrics_page()
{
	/usr/bin/python3 schema/gen_metrics.py markdown schema/metrics.txt \
	    >"$work/metrics.txt"
	awk -v made="$work/metrics.txt" '
	    /^<!-- from schema\/metrics.txt -->$/ {
		print
		while ((getline line < made) > 0)
			print line
		skip = 1
	    }
	    /^<!-- end -->$/ { skip = 0 }
	    !skip { print }' docs/metrics.md
}

metrics()
{
	metrics_page >"$work/metrics.md"
	cmp -s "$work/metrics.md" docs/metrics.md ||
	    echo 'docs/metrics.md is not what schema/metrics.txt says'
}

# docs/quotas.md is made from the table.
quotas()
{
	sh schema/gen_quota.sh markdown schema/quota.txt >"$work/quotas.md"
	cmp -s "$work/quotas.md" docs/quotas.md ||
	    echo "docs/quotas.md is not what schema/quota.txt says"
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

if [ "${1:-}" = --update ]; then
	update
	exit
fi
{
	messages
	configuration
	metrics
	events
	quotas
	migrations
	json
} | verdict 'change both sides; for the documents:
  tests/lint/schema.sh --update'
