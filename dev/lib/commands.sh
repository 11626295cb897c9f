# shellcheck shell=bash
# The commands of dev/services.

up() {
	[[ $# -gt 0 ]] || set -- postgres pgbouncer rabbitmq
	local kind
	for kind in "$@"; do check_kind "$kind"; done
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
	if [[ -e $state/$1/instance ]]; then
		load "$1"
	else
		KIND=$1
		provide
		create "$1"
	fi
	on_engine is_running || say "starting $NAME"
	launch
}

start_private() {
	[[ $# -ge 2 ]] || die "start: which kind, and what name?"
	KIND=$1
	# Tests ask for "rabbitmq"; which one that is depends on the matrix.
	[[ $KIND != rabbitmq ]] || KIND=${BIDE_TEST_RABBITMQ_KIND:-rabbitmq}
	shift
	check_kind "$KIND"
	provide
	with_lock "${state##*/}.$1" create_and_launch "$@"
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
	ctl) on_engine ctl "$@" ;;
	show) report ;;
	*) with_lock "${state##*/}.$NAME" "on_$verb" ;;
	esac
}

on_stop() { on_engine stop; }
on_kill() { on_engine kill; }
on_pause() { on_engine pause; }
on_resume() { on_engine resume; }
on_wipe() { wipe_data; }
on_remove() { erase; }
on_restart() {
	on_engine stop
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
		if on_engine is_running; then status=running; else status=stopped; fi
		printf '%-20s %-10s %-8s %s\n' "$NAME" "$KIND" "$status" "$BASE"
	done
}

print_environment() {
	local name
	for name in "${kinds[@]}"; do
		[[ -e $state/$name/instance ]] || continue
		load "$name"
		! on_engine is_running || call environment
	done
	export_line BIDE_TEST_SERVICES "$root/dev/services"
}

export_line() { printf "export %s='%s'\n" "$1" "$2"; }
