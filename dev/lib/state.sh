# shellcheck shell=bash
# Where instances live, and the small tools that every part uses.
#
# The state directory is outside the checkout because servers run as their own
# users, who may not enter a home directory. Each checkout has its own.

state_root=/var/tmp/bide-$(id -u)
state=$state_root/$(printf %s "$root" | sha256sum | cut -c1-8)
cache=$state_root/cache

say() { printf 'services: %s\n' "$*" >&2; }

die() {
	say "$*"
	exit 1
}

prepare_state() {
	mkdir -p "$state_root"
	# /var/tmp is everyone's: a directory that someone else made first is theirs.
	[[ -O $state_root && ! -L $state_root ]] || die "$state_root belongs to somebody else"
	mkdir -p "$state" "$state_root/ports" "$cache"
	[[ -e $state/checkout ]] || printf '%s\n' "$root" >"$state/checkout"
}

# with_lock NAME COMMAND...: one caller at a time, others wait.
with_lock() {
	local name=$1
	shift
	(
		exec 9>"$state_root/$name.lock"
		flock 9
		"$@"
	)
}

new_password() { od -An -N16 -tx1 /dev/urandom | tr -d ' \n'; }

is_root() { [[ $(id -u) -eq 0 ]]; }

# becoming USER [GROUP]: fills the array `prefix` with what gives up root for a server
# that must not or need not have it; empty when there is no root to give up.
becoming() {
	prefix=()
	! is_root || prefix=(setpriv --reuid="$1" --regid="${2:-$1}" --init-groups)
}

# as USER COMMAND...
as() {
	local prefix
	becoming "$1"
	shift
	"${prefix[@]}" "$@"
}

# give OWNER PATH...: hands files to the user that a server runs as.
give() {
	local owner=$1
	shift
	! is_root || [[ $ENGINE == compose ]] || chown -R "$owner" "$@"
}
