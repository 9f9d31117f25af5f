# engine.sh - bootstrap's engine: the one there is, or one of our own
#
# Sourced by bootstrap, whose places and words it uses.  find_engine and
# start_engine set DOCKER_HOST; stop_engine ends ours alone.
# shellcheck shell=bash
# shellcheck disable=SC2154,SC2119,SC2120 # bootstrap has the places, and calls

# engine_curl PATH [curl option...] - one call to the engine at DOCKER_HOST, as
# the server makes it (docs/engines.md)
engine_curl()
{
	local path=$1 at=${DOCKER_HOST#tcp://} name
	local -a files

	shift
	if [ "$at" = "$DOCKER_HOST" ]; then
		curl -s --unix-socket "${DOCKER_HOST#unix://}" "$@" \
		    "http://engine$path"
	elif [ -z "${DOCKER_TLS_VERIFY:-}" ]; then
		curl -s "$@" "http://$at$path"
	else
		files=(--cacert "${DOCKER_CERT_PATH:-}/ca.pem")
		for name in cert key; do
			[ ! -e "${DOCKER_CERT_PATH:-}/$name.pem" ] ||
			    files+=("--$name" "$DOCKER_CERT_PATH/$name.pem")
		done
		curl -s "${files[@]}" "$@" "https://$at$path"
	fi
}

# answers SOCKET - an engine listens there and talks to us
answers()
{
	[ -S "$1" ] && [ "$(DOCKER_HOST=unix://$1 \
	    engine_curl /_ping --max-time 3 2>/dev/null)" = OK ]
}

find_engine()
{
	local s

	# Ours, of a shell that has build/env, is started again when it is gone.
	if [ "${DOCKER_HOST:-}" = "unix://$engine_socket" ] &&
	    ! answers "$engine_socket"; then
		unset DOCKER_HOST
	fi
	if [ -n "${DOCKER_HOST:-}" ]; then
		case $DOCKER_HOST in
		unix://*)
			answers "${DOCKER_HOST#unix://}" ||
			    die "no engine answers at DOCKER_HOST=$DOCKER_HOST"
			;;
		tcp://*)
			[ "$(engine_curl /_ping --max-time 5)" = OK ] ||
			    die "no engine answers at DOCKER_HOST=$DOCKER_HOST" \
				"(DOCKER_TLS_VERIFY=${DOCKER_TLS_VERIFY:-}," \
				"DOCKER_CERT_PATH=${DOCKER_CERT_PATH:-})"
			;;
		*)
			die "DOCKER_HOST is $DOCKER_HOST; it must be" \
			    "unix:///path or tcp://HOST:PORT"
			;;
		esac
		return 0
	fi
	for s in "$engine_socket" "$engine/docker.sock" \
	    "${XDG_RUNTIME_DIR:-/run}/docker.sock" /run/docker.sock \
	    /var/run/docker.sock; do
		if answers "$s"; then
			export DOCKER_HOST=unix://$s
			return 0
		fi
	done
	return 1
}

# is_engine_ours - the one in use is this tree's
is_engine_ours()
{
	[ "$DOCKER_HOST" = "unix://$engine_socket" ] ||
	    [ "$DOCKER_HOST" = "unix://$engine/docker.sock" ]
}

# Another engine in the same network namespace would lose its bridge to ours,
# and tests need no network at all: then ours gets a namespace of its own.  It
# shares the host's only to serve, when nobody else can be there.
engine_network()
{
	if [ "$1" = check ] || grep -qsx dockerd /proc/[0-9]*/comm ||
	    { [ -e /sys/class/net/docker0 ] &&
	    [ ! -e "$engine/owns-docker0" ]; }; then
		echo own
	else
		echo host
	fi
}

# Who may talk to it, root aside: as packaged, or the user who starts it.
engine_group()
{
	if [ "$(id -u)" = 0 ] && grep -q '^docker:' /etc/group; then
		echo docker
	else
		id -g
	fi
}

