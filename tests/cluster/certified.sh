#!/usr/bin/env bash
# A machine that only installs: its root file system has fay, fayd and the libraries that they are
# linked with, and neither LLVM nor Z3 nor Capstone. `fay trace --probe` and an agent install
# an image by its certificate; what would need the prover or the compiler says what is missing.
. "$(dirname "$0")/lib.sh"
cat >probe.c <<'C'
#include <fay/probe.h>

FAY_COUNT(calls);
FAY_SUM(weight);
FAY_STREAM(rows, FAY_COLUMNS(FAY_KEY_I64(value)));
static const uint64_t weights[8] = { 3, 1, 4, 1, 5, 9, 2, 6 };

FAY_ENTRY("threads_target!work")
{
	struct rows_row row = { .value = (int64_t)event->arg[1] };

	fay_count(&calls);
	fay_sum(&weight, (int64_t)weights[event->arg[1] & 7]);
	if ((event->arg[1] & 255) == 0)
		rows_emit(&row);
}
C
"$FAY" cc probe.c -o plain.fay || fail "fay cc"
"$FAY" verify --certify probe.fay plain.fay >/dev/null || fail "no certificate"
echo 'allow_certificates = yes' >yes.policy

# The node's root.
root=$(mktemp -d)
leave() {
	local code=$?
	rm -rf --one-file-system "$root"
	set +e
	(exit $code)
	cleanup_cluster
}
trap leave EXIT
mkdir -p "$root"/{bin,lib,lib64,proc,tmp,dev,work}
mknod "$root/dev/null" c 1 3
for program in "$FAY" "$FAYD" "$TARGET"; do
	cp "$program" "$root/bin/"
	ldd "$program" | grep -o '/[^ ]*' | while read -r library; do
		cp -nL --parents "$library" "$root/"
	done
done
[ -z "$(find "$root" | grep -E 'LLVM|libz3|capstone')" ] || fail "the libraries are there"
cp "$(command -v busybox)" "$root/bin/busybox"
node 1
# inside COMMAND...: in that root, in the node; in the working directory of this test
cat >inside <<END
#!/bin/sh
[ -e "$root/proc/self" ] || mount -t proc proc "$root/proc"
[ -e "$root/work/signers" ] || mount --bind "$work" "$root/work"
exec chroot "$root" /bin/busybox sh -c 'cd /work && exec "\$@"' sh "\$@"
END
chmod +x inside

printf '\n\n' >lines # what threads_target waits for
# run EXIT ARGUMENT...: fay trace there, to out and err
run() {
	local code=0 expected=$1
	shift
	within 1 "$work/inside" /bin/busybox sh -c \
		'"$@" >out 2>err <lines; echo $? >code' sh /bin/fay trace --json "$@"
	await "fay ends" [ -s code ]
	code=$(cat code)
	rm code
	[ "$code" = "$expected" ] || fail "exit code $code, expected $expected: $(cat err out)"
}
value() { grep '^{' out | jq -s "map(select(.type == \"row\" and .final and .result == \"$1\"))[0].values.$1"; }
run 0 --policy yes.policy --probe probe.fay -- /bin/threads_target 1 1000
[ "$(value calls) $(value weight)" = "1000 3875" ] || fail "counts: $(cat out)"
[ "$(grep -c '"result":"rows","final":true' out)" = 4 ] || fail "rows: $(cat out)"
run 1 --probe probe.fay -- /bin/threads_target 1 1
grep -q 'not accepted by a certificate.*libz3' err || fail "no prover: $(cat err)"
run 1 --policy yes.policy --probe plain.fay -- /bin/threads_target 1 1
grep -q 'not accepted by a certificate.*libz3' err || fail "no certificate: $(cat err)"
run 1 'cluster.Function("threads_target!work").Count()' -- /bin/threads_target 1 1
grep -q 'cannot be loaded: libLLVM' err || fail "no compiler: $(cat err)"

# The agent, by its signer's policy; without it, it goes on.
server 0
echo "signer ops $(cat asker.pub) /work/yes.policy" >signers
"$FAY" cluster keygen other >/dev/null 2>&1
echo "signer other $(cat other.pub)" >>signers
mkfifo in1
exec 21<>in1
within 1 "$work/inside" /bin/busybox sh -c 'exec /bin/threads_target 1 1000 <in1 >out1'
targets[1]=$inside
wait_for out1 ready
"$FAY" cluster keygen node1 >/dev/null 2>&1
: >fayd1.log
within 1 "$work/inside" /bin/fayd --url "$URL" --key node1.key --signers signers --name node1 \
	--audit audit1 "${NODE_OPTIONS[@]}" 2>fayd1.log
wait_for fayd1.log "has joined"
code=0
"$FAY" trace --cluster "$URL" --key other.key "${ASK_OPTIONS[@]}" --json --for 1s \
	--comm threads_target --probe probe.fay >trace.json 2>trace.err || code=$?
grep -q 'not accepted by a certificate.*libz3' trace.err ||
	fail "an agent without the prover: $code $(cat trace.err trace.json)"
ask --for 600s --comm threads_target --probe probe.fay
go 1
until_rows 'map(.calls) | max' 1000
kill -INT "$tracer"
wait "$tracer" || fail "the trace ends with $?: $(cat trace.err)"
finish 1
