# shellcheck shell=bash
# Redis, which only a peer in the benchmark needs. It writes as durably as Redis's
# documentation advises for queues: an append-only file, synced each second.

redis_missing() { missing_packages redis-server; }

redis_create() {
	mkdir "$DIR/data"
	{
		printf 'bind 127.0.0.1\nport %s\ndir %s\nrequirepass %s\n' "$BASE" "$DIR/data" "$PASSWORD"
		printf 'appendonly yes\nappendfsync everysec\nsave ""\ndaemonize no\n'
		cat "$DIR/settings"
	} >"$DIR/data/redis.conf"
	chmod 700 "$DIR/data"
	give redis:redis "$DIR/data"
}

redis_command() {
	becoming redis
	command=("${prefix[@]}" /usr/bin/redis-server "$DIR/data/redis.conf")
}

redis_ready() { is_listening "$BASE"; }

redis_report() { printf 'URL=%s\n' "redis://:$PASSWORD@127.0.0.1:$BASE/0"; }

redis_environment() { export_line BIDE_TEST_REDIS_URL "redis://:$PASSWORD@127.0.0.1:$BASE/0"; }

redis_ctl() { REDISCLI_AUTH=$PASSWORD redis-cli -h 127.0.0.1 -p "$BASE" "$@"; }
