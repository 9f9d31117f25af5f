#!/bin/sh
# schema.sh [--update] - what schema/ says is what code and documents say
#
# --update writes the table of docs/configuration.md anew, and docs/frame.md.
# shellcheck disable=SC2016 # awk's own
set -eu
cd "$(dirname "$0")/../.."
. tests/lint/lib.sh

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Message names and numbers: schema/ipc.txt and enum ipc_type.
messages()
{
	awk '/^[0-9]/ { print $1, $2 }' schema/ipc.txt | sort >"$work/ipc.txt"
	awk '/^enum ipc_type/ { on = 1; next }
	    on && /^}/ { exit }
	    on && /IPC_/ {
		name = $1
		gsub(/,/, "", name)
		n = $2 == "=" ? $3 + 0 : n + 1
		if (n > 0 && name !~ /^IPC_(TYPE_)?(COUNT|MAX)$/)
			print n, substr(name, 5)
	    }' common/ipc.h | sort >"$work/ipc.h"
	diff "$work/ipc.txt" "$work/ipc.h" |
	    sed -n -e 's,^<,schema/ipc.txt: only here:,p' \
	    -e 's,^>,common/ipc.h: only here:,p'
}

# docs/configuration.md holds the generated table as it is.
configuration()
{
	sh schema/gen_conf.sh markdown schema/config.txt >"$work/table"
	if [ ! -e docs/configuration.md ]; then
		echo 'docs/configuration.md: missing'
		return
	fi
	while IFS= read -r line; do
		grep -q -x -F -e "$line" docs/configuration.md ||
		    printf 'docs/configuration.md: lacks: %.70s\n' "$line"
	done <"$work/table"
}

# The lines of the old table give way to the new one.
update()
{
	sh schema/gen_conf.sh markdown schema/config.txt >"$work/table"
	awk -v table="$work/table" '
	    /^\|/ {
		while ((getline line < table) > 0)
			print line
		next
	    }
	    { print }' docs/configuration.md >"$work/page"
	cat "$work/page" >docs/configuration.md
	/usr/bin/python3 schema/gen_msg.py markdown schema/frame.txt \
	    >docs/frame.md
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
	migrations
	json
	/usr/bin/python3 schema/gen_msg.py markdown schema/frame.txt |
		cmp -s - docs/frame.md ||
		echo 'docs/frame.md is not what schema/frame.txt says'
	sh schema/gen_ipc.sh schema/ipc.txt | cmp -s - docs/ipc.md ||
		echo 'docs/ipc.md is not what schema/ipc.txt says: ' \
		    'sh schema/gen_ipc.sh schema/ipc.txt >docs/ipc.md'
} | verdict 'change both sides; for docs/configuration.md and docs/frame.md:
  tests/lint/schema.sh --update'
