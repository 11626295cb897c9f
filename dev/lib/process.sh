# shellcheck shell=bash
# Instances as process trees. $DIR/pid holds the root's id with its start time,
# because ids are used again.

process_start() {
	local command prefix
	call command
	spawn "${command[@]}"
	await 120 call ready
}

process_is_running() {
	local pid start
	[[ -e $DIR/pid ]] || return 1
	read -r pid start <"$DIR/pid"
	[[ -n $start && $(start_time "$pid") == "$start" ]]
}

# process_stop: SIGTERM asks each kind but PostgreSQL to stop in good order; that
# one would wait for its clients, and SIGINT tells it not to.
process_stop() {
	process_is_running || return 0
	local signal=TERM deadline=$((SECONDS + 30))
	[[ $KIND != postgres ]] || signal=INT
	signal_tree CONT
	kill -s "$signal" "$(process_root_pid)"
	while process_is_running; do
		((SECONDS < deadline)) || { say "$NAME does not stop, killing it" && break; }
		sleep 0.05
	done
	process_kill
}

process_kill() {
	local try
	signal_tree KILL
	for try in {1..100}; do
		[[ -n $(tree) ]] || return 0
		sleep 0.05
	done
	die "process tree of $NAME survives SIGKILL after $try looks: $(tree | xargs)"
}

process_pause() { signal_tree STOP; }
process_resume() { signal_tree CONT; }

process_erase() {
	process_kill
	call_if_any cleanup
}

process_ctl() { call ctl "$@"; }
process_root_pid() { [[ ! -e $DIR/pid ]] || cut -d' ' -f1 "$DIR/pid"; }

# spawn COMMAND...: runs it in a session of its own, with nothing inherited:
# neither a caller's pipe nor a lock may live on in a server.
spawn() {
	local fd
	[[ ! -e $DIR/log ]] || mv "$DIR/log" "$DIR/log.previous"
	(
		cd "$DIR"
		for fd in /proc/self/fd/*; do
			fd=${fd##*/}
			((fd <= 2)) || eval "exec $fd>&-"
		done
		exec setsid "$@" </dev/null >"$DIR/log" 2>&1
	) &
	printf '%s %s\n' "$!" "$(start_time "$!")" >"$DIR/pid"
}

# start_time PID: the kernel's start time; nothing for a zombie or no process.
start_time() {
	local stat
	{ stat=$(<"/proc/$1/stat"); } 2>/dev/null || return 0
	# The command name may hold blanks and brackets: fields count from the last one.
	read -ra stat <<<"${stat##*) }"
	[[ ${stat[0]} == Z ]] || printf '%s\n' "${stat[19]}"
}

# tree: the root, what descends from it, and what is left of its session after
# the root has died. A session's id is not given out again while one member lives.
tree() {
	local pid start now
	[[ -e $DIR/pid ]] || return 0
	read -r pid start <"$DIR/pid"
	now=$(start_time "$pid")
	[[ -z $now || $now == "$start" ]] || return 0
	cat /proc/[0-9]*/stat 2>/dev/null | awk -v root="$pid" '
		{ pid = $1; sub(/^.*\) /, ""); if ($1 != "Z") { parent[pid] = $2; session[pid] = $4 } }
		function ours(p) { return p == root || session[p] == root || (p in parent && p > 1 && ours(parent[p])) }
		END { for (p in parent) if (ours(p)) print p }'
}

# signal_tree SIGNAL: repeated until no process is new, since a tree may fork
# while it is being walked.
signal_tree() {
	local signal=$1 seen="" fresh
	while fresh=$(comm -13 <(sort <<<"$seen") <(tree | sort)) && [[ -n $fresh ]]; do
		# shellcheck disable=SC2086 # one word per process
		kill -s "$signal" $fresh 2>/dev/null || true
		seen+=$'\n'$fresh
	done
}

# await SECONDS COMMAND...: true once the command is, false when time is up or
# the instance has died.
await() {
	local deadline=$((SECONDS + $1))
	shift
	until "$@" >/dev/null 2>&1; do
		process_is_running || return 1
		((SECONDS < deadline)) || return 1
		sleep 0.1
	done
}
