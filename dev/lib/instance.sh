# shellcheck shell=bash
# The life of an instance, whatever its kind. A kind is a set of functions:
#
#   KIND_missing          Debian packages that it lacks, if any
#   KIND_prepare          optional: what packages do not give
#   KIND_create           data and configuration in $DIR
#   KIND_command          fills the array `command`: the server, in the foreground
#   KIND_ready            true once it serves
#   KIND_report           KEY=VALUE lines for tests
#   KIND_environment      export lines for tests, of the shared instance
#   KIND_ctl ARGS...      its own command-line client
#   KIND_cleanup          optional: what the process tree leaves behind
#
# Kinds that differ by a digit at the end share their functions. While they
# run, NAME, DIR, KIND, ENGINE, BASE (first of eight ports) and PASSWORD are set.
# ENGINE is process, or compose where Docker has to stand in for packages.

kinds=(postgres pgbouncer rabbitmq rabbitmq4 rocketmq4 rocketmq5 redis)

call() {
	local function=$1
	shift
	"${KIND%[0-9]}_$function" "$@"
}

call_if_any() { [[ $(type -t "${KIND%[0-9]}_$1") != function ]] || call "$1"; }

on_engine() {
	local verb=$1
	shift
	"${ENGINE}_$verb" "$@"
}

check_kind() {
	local kind
	for kind in "${kinds[@]}"; do
		[[ $kind != "$1" ]] || return 0
	done
	die "unknown kind: $1 (there are: ${kinds[*]})"
}

check_name() { [[ $1 =~ ^[a-z][a-z0-9-]{0,39}$ ]] || die "bad name: $1 (letters, digits and hyphens, at most 40)"; }

# provide: makes the kind's server available and says by which engine.
provide() {
	local missing
	missing=$(call missing)
	ENGINE=process
	if [[ -n $missing && $KIND != rocketmq* ]] && ! can_install && has_docker; then
		ENGINE=compose
		return
	fi
	# shellcheck disable=SC2086 # one word per package
	need_packages $missing
	call_if_any prepare
}

# load NAME: sets the variables of an instance that exists.
load() {
	check_name "$1"
	NAME=$1
	DIR=$state/$NAME
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

# create NAME [KEY=VALUE...]: an instance of KIND on ENGINE.
create() {
	check_name "$1"
	NAME=$1 DIR=$state/$1
	shift
	[[ ! -e $DIR/instance ]] || die "there is an instance $NAME already: show, restart or remove it"
	rm -rf "$DIR"
	mkdir "$DIR"
	printf '%s\n' "$@" >"$DIR/settings"
	BASE=$(reserve_ports "$DIR")
	PASSWORD=$(new_password)
	(umask 077 && printf 'KIND=%s ENGINE=%s BASE=%s PASSWORD=%s\n' "$KIND" "$ENGINE" "$BASE" "$PASSWORD" >"$DIR/instance")
	(call create) || {
		release_ports "$BASE"
		rm -rf "$DIR"
		die "$NAME could not be made"
	}
}

launch() {
	on_engine is_running || on_engine start || {
		tail -n 30 "$DIR/log" >&2
		die "$NAME did not come up; its whole log is $DIR/log"
	}
}

erase() {
	on_engine erase
	rm -rf "$DIR"
	release_ports "$BASE"
}

wipe_data() {
	! on_engine is_running || die "$NAME runs: stop or kill it first"
	on_engine erase
	rm -rf "$DIR/data"
	call create
}

report() {
	call report
	printf 'PORT=%s\nPID=%s\nDATA=%s\n' "$BASE" "$(on_engine root_pid)" "$DIR/data"
}
