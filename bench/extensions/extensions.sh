#!/usr/bin/env bash
# What it costs to be verified: each kernel of bench/extensions as an extension, beside native code
# and what one would take instead.
#   bench/extensions/extensions.sh [-r ROUNDS] [KERNEL...]     default 101 rounds, all kernels
# Builds of the same source, interleaved in every round, over the same input:
#   native    $CC -O2 (default gcc)
#   fay       $CC -O2 with the options of docs/internals/host-interface.md, verified; where that is
#             refused, with -fno-ivopts
#   wasm2c    clang-19 -O2 for WebAssembly, made C by Debian's wasm2c, $CC -O2
#   process   native code in a process of its own under seccomp, memory shared, called by pipes
#   v8        the same WebAssembly in node, a process of its own that tells its times
# and, by hand in Lua, luajit, likewise. What is not installed is left out. One JSON object a build
# goes to $OUT (default build/extensions.json), and one of calls, loading and memory;
# bench/extensions/extensions_table.sh makes tables of it.
set -euo pipefail
cd "$(dirname "$0")/../.."
bin=${BIN:-$PWD/build/bin}
cc=${CC:-gcc}
rounds=101
[ "${1:-}" != -r ] || { rounds=$2; shift 2; }
out=${OUT:-build/extensions.json}
here=bench/extensions
wabt=/usr/share/wabt/wasm2c
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
kernels=("$@")
[ $# -gt 0 ] || kernels=(crc32 sha256 xxhash dfa utf8 json base64 lz4 packet kmeans convolve sort)
has() { command -v "$1" >/dev/null; }
wasm=
has wasm-ld-19 && has clang-19 && wasm=1

# as docs/internals/host-interface.md says
options="-ffreestanding -fPIC -fvisibility=hidden -fno-plt -fno-jump-tables -fno-stack-protector
	-fcf-protection=none -fno-asynchronous-unwind-tables -fno-optimize-sibling-calls
	-mno-red-zone -fno-unroll-loops"

extension() { # KERNEL: $work/KERNEL.fay; nothing if it is refused
	local more
	for more in "" -fno-ivopts; do
		$cc -O2 $options $more -DEXTENSION -Iinclude -c -o "$work/$1.o" $here/"$1".c
		ld -shared -nostdlib -z now -z noexecstack --hash-style=gnu --build-id=none \
			-o "$work/$1.image.so" "$work/$1.o"
		"$bin/fay" verify --interface $here/kernels.host --certify "$work/$1.fay" \
			"$work/$1.image.so" >&2 && return
	done
	return 1
}

webassembly() { # KERNEL: $work/KERNEL.wasm and, with wasm2c, $work/KERNEL.wasm.so
	clang-19 --target=wasm32 -O2 -ffreestanding -nostdlib -Wl,--no-entry -Wl,--export=kernel \
		-Wl,--export-memory -Wl,--initial-memory=4194304 -Wl,-z,stack-size=65536 \
		-o "$work/$1.wasm" $here/"$1".c
	has wasm2c || return 0
	mkdir -p "$work/$1"
	wasm2c -n kernel "$work/$1.wasm" -o "$work/$1/wasm.c"
	$cc -O2 -w -fPIC -shared -I"$work/$1" -I$wabt -o "$work/$1.wasm.so" $here/shim.c \
		"$work/$1/wasm.c" $wabt/wasm-rt-impl.c -lm
}

: >"$work/all"
for k in "${kernels[@]}"; do
	python3 $here/inputs.py "$k" "$work/input"
	$cc -O2 -fPIC -shared -o "$work/$k.so" $here/"$k".c
	builds=(native="$work/$k.so")
	if extension "$k"; then
		builds+=(fay="$work/$k.fay")
	fi
	builds+=(process="process:$work/$k.so")
	if [ "$wasm" ]; then
		webassembly "$k"
		[ ! -e "$work/$k.wasm.so" ] || builds+=(wasm2c="$work/$k.wasm.so")
		! has node || builds+=(v8="node $here/wasm.mjs $work/$k.wasm")
	fi
	! has luajit || builds+=(luajit="luajit $here/kernels.lua $k")
	"$bin/fay_bench_extensions" "$rounds" "$k" "$work/input" $here/kernels.host \
		"${builds[@]}" >>"$work/all"
	echo "$k done" >&2
done
extension nothing
$cc -O2 -fPIC -shared -o "$work/nothing.so" $here/nothing.c
"$bin/fay_bench_extensions" --calls "$rounds" $here/kernels.host "$work/nothing.fay" \
	"process:$work/nothing.so" >>"$work/all"
mkdir -p "$(dirname "$out")"
cp "$work/all" "$out"
$here/extensions_table.sh "$out"