# Root of a container is a user of its own then, who has to be able to get to
# what the engine keeps and mounts.  An engine that began without goes on so:
# its images would be out of its sight.
engine_remaps()
{
	[ "${BOOTSTRAP_REMAP:-0}" = 1 ] || return 1
	if as_root test -d "$engine/data/image"; then
		say 'the engine has data without a remap: it goes on without'
	elif ! as_root setpriv --reuid 65533 --regid 65533 --clear-groups \
	    test -x "$engine"; then
		say "no remap: other users cannot get to $engine"
	else
		return 0
	fi
	return 1
}

# spawn_engine own|host
spawn_engine()
{
	local -a ns=(unshare --mount --propagation slave)
	local -a args=(--host "unix://$engine_socket"
		--data-root "$engine/data" --exec-root "$engine_exec"
		--pidfile "$engine/dockerd.pid"
		--config-file "$engine/daemon.json"
		--group "$(engine_group)" --userland-proxy=false)

	if engine_remaps; then
		args+=(--userns-remap=default)
	fi
	if [ "$1" = own ]; then
		ns+=(--net)
		args+=(--iptables=false --ip-masq=false)
	else
		as_root touch "$engine/owns-docker0"
	fi
	as_root mkdir -p "$engine/data" "$engine_exec"
	echo '{}' | as_root tee "$engine/daemon.json" >/dev/null
	as_root setsid "${ns[@]}" dockerd "${args[@]}" \
	    >"$engine/dockerd.log" 2>&1 </dev/null 9>&- &
	disown
}

engine_pid()
{
	local pid

	pid=$(cat "$engine/dockerd.pid" 2>/dev/null) || return 1
	[ -n "$pid" ] &&
	    tr '\0' ' ' 2>/dev/null <"/proc/$pid/cmdline" |
	    grep -q -F -- "--pidfile $engine/dockerd.pid " && echo "$pid"
}

# await SECONDS COMMAND... - until it succeeds; by the clock
await()
{
	local end=$((SECONDS + $1))

	shift
	until "$@"; do
		[ "$SECONDS" -lt "$end" ] || return 1
		sleep 0.1
	done
}

# It answers, or said why it failed and is gone.
engine_began()
{
	answers "$engine_socket" ||
	    { [ "$SECONDS" -ge "$engine_due" ] && ! engine_pid >/dev/null; }
}

# Up to a minute: the first start makes a data directory.
await_engine()
{
	engine_due=$((SECONDS + 3))
	await 60 engine_began && answers "$engine_socket"
}

start_engine()
{
	local network

	find_engine && return 0
	command -v dockerd >/dev/null 2>&1 || {
		install_packages "${packages_engine[@]}"
		# Where an init system runs, the package has started it.
		if [ -d /run/systemd/system ] && await 10 find_engine; then
			return 0
		fi
	}
	mkdir -p "$engine"
	network=$(engine_network "$1")
	say "starting an engine in build/engine (network: $network)"
	spawn_engine "$network"
	if ! await_engine && [ "$network" = host ]; then
		stop_engine
		say 'it did not start; trying with a network of its own'
		spawn_engine own
		await_engine || :
	fi
	answers "$engine_socket" || {
		tail -n 20 "$engine/dockerd.log" >&2
		die "the engine does not start; its log is" \
		    "$engine/dockerd.log.  Start one yourself and set DOCKER_HOST"
	}
	export DOCKER_HOST=unix://$engine_socket
}

is_gone()
{
	[ ! -e "/proc/$1" ]
}

stop_engine()
{
	local pid

	if pid=$(engine_pid); then
		# The shell's own: a program kill comes with procps.
		# shellcheck disable=SC2016 # the other shell's argument
		as_root sh -c 'kill "$1"' sh "$pid"
		await 30 is_gone "$pid" ||
		    die "the engine (process $pid) does not stop"
		say 'the engine is stopped'
	elif [ "${1:-}" = aloud ]; then
		say 'no engine of ours runs'
	fi
	# Made for it alone (engine_paths); what was mounted there went with it.
	[ "$engine_exec" = "$engine/exec" ] || [ ! -d "$engine_exec" ] ||
	    as_root rm -rf --one-file-system "$engine_exec"
	if [ -e "$engine/owns-docker0" ]; then
		as_root ip link delete docker0 2>/dev/null || :
		[ -e /sys/class/net/docker0 ] ||
		    as_root rm -f "$engine/owns-docker0"
	fi
}
