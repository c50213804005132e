#!/usr/bin/env bash
# What the guards cost: each kernel of bench/overhead as a verified probe against the same source by
# clang-19 -O2 without guards.
#   bench/overhead/overhead.sh [-r ROUNDS] [KERNEL...]     default 301 rounds, all kernels
# Builds, interleaved in every round and over the same bytes:
#   plain            clang-19 -O2
#   scalar           clang-19 -O2 -fno-vectorize -fno-slp-vectorize -mgeneral-regs-only, for what
#                    the lack of vectors alone costs
#   guarded          fay cc, general registers only, verified under the default policy
#   vectors          fay cc -march=x86-64, the instructions that plain may use
#   confined         fay cc --confined, verified under `speculation: confined`
# One JSON object a build goes to $OUT (default build/overhead.json);
# bench/overhead/overhead_table.sh makes a table of it.
set -euo pipefail
cd "$(dirname "$0")/../.."
bin=${BIN:-$PWD/build/bin}
clang=${CLANG:-clang-19}
rounds=301
[ "${1:-}" != -r ] || { rounds=$2; shift 2; }
out=${OUT:-build/overhead.json}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
kernels=("$@")
[ $# -gt 0 ] || for f in bench/overhead/*.c; do
	[ "$f" = bench/overhead/main.c ] || kernels+=("$(basename "$f" .c)")
done

failed=0
: >"$work/all"
for k in "${kernels[@]}"; do
	source=bench/overhead/$k.c
	common=(-std=gnu17 -O2 -fPIC -shared -DNO_GUARDS -Iinclude -Ibench/overhead "$source")
	"$clang" "${common[@]}" -o "$work/$k.plain.so"
	"$clang" "${common[@]}" -fno-vectorize -fno-slp-vectorize -mgeneral-regs-only \
		-o "$work/$k.scalar.so"
	builds=(plain="$work/$k.plain.so" scalar="$work/$k.scalar.so")
	"$bin/fay" cc "$source" -o "$work/$k.guarded.fay" &&
		builds+=(guarded="$work/$k.guarded.fay")
	"$bin/fay" cc -march=x86-64 "$source" -o "$work/$k.vectors.fay" &&
		builds+=(vectors="$work/$k.vectors.fay")
	"$bin/fay" cc --confined "$source" -o "$work/$k.confined.fay" &&
		builds+=(confined="$work/$k.confined.fay")
	"$bin/fay_bench_overhead" "$rounds" "$k" "${builds[@]}" >>"$work/all" || failed=1
	echo "$k done" >&2
done
mkdir -p "$(dirname "$out")"
cp "$work/all" "$out"
bench/overhead/overhead_table.sh "$out"
exit $failed
