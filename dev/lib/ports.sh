# shellcheck shell=bash
# Ports: every instance owns a block of eight, reserved by a file that all
# checkouts of this user share. The blocks lie below the usual ephemeral range,
# so that no outgoing connection can sit on one.

reserve_ports() {
	local directory=$1 base try
	for try in {1..500}; do
		base=$((20000 + (RANDOM % 1500) * 8))
		drop_stale_reservation "$base"
		if is_block_free "$base" && (set -o noclobber && printf '%s\n' "$directory" >"$state_root/ports/$base") 2>/dev/null; then
			printf '%s\n' "$base"
			return
		fi
	done
	die "no free block of ports after $try tries"
}

release_ports() { rm -f "$state_root/ports/$1"; }

drop_stale_reservation() {
	local file=$state_root/ports/$1
	if [[ -e $file && ! -d $(<"$file") ]]; then rm -f "$file"; fi
}

is_block_free() {
	local port
	for port in $(seq "$1" $(($1 + 7))); do
		! is_listening "$port" || return 1
	done
}

# State 0A in the kernel's table is LISTEN.
is_listening() {
	local tables=(/proc/net/tcp)
	[[ ! -e /proc/net/tcp6 ]] || tables+=(/proc/net/tcp6)
	grep -qiE "$(printf '^ *[0-9]+: [0-9A-F]+:%04X [0-9A-F:]+ 0A ' "$1")" "${tables[@]}"
}
