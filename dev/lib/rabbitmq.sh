# shellcheck shell=bash
# RabbitMQ with the management plugin. Ports: BASE is AMQP, then management,
# distribution, epmd.
#
# Every node has an epmd of its own, so that none is left behind and none of
# another's is stopped. Erlang starts it; rabbitmq_cleanup ends it.

rabbitmq_missing() {
	if [[ $KIND == rabbitmq4 ]]; then missing_packages debootstrap; else missing_packages rabbitmq-server; fi
}

rabbitmq_prepare() { [[ $KIND != rabbitmq4 ]] || provide_trixie; }

rabbitmq_create() {
	mkdir -m 700 "$DIR/data"
	rabbitmq_settings >"$DIR/data/rabbitmq.conf"
	echo '[rabbitmq_management].' >"$DIR/data/enabled_plugins"
	# The settings that Bide recommends for at-least-once dead-lettering; they
	# have no name in rabbitmq.conf's own format.
	cat >"$DIR/data/advanced.config" <<-ERLANG
		[{rabbit, [{dead_letter_worker_consumer_prefetch, 512},
		           {dead_letter_worker_publisher_confirm_timeout, 5000}]}].
	ERLANG
	give "$(rabbitmq_owner)" "$DIR/data"
}

rabbitmq_settings() {
	cat <<-CONF
		listeners.tcp.1 = 127.0.0.1:$BASE
		management.tcp.ip = 127.0.0.1
		management.tcp.port = $((BASE + 1))
		default_user = bide
		default_pass = $PASSWORD
		disk_free_limit.absolute = 50MB
		log.console = true
		log.console.level = info
		log.file = false
	CONF
	cat "$DIR/settings"
}

rabbitmq_owner() {
	if [[ $KIND == rabbitmq4 ]]; then trixie_owner rabbitmq; else echo rabbitmq:; fi
}

# rabbitmq_words PROGRAM: fills the array `words` with everything before its arguments.
# Busy waiting is off: idle schedulers of several nodes would eat a small machine.
rabbitmq_words() {
	local prefix
	if [[ $KIND == rabbitmq4 ]]; then inside_trixie rabbitmq; else becoming rabbitmq; fi
	words=("${prefix[@]}"
		env -i PATH="$PATH" LANG=C.UTF-8
		HOME="$DIR/data"
		ERL_EPMD_ADDRESS=127.0.0.1
		ERL_EPMD_PORT=$((BASE + 3))
		RABBITMQ_NODENAME="bide-$NAME@localhost"
		RABBITMQ_DIST_PORT=$((BASE + 2))
		RABBITMQ_CONF_ENV_FILE="$DIR/data/no-environment-file"
		RABBITMQ_CONFIG_FILE="$DIR/data/rabbitmq.conf"
		RABBITMQ_ADVANCED_CONFIG_FILE="$DIR/data/advanced.config"
		RABBITMQ_ENABLED_PLUGINS_FILE="$DIR/data/enabled_plugins"
		RABBITMQ_MNESIA_BASE="$DIR/data/mnesia"
		RABBITMQ_LOG_BASE="$DIR/data/log"
		RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS="+sbwt none +sbwtdcpu none +sbwtdio none -kernel inet_dist_use_interface {127,0,0,1}"
		RUNNING_UNDER_SYSTEMD=true # the script becomes the server instead of guarding it
		"$1")
}

rabbitmq_command() {
	local words
	rabbitmq_words /usr/lib/rabbitmq/bin/rabbitmq-server
	command=("${words[@]}")
}

# Listeners open before this line, and definitions are in place by then.
rabbitmq_ready() { grep -q 'Server startup complete' "$DIR/log"; }

rabbitmq_url() { printf 'amqp://bide:%s@127.0.0.1:%s/\n' "$PASSWORD" "$BASE"; }
rabbitmq_management_url() { printf 'http://bide:%s@127.0.0.1:%s\n' "$PASSWORD" "$((BASE + 1))"; }

rabbitmq_report() {
	printf 'URL=%s\nMANAGEMENT_URL=%s\n' "$(rabbitmq_url)" "$(rabbitmq_management_url)"
}

rabbitmq_environment() {
	export_line "BIDE_TEST_${KIND^^}_URL" "$(rabbitmq_url)"
	export_line "BIDE_TEST_${KIND^^}_MANAGEMENT_URL" "$(rabbitmq_management_url)"
}

rabbitmq_ctl() {
	local words
	rabbitmq_words /usr/lib/rabbitmq/bin/rabbitmqctl
	"${words[@]}" "$@"
}

rabbitmq_cleanup() {
	end_epmd
	[[ $KIND != rabbitmq4 ]] || rmdir "$trixie$DIR"
}

# epmd refuses to go while a node is still on its list.
end_epmd() {
	local words try
	rabbitmq_words /usr/bin/epmd
	for try in {1..20}; do
		is_listening $((BASE + 3)) || return 0
		"${words[@]}" -kill >/dev/null 2>&1 || true
		sleep 0.1
	done
	say "epmd of $NAME is still there after $try tries"
}
