# shellcheck shell=bash
# PostgreSQL 14 or later, from the distribution. Durable as in production
# (fsync and synchronous_commit stay on): tests kill it and count rows after.

postgres_missing() { [[ -n $(postgres_bin) ]] || echo postgresql postgresql-client; }

# postgres_bin: the newest server's programs. Debian keeps them off the PATH.
postgres_bin() {
	local initdb
	initdb=$(printf '%s\n' /usr/lib/postgresql/*/bin/initdb | sort -V | tail -n 1)
	[[ -x $initdb ]] || initdb=$(command -v initdb || true)
	[[ -z $initdb ]] || dirname "$initdb"
}

postgres_create() {
	[[ $ENGINE == process ]] || return 0
	local bin
	bin=$(postgres_bin)
	mkdir -m 700 "$DIR/data"
	printf '%s\n' "$PASSWORD" >"$DIR/password"
	chmod 600 "$DIR/password"
	give postgres: "$DIR/data" "$DIR/password"
	(
		cd "$DIR"
		as postgres "$bin/initdb" -D data -U bide --auth=scram-sha-256 --pwfile=password \
			--encoding=UTF8 --no-locale --no-sync &&
			postgres_settings | as postgres tee -a data/postgresql.conf &&
			echo 'CREATE DATABASE bide' | as postgres "$bin/postgres" --single -D data postgres
	) >"$DIR/create.log" 2>&1 || {
		tail -n 20 "$DIR/create.log" >&2
		return 1
	}
}

postgres_settings() {
	cat <<-CONF
		listen_addresses = '127.0.0.1'
		port = $BASE
		unix_socket_directories = ''
		max_connections = 300
		shared_buffers = 256MB
		max_wal_size = 2GB
		log_line_prefix = '%m [%p] %a '
	CONF
	if [[ -e $(postgres_bin)/../lib/pg_stat_statements.so ]]; then
		echo "shared_preload_libraries = 'pg_stat_statements'"
	fi
	cat "$DIR/settings"
}

# A killed server leaves its lock file, and where process 1 reaps slowly the
# server's id still looks taken. launch has made sure that it is dead.
postgres_command() {
	rm -f "$DIR/data/postmaster.pid"
	becoming postgres
	command=("${prefix[@]}" "$(postgres_bin)/postgres" -D "$DIR/data")
}

postgres_ready() { "$(postgres_bin)/pg_isready" -q -h 127.0.0.1 -p "$BASE"; }

postgres_url() { printf 'postgres://bide:%s@127.0.0.1:%s/bide?sslmode=disable\n' "$PASSWORD" "$BASE"; }

postgres_report() { printf 'URL=%s\n' "$(postgres_url)"; }

postgres_environment() { export_line BIDE_TEST_DATABASE_URL "$(postgres_url)"; }

postgres_ctl() { "$(postgres_bin)/psql" "$(postgres_url)" "$@"; }
