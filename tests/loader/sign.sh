#!/usr/bin/env bash
# Keys for test_sign, made anew: sign.sh TEST_SIGN
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
command -v openssl >/dev/null || { echo "SKIPPED: openssl is not installed"; exit 77; }
for name in one two; do
	openssl req -x509 -newkey rsa:2048 -nodes -keyout "$work/$name.key" -out "$work/$name.crt" \
		-subj "/CN=fay test $name" -days 2 2>"$work/said" || {
		cat "$work/said" >&2
		exit 1
	}
done
"$1" "$work/one.key" "$work/one.crt" "$work/two.crt"
