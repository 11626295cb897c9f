# shellcheck shell=bash
# Debian packages, installed without the servers that they would bring up.

# need_packages PACKAGE...: installs what is missing.
need_packages() {
	local missing
	missing=$(missing_packages "$@")
	[[ -n $missing ]] || return 0
	can_install || die "missing packages: ${missing% }. Install them, or run as root on Debian, or start a Docker engine"
	# shellcheck disable=SC2086 # one word per package
	with_lock packages install_packages $missing
}

missing_packages() {
	local package
	for package in "$@"; do
		is_installed "$package" || printf '%s ' "$package"
	done
}

is_installed() {
	# shellcheck disable=SC2016 # dpkg's own variable
	[[ $(dpkg-query -W -f='${Status}' "$1" 2>/dev/null) == "install ok installed" ]]
}

can_install() { is_root && command -v apt-get >/dev/null; }

install_packages() {
	local missing
	missing=$(missing_packages "$@")
	[[ -n $missing ]] || return 0
	say "installing ${missing% }"
	trap allow_servers EXIT
	forbid_servers
	# shellcheck disable=SC2086
	apt_install $missing >"$state/apt.log" 2>&1 ||
		{ apt-get -q update && apt_install $missing; } >"$state/apt.log" 2>&1 ||
		{
			tail -n 20 "$state/apt.log" >&2
			die "could not install $missing"
		}
	# shellcheck disable=SC2086
	keep_disabled $missing
}

apt_install() {
	DEBIAN_FRONTEND=noninteractive apt-get -qy -o DPkg::Lock::Timeout=600 install --no-install-recommends "$@"
}

# A policy of 101 tells maintainer scripts not to start anything; the
# createcluster setting keeps PostgreSQL's from making a cluster.
policy=/usr/sbin/policy-rc.d
no_cluster=/etc/postgresql-common/createcluster.d/bide.conf

forbid_servers() {
	[[ ! -e $policy || -e $policy.before-bide ]] || mv "$policy" "$policy.before-bide"
	printf '#!/bin/sh\nexit 101\n' >"$policy"
	chmod 755 "$policy"
	mkdir -p "$(dirname "$no_cluster")"
	echo 'create_main_cluster = off' >"$no_cluster"
}

allow_servers() {
	rm -f "$policy" "$no_cluster"
	[[ ! -e $policy.before-bide ]] || mv "$policy.before-bide" "$policy"
}

# Nor shall a server that only we wanted come up with the next boot.
keep_disabled() {
	local package
	for package in "$@"; do
		case $package in
		pgbouncer | rabbitmq-server) update-rc.d "$package" disable >>"$state/apt.log" 2>&1 || true ;;
		esac
	done
}
