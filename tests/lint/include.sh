#!/bin/sh
# include.sh - who may include whom (docs/architecture.md, include rules)
# shellcheck disable=SC2016 # awk's own
set -eu
cd "$(dirname "$0")/../.."
. tests/lint/lib.sh

files '\.[ch]$' | grep -v '^tests/' | xargs -r awk '
function fault(why)
{
	printf "%s:%d: %s: %s\n", FILENAME, FNR, $2, why
}
# only(HEADER, FILES): a library header that only these files may include
function only(header, where)
{
	if (name == header && FILENAME !~ where)
		fault("only in " where)
}
# floor(ROOM, HEADER): arrows between the rooms of the supervisor go down
function floor(room, name)
{
	sub(/^supervisor\//, "", room)
	sub(/^supervisor\//, "", name)
	sub(/\/.*/, "", name)
	if (index(" " below[room] " ", " " name " ") == 0 && room != name)
		fault(room " stands on: " below[room] ", and common")
}
BEGIN {
	# What each room may include beside itself and common.
	below["master"] = below["store"] = below["mcp"] = below["http"] = ""
	below["keys"] = below["courier"] = below["stdio"] = ""
	below["ctl"] = "store" # the audit of a server that is stopped
	below["core"] = "store"
	below["tools"] = "core mcp store"
	below["front"] = "tools core mcp http store"
}
FNR == 1 {
	first = 1
	room = FILENAME
	sub(/\/[^\/]*$/, "", room)
	own = FILENAME
	sub(/\.c$/, ".h", own)
}
/^#[ \t]*include/ {
	name = $2
	gsub(/[<>"]/, "", name)
	ours = $2 ~ /^"/
	if (ours && name !~ /\// )
		fault("write the path from the top of the tree")
	if (FILENAME ~ /\.c$/ && first && own != FILENAME &&
	    (getline line < own) >= 0) {
		close(own)
		if (name != own && name !~ ("^" room "/[a-z_]*_int\\.h"))
			fault("first comes " own ", or the inner header of " \
			    "its room")
	}
	first = 0
	if (room ~ /^common/ && ours && name !~ /^common\//)
		fault("common includes only common")
	if (room ~ /^supervisor/ && name ~ /^worker\//)
		fault("supervisor and worker know only common")
	if (room ~ /^worker/ && name ~ /^supervisor\//)
		fault("supervisor and worker know only common")
	if (room ~ /^worker/ && room !~ /docker$/ && name ~ /^worker\/docker\// &&
	    FILENAME != "worker/backends.c")
		fault("a backend is behind worker/backends.h")
	if (room ~ /^images\/agent/ && ours &&
	    name !~ /^(common|images\/agent)\//)
		fault("the agent knows only common")
	if (room ~ /master$/ && (name ~ /^(jansson|sqlite3|event2\/http|curl)/ ||
	    name == "common/js.h"))
		fault("the supervisor parses nothing: no JSON, SQL, HTTP, curl")
	if (room ~ /^supervisor\// && name ~ /^supervisor\//)
		floor(room, name)
	if (room ~ /core$/ && name ~ /^(jansson|event2\/http)/)
		fault("core knows no JSON and no HTTP")
	only("sqlite3.h", "^supervisor/store/")
	only("archive.h", "^supervisor/ctl/")
	only("curl/curl.h", "^(worker/http|supervisor/(ctl|keys|courier|stdio))/")
	only("event2/http.h", "^supervisor/http/")
	only("event2/http_struct.h", "^supervisor/http/")
	only("seccomp.h", "^common/confine\\.")
	only("cmocka.h", "^tests/")
}' | verdict 'move the code to the room that may use it, or pass it in'
