#!/usr/bin/env bash
# How fast the verifier is beside the raw decoders (verify_speed.c says what is measured), over ROUNDS rounds (default 15), on generated images, the worked
# example, the densest nest of loops of the corpus (lz_matches), and whatever IMAGEs are given.
#   bench/verify_speed.sh [ROUNDS [IMAGE...]]      writes bench/results/verify_speed.json
set -euo pipefail
cd "$(dirname "$0")/.."
rounds=${1:-15}
shift || true
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
build/bin/fay-cc -I include -o "$work/lz_matches.fay" tests/corpus_c/lz_matches.c
build/bin/fay_bench_verify --rounds "$rounds" --json bench/results/verify_speed.json tests/verifier/corpus/prologue.s "$work" \
	build/tests/verifier/count.fay "$work/lz_matches.fay" "$@"
