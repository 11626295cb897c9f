# shellcheck shell=bash
# The life of an instance, whatever its kind. A kind is a set of functions:
#
#   KIND_install          packages
#   KIND_create           data and configuration in $DIR
#   KIND_command          fills the array `command`: the server, in the foreground
#   KIND_ready            true once it serves
#   KIND_report           KEY=VALUE lines for tests
#   KIND_ctl ARGS...      its own command-line client
#
# Kinds that differ by a digit at the end share their functions. While they
# run, NAME, DIR, KIND, BASE (first of eight ports) and PASSWORD are set.

kinds=(postgres pgbouncer rabbitmq rabbitmq4)

call() {
	local function=$1
	shift
	"${KIND%[0-9]}_$function" "$@"
}

check_kind() {
	local kind
	for kind in "${kinds[@]}"; do
		[[ $kind != "$1" ]] || return 0
	done
	die "unknown kind: $1 (there are: ${kinds[*]})"
}

# load NAME: sets the variables of an instance that exists.
load() {
	NAME=$1
	DIR=$state/$NAME
	[[ $NAME =~ ^[a-z][a-z0-9-]{0,39}$ ]] || die "bad name: $NAME (letters, digits and hyphens, at most 40)"
	[[ -e $DIR/instance ]] || die "no instance $NAME (there are: $(instance_names | xargs))"
	# shellcheck source=/dev/null
	source "$DIR/instance"
}

instance_names() {
	local file
	for file in "$state"/*/instance; do
		[[ ! -e $file ]] || basename "$(dirname "$file")"
	done
}

# create KIND NAME [KEY=VALUE...]
create() {
	KIND=$1 NAME=$2 DIR=$state/$2
	shift 2
	[[ $NAME =~ ^[a-z][a-z0-9-]{0,39}$ ]] || die "bad name: $NAME (letters, digits and hyphens, at most 40)"
	[[ ! -e $DIR/instance ]] || die "there is an instance $NAME already: show, restart or remove it"
	rm -rf "$DIR"
	mkdir "$DIR"
	printf '%s\n' "$@" >"$DIR/settings"
	BASE=$(reserve_ports "$DIR")
	PASSWORD=$(new_password)
	(umask 077 && printf 'KIND=%s BASE=%s PASSWORD=%s\n' "$KIND" "$BASE" "$PASSWORD" >"$DIR/instance")
	call create
}

launch() {
	! is_alive || return 0
	local command prefix
	call command
	spawn "${command[@]}"
	await 90 call ready || {
		tail -n 30 "$DIR/log" >&2
		die "$NAME did not come up; its whole log is $DIR/log"
	}
}

# halt: SIGTERM asks each kind but PostgreSQL to stop in good order; that one
# would wait for its clients, and SIGINT tells it not to.
halt() {
	is_alive || return 0
	local signal=TERM
	[[ $KIND != postgres ]] || signal=INT
	signal_tree CONT
	kill -s "$signal" "$(root_pid)"
	local deadline=$((SECONDS + 30))
	while is_alive; do
		((SECONDS < deadline)) || { say "$NAME does not stop, killing it" && break; }
		sleep 0.05
	done
	kill_tree
}

erase() {
	kill_tree
	if [[ $(type -t "${KIND%[0-9]}_cleanup") == function ]]; then call cleanup; fi
	rm -rf "$DIR"
	release_ports "$BASE"
}

wipe_data() {
	! is_alive || die "$NAME runs: stop or kill it first"
	rm -rf "$DIR/data"
	call create
}

report() {
	call report
	printf 'PORT=%s\nPID=%s\nDATA=%s\n' "$BASE" "$(root_pid)" "$DIR/data"
}
