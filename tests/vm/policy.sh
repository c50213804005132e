#!/usr/bin/env bash
# What `fay verify --kernel` demands beyond what every image must keep; the same images pass without
# it.
set -euo pipefail
fay=${BUILD:?}/bin/fay
include=$(cd "$(dirname "$0")/../../include" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failures=0

# try NAME RULE BODY [fay cc option...]: RULE is "accepted" or what the refusal must name
try() {
	local name=$1 rule=$2 said
	printf '#include <fay/probe.h>\nFAY_COUNT(n);\nFAY_HISTOGRAM(h);\n%s\n' "$3" \
		>"$work/$name.c"
	shift 3
	"$fay" cc "$work/$name.c" -I "$include" -o "$work/$name.fay" "$@" ||
		{ echo "FAIL $name: does not compile"; failures=$((failures + 1)); return; }
	"$fay" verify --no-replay "$work/$name.fay" >/dev/null ||
		{ echo "FAIL $name: refused without --kernel"; failures=$((failures + 1)); }
	said=$("$fay" verify --no-replay --kernel "$work/$name.fay" | head -1) || true
	case $said in
	*"$rule"*) ;;
	*) echo "FAIL $name: expected $rule: $said"; failures=$((failures + 1)) ;;
	esac
}

try count accepted 'FAY_ENTRY("kernel!vfs_read") { fay_count(&n); }' --confined
try indexed accepted 'FAY_RETURN("kernel!vfs_read") { fay_hist(&h, (int64_t)event->retval); }' \
	--confined
try chain accepted \
	'FAY_ENTRY("kernel!vfs_read") { uint64_t p = event->arg[0], q; for (int i = 0; i < 40; i++) { if (fay_try_read(&q, 8, p + 16)) return; p = q; } if (!fay_try_read(&q, 8, p)) n.n += q; }' \
	--confined
try unconfined SPC-BRANCH \
	'FAY_ENTRY("kernel!vfs_read") { if (event->arg[2] < 65) h.bucket[event->arg[2]]++; }'
try vectors POL-VECTOR \
	'FAY_ENTRY("kernel!vfs_read") { volatile double x = 1.5; n.n += (uint64_t)(x * (double)event->arg[2]); }' \
	--confined
try kind POL-KIND 'FAY_THREAD_BEGIN() { fay_count(&n); }' --confined
try field POL-FIELD 'FAY_RETURN("kernel!vfs_read") { n.n += event->retval_float; }' --confined
try stack POL-STACK \
	'FAY_ENTRY("kernel!vfs_read") { char big[2048]; fay_try_read(big, sizeof(big), event->arg[0]); n.n += (unsigned char)big[event->arg[1] & 2047]; }' \
	--confined
try length POL-INSTRUCTIONS \
	'FAY_ENTRY("kernel!vfs_read") { uint64_t x = event->arg[0]; for (int i = 0; i < 40000; i++) { x ^= x << 13; x ^= x >> 7; } n.n += x; }' \
	--confined
exit $((failures != 0))
