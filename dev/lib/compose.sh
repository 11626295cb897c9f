# shellcheck shell=bash
# Instances as containers, where packages cannot be had. Each is a Compose
# project of one service, on the host's network, so that ports and configuration
# files are those of a plain process.

has_docker() { docker info >/dev/null 2>&1 && docker compose version >/dev/null 2>&1; }

compose() {
	local image=rabbitmq:3.10-management
	[[ $KIND != rabbitmq4 ]] || image=rabbitmq:4-management
	env "NAME=$NAME" "DIR=$DIR" "BASE=$BASE" "PASSWORD=$PASSWORD" "RABBITMQ_IMAGE=$image" \
		"DIST_PORT=$((BASE + 2))" "EPMD_PORT=$((BASE + 3))" \
		docker compose --project-name "bide-${state##*/}-$NAME" --file "$root/dev/compose.yml" "$@" 2>>"$DIR/log"
}

compose_start() { compose up --detach --wait "${KIND%[0-9]}" >>"$DIR/log"; }
compose_is_running() { [[ -n $(compose ps --quiet --status running --status paused) ]]; }
compose_kill() { compose kill; }
compose_pause() { compose pause; }
compose_resume() { compose unpause; }
compose_erase() { compose down --volumes; }
compose_root_pid() { docker inspect --format '{{.State.Pid}}' "$(compose ps --all --quiet)"; }

# A paused container cannot be asked to stop.
compose_stop() {
	compose unpause || true
	compose stop
}

compose_ctl() {
	local client
	case $KIND in
	rabbitmq*) client=(rabbitmqctl) ;;
	redis) client=(redis-cli -p "$BASE" -a "$PASSWORD") ;;
	*) client=(psql "$(call url)") ;;
	esac
	compose exec -T "${KIND%[0-9]}" "${client[@]}" "$@"
}
