#!/usr/bin/env bash
# How many of the kernels of bench/extensions and of the parsers of bench/extensions/parsers, as
# compilers make them, get a certificate: with the options of docs/internals/host-interface.md, or
# those and gcc's -fno-ivopts, clang's -fno-vectorize.
#   bench/extensions/accept_rate.sh [-v] [KERNEL...]     -v: why the others do not
set -uo pipefail
cd "$(dirname "$0")/../.."
bin=${BIN:-$PWD/build/bin}
levels=${LEVELS:--O1 -O2 -O3 -Os}
verbose=
[ "${1:-}" != -v ] || { verbose=1; shift; }
here=bench/extensions
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
kernels=("$@")
[ $# -gt 0 ] || kernels=(crc32 sha256 xxhash dfa utf8 json base64 lz4 packet kmeans convolve sort
	parsers/{vlan,ipv4,ipv6,tcp,udp,dns,tls})
# as docs/internals/host-interface.md says
options="-ffreestanding -fPIC -fvisibility=hidden -fno-plt -fno-jump-tables -fno-stack-protector
	-fcf-protection=none -fno-asynchronous-unwind-tables -fno-optimize-sibling-calls
	-mno-red-zone -fno-unroll-loops"

one() { # COMPILER LEVEL KERNEL: a line, and why not
	local stem=$work/$(basename "$3")$1$2 more
	local -a tries=("" -fno-ivopts)
	[ "$1" = gcc ] || tries=("" -fno-vectorize)
	for more in "${tries[@]}"; do
		$1 "$2" $options $more -DEXTENSION -Iinclude -c -o "$stem.o" $here/"$3".c &&
			ld -shared -nostdlib -z now -z noexecstack --hash-style=gnu \
				--build-id=none -o "$stem.so" "$stem.o" ||
			{ echo "$1 $2 $3: cannot be built"; return; }
		timeout 120 "$bin/fay" verify --interface $here/kernels.host \
			--certify "$stem.fay" "$stem.so" >"$stem.out" || continue
		echo "$1 $2 $3: accepted${more:+ with $more}"
		return
	done
	echo "$1 $2 $3: refused"
	[ -z "$verbose" ] || sed 's/^/    /' "$stem.out"
}
export -f one
export work here options bin verbose

for kernel in "${kernels[@]}"; do
	for compiler in gcc clang-14 clang-19; do
		for level in $levels; do
			echo "$compiler $level $kernel"
		done
	done
done | xargs -P "${JOBS:-2}" -n 3 bash -c 'one "$@"' one | tee "$work/all"
echo "$(grep -c ': accepted' "$work/all") of $(grep -cE ': (accepted|refused|cannot)' "$work/all")"
