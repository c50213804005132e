#!/usr/bin/env bash
# How many of the kernels of bench/extensions and of the parsers of bench/extensions/parsers, as
# compilers make them, get a certificate: with the options of docs/internals/host-interface.md, or
# those and what keeps the compiler from counting by pointers, from vectors, or from both.
#   bench/extensions/accept_rate.sh [-v] [KERNEL...]     -v: why the others do not
set -uo pipefail
cd "$(dirname "$0")/../.."
bin=${BIN:-$PWD/build/bin}
levels=${LEVELS:--O1 -O2 -O3 -Os}
compilers=${COMPILERS:-gcc clang-14 clang-19 fay-cc}
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

build() { # COMPILER LEVEL KERNEL STEM MORE
	if [ "$1" = fay-cc ]; then
		"$bin/fay" cc --extension "$2" $5 $here/"$3".c -o "$4.so" -DEXTENSION
		return
	fi
	$1 "$2" $options $5 -DEXTENSION -Iinclude -c -o "$4.o" $here/"$3".c &&
		ld -shared -nostdlib -z now -z noexecstack --hash-style=gnu --build-id=none \
			-o "$4.so" "$4.o"
}

one() { # COMPILER LEVEL KERNEL: a line, and why not
	local stem=$work/$(basename "$3")$1$2 more
	local -a tries=("" -fno-ivopts "-fno-ivopts -fno-tree-loop-vectorize")
	[ "$1" = gcc ] || tries=("" -fno-vectorize "-fno-vectorize -mllvm -disable-lsr")
	[ "$1" != fay-cc ] || tries=("" -fno-ivopts) # it makes no vectors
	for more in "${tries[@]}"; do
		build "$1" "$2" "$3" "$stem" "$more" ||
			{ echo "$1 $2 $3: cannot be built"; return; }
		timeout 120 "$bin/fay" verify --interface $here/kernels.host \
			--certify "$stem.fay" "$stem.so" >"$stem.out" || continue
		echo "$1 $2 $3: accepted${more:+ with $more}"
		return
	done
	echo "$1 $2 $3: refused"
	[ -z "$verbose" ] || sed 's/^/    /' "$stem.out"
}
export -f build one
export work here options bin verbose

for kernel in "${kernels[@]}"; do
	for compiler in $compilers; do
		for level in $levels; do
			echo "$compiler $level $kernel"
		done
	done
done | xargs -P "${JOBS:-2}" -n 3 bash -c 'one "$@"' one | tee "$work/all"
for compiler in $compilers ""; do
	of=$(grep -cE "^$compiler.*: (accepted|refused|cannot)" "$work/all")
	echo "${compiler:-all}: $(grep -c "^$compiler.*: accepted" "$work/all") of $of," \
		"$(grep -c "^$compiler.*: accepted\$" "$work/all") without more options"
done
