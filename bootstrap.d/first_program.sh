# first_program.sh - bootstrap's first program, through MCP
#
# Sourced by bootstrap, which has $url, and $work for what is kept in between.
# shellcheck shell=bash
# shellcheck disable=SC2154,SC2034 # bootstrap sets them, and says first_said

# rpc ID METHOD PARAMS - one request through MCP; prints the result
rpc()
{
	local body type

	body=$(jq -nc --argjson id "$1" --arg m "$2" --argjson p "$3" \
	    '{jsonrpc: "2.0", id: $id, method: $m, params: $p}')
	curl -sS --max-time 180 -o "$work/reply" -D "$work/headers" \
	    -w '%{time_total}' -H 'Content-Type: application/json' \
	    -H 'Accept: application/json, text/event-stream' \
	    -H 'MCP-Protocol-Version: 2025-11-25' \
	    ${session:+-H "Mcp-Session-Id: $session"} \
	    --data-binary "$body" "$url" >"$work/seconds" ||
	    die "the server did not answer $2"
	type=$(tr -d '\r' <"$work/headers" |
	    sed -n 's/^content-type: *//Ip')
	case $type in
	text/event-stream*) sed -n 's/^data: *//p' "$work/reply" ;;
	*) cat "$work/reply" ;;
	esac | jq -c --argjson id "$1" 'select(.id == $id)' >"$work/message"
	jq -e .result "$work/message" ||
	    die "$2 was answered: $(cat "$work/reply")"
}

milliseconds()
{
	awk '{ printf "%.1f ms", $1 * 1000 }' "$work/seconds"
}

notify()
{
	curl -sS --max-time 20 -o /dev/null \
	    -H 'Content-Type: application/json' \
	    -H 'Accept: application/json, text/event-stream' \
	    -H 'MCP-Protocol-Version: 2025-11-25' \
	    ${session:+-H "Mcp-Session-Id: $session"} \
	    --data-binary "{\"jsonrpc\":\"2.0\",\"method\":\"$1\"}" "$url"
}

# Sets first_said: what it printed, and how fast.
first_program()
{
	local name code call out want took

	name=first-program
	code='print(sum(n * n for n in range(1000)))'
	want=332833500
	session=
	rpc 1 initialize '{"protocolVersion": "2025-11-25",
	    "capabilities": {},
	    "clientInfo": {"name": "bootstrap", "version": "1"}}' \
	    >"$work/result"
	session=$(tr -d '\r' <"$work/headers" |
	    sed -n 's/^mcp-session-id: *//Ip')
	notify notifications/initialized
	call=$(jq -nc --arg id "$name" --arg code "$code" '{
	    name: "run_sandbox", arguments: {identifier: $id,
	    commands: [{argv: ["python3", "-c", $code]}],
	    options: {await_completion: true, await_timeout_ms: 120000}}}')
	for i in 2 3; do
		rpc "$i" tools/call "$call" >"$work/result"
		# How it stands, its exit code, what it printed.
		out=$(jq -r '.content[0].text | split("\n")[2]' \
		    "$work/result")
		if [ "$out" != "$want" ]; then
			cat "$work/result" >&2
			die "it printed '$out', not $want"
		fi
		[ "$i" != 2 ] || took=$(milliseconds)
	done
	first_said="$code printed $out in $took in a new sandbox, again in $(
	    milliseconds) in the warm one"
	rpc 4 tools/call "$(jq -nc --arg id "$name" '{
	    name: "delete_sandbox", arguments: {identifier: $id}}')" \
	    >"$work/result"
}
