# shellcheck shell=bash
# Debian 13 in a chroot, for the RabbitMQ 4 that Debian 12 lacks. Made once per
# user and kept; its mounts live in a namespace that ends with the process.

trixie=$cache/trixie

provide_trixie() {
	is_root || die "rabbitmq4 needs root, for its chroot"
	with_lock trixie make_trixie
}

make_trixie() {
	[[ ! -e $trixie ]] || return 0
	say "making a Debian 13 tree with RabbitMQ 4 (about a minute)"
	rm -rf "$trixie.new"
	debootstrap --variant=minbase --include=rabbitmq-server trixie "$trixie.new" >"$cache/trixie.log" 2>&1 || {
		tail -n 20 "$cache/trixie.log" >&2
		die "debootstrap failed; its whole log is $cache/trixie.log"
	}
	mv "$trixie.new" "$trixie"
}

# trixie_owner USER: its ids, since the host does not know the account.
trixie_owner() { awk -F: -v user="$1" '$1 == user { print $3 ":" $4 }' "$trixie/etc/passwd"; }

# inside_trixie USER: fills the array `prefix`. The instance's directory has the
# same path inside.
inside_trixie() {
	# shellcheck disable=SC2016 # the inner shell's own variables
	prefix=(unshare --mount sh -ec '
		mount -t proc proc "$1/proc"
		mount --rbind /dev "$1/dev"
		mkdir -p "$1$2"
		mount --bind "$2" "$1$2"
		cd "$2"
		tree=$1 user=$3
		shift 3
		exec chroot --userspec="$user" "$tree" "$@"
	' sh "$trixie" "$DIR" "$1:$1")
}
