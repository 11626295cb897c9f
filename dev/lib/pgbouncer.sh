# shellcheck shell=bash
# PgBouncer in transaction mode before the shared PostgreSQL.

pgbouncer_missing() { missing_packages pgbouncer; }

pgbouncer_create() {
	local upstream
	upstream=$(load postgres && printf '%s %s' "$BASE" "$PASSWORD") || die "pgbouncer needs postgres: up postgres pgbouncer"
	read -r UPSTREAM_PORT PASSWORD <<<"$upstream"
	mkdir "$DIR/data"
	printf '"bide" "%s"\n' "$PASSWORD" >"$DIR/data/users"
	pgbouncer_settings >"$DIR/data/pgbouncer.ini"
	chmod 700 "$DIR/data"
	give postgres: "$DIR/data"
	printf 'PASSWORD=%s\n' "$PASSWORD" >>"$DIR/instance"
}

# 20 server connections in all: fewer than the clients of a test, so that
# sessions really are shared.
pgbouncer_settings() {
	cat <<-INI
		[databases]
		* = host=127.0.0.1 port=$UPSTREAM_PORT
		[pgbouncer]
		listen_addr = 127.0.0.1
		listen_port = $BASE
		unix_socket_dir =
		auth_type = plain
		auth_file = $DIR/data/users
		admin_users = bide
		pool_mode = transaction
		default_pool_size = 20
		max_client_conn = 500
		ignore_startup_parameters = extra_float_digits
	INI
	cat "$DIR/settings"
}

pgbouncer_command() {
	becoming postgres
	command=("${prefix[@]}" /usr/sbin/pgbouncer "$DIR/data/pgbouncer.ini")
}

pgbouncer_ready() { is_listening "$BASE"; }

pgbouncer_url() { printf 'postgres://bide:%s@127.0.0.1:%s/bide?sslmode=disable\n' "$PASSWORD" "$BASE"; }

pgbouncer_report() { printf 'URL=%s\n' "$(pgbouncer_url)"; }

pgbouncer_environment() { export_line BIDE_TEST_PGBOUNCER_URL "$(pgbouncer_url)"; }

pgbouncer_ctl() { "$(postgres_bin)/psql" "postgres://bide:$PASSWORD@127.0.0.1:$BASE/pgbouncer" "$@"; }
