#!/usr/bin/env bash
# How fast the verifier is beside the raw decoders (verify_speed.c says what is measured), over
# ROUNDS rounds (default 15), on generated images, the worked example, the densest nest of loops of
# the corpus (lz_matches), probes of some 2,000 instructions with eight such nests and with
# questions for the solver (verify_nests.c, verify_searches.c), and whatever IMAGEs are given.
#   bench/verify/verify_speed.sh [ROUNDS [IMAGE...]]      writes bench/results/verify_speed.json
set -euo pipefail
cd "$(dirname "$0")/../.."
rounds=${1:-15}
shift || true
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for source in tests/corpus_c/lz_matches.c bench/verify/verify_nests.c \
	bench/verify/verify_searches.c; do
	build/bin/fay-cc -I include -I tests/corpus_c -o "$work/$(basename "$source" .c).fay" \
		"$source"
done
build/bin/fay_bench_verify --rounds "$rounds" --json bench/results/verify_speed.json \
	tests/verifier/corpus/prologue.s "$work" \
	build/tests/verifier/count.fay "$work"/{lz_matches,verify_nests,verify_searches}.fay "$@"
