# shellcheck shell=bash
# The commands of dev/services.

up() {
	[[ $# -gt 0 ]] || set -- postgres pgbouncer rabbitmq
	local kind
	for kind in "$@"; do check_kind "$kind"; done
	for kind in "$@"; do KIND=$kind call install; done
	# PgBouncer needs to know PostgreSQL's port; the others come up side by side.
	local first=() pid pids=()
	for kind in "$@"; do [[ $kind == pgbouncer ]] || first+=("$kind"); done
	for kind in "${first[@]}"; do
		with_lock "${state##*/}.$kind" up_one "$kind" &
		pids+=($!)
	done
	for pid in "${pids[@]}"; do wait "$pid"; done
	[[ " $* " != *" pgbouncer "* ]] || with_lock "${state##*/}.pgbouncer" up_one pgbouncer
}

up_one() {
	NAME=$1 DIR=$state/$1
	if [[ -e $DIR/instance ]]; then load "$1"; else create "$1" "$1"; fi
	is_alive || say "starting $NAME"
	launch
}

start_private() {
	[[ $# -ge 2 ]] || die "start: which kind, and what name?"
	local kind=$1
	# Tests ask for "rabbitmq"; which one that is depends on the matrix.
	[[ $kind != rabbitmq ]] || kind=${BIDE_TEST_RABBITMQ_KIND:-rabbitmq}
	shift
	check_kind "$kind"
	KIND=$kind call install
	with_lock "${state##*/}.$1" create_and_launch "$kind" "$@"
}

create_and_launch() {
	create "$@"
	launch
	report
}

on_instance() {
	local verb=$1
	shift
	load "$1"
	shift
	case $verb in
	ctl) call ctl "$@" ;;
	show) report ;;
	*) with_lock "${state##*/}.$NAME" "on_$verb" ;;
	esac
}

on_stop() { halt; }
on_kill() { kill_tree; }
on_pause() { signal_tree STOP; }
on_resume() { signal_tree CONT; }
on_wipe() { wipe_data; }
on_remove() { erase; }
on_restart() {
	halt
	launch
	report
}

down() {
	local name
	for name in $(instance_names); do
		load "$name"
		say "removing $name"
		with_lock "${state##*/}.$name" erase
	done
	rm -rf "$state" "$state_root/${state##*/}".*.lock
}

list_instances() {
	local name status
	for name in $(instance_names); do
		load "$name"
		if is_alive; then status=running; else status=stopped; fi
		printf '%-20s %-10s %-8s %s\n' "$NAME" "$KIND" "$status" "$BASE"
	done
}

print_environment() {
	local name
	for name in "${kinds[@]}"; do
		[[ -e $state/$name/instance ]] || continue
		load "$name"
		! is_alive || call environment
	done
	export_line BIDE_TEST_SERVICES "$root/dev/services"
}

export_line() { printf "export %s='%s'\n" "$1" "$2"; }
