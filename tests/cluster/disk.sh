#!/usr/bin/env bash
# The disk under JetStream runs full while nobody listens: agents keep what is not stored, and when
# there is room again nothing is missing.
. "$(dirname "$0")/lib.sh"
TARGET=$CALLS
mkdir store
mount -t tmpfs -o size=1G fay-test "$work/store" 2>mount.err ||
	skip "no file system of its own for the store: $(cat mount.err)"
unmount() {
	local code=$?
	signal_owned KILL "${servers[@]}"
	wait "${servers[@]}" 2>/dev/null || true
	umount -l "$work/store" || true
	(exit $code)
	cleanup_cluster
}
trap unmount EXIT
jetstream() { server 0 -js -sd "$work/store"; }
jetstream
for n in 1 2 3; do agent $n; target $n; done
query='from c in cluster.Function("cluster_target!counted") group c by c.Arg(0) into g
	select new { k = g.Key, n = g.Count() }'
id=$("$FAY" trace --cluster "$URL" --key asker.key "${ASK_OPTIONS[@]}" --await 3 --detach \
	--comm cluster_target --every 100ms "$query" 2>detach.err) || {
	cat detach.err >&2
	fail "detach"
}
# files are in the stream's directory; "in use" in KiB
used() { df --output=used -k store | tail -1; }
for n in 1 2 3; do calls $n 2000; done
await "something is stored" eval '[ "$(used)" -gt 100 ]'
mount -o remount,size=$(($(used) + 256))k "$work/store"
echo "the store is $(($(used) + 256)) KiB large now"
# Each round is another 1,000 groups of each machine, some 24 KiB a message.
rounds=0 left=
while [ "$rounds" -lt 15 ] || { left=$(df --output=avail -k store | tail -1) &&
	[ "$left" -ge 64 ] && [ "$rounds" -lt 200 ]; }; do
	for n in 1 2 3; do calls $n 2000; done
	rest 2
	rounds=$((rounds + 1))
done
[ "$left" -lt 64 ] || fail "the store did not run full: $left KiB are left"
echo "ok: the store ran full"
for n in 1 2 3; do calls $n 1000; done
# Room again; the server has turned JetStream off, and is started again.
mount -o remount,size=1G "$work/store"
kill_server 0
wait "${servers[0]}" 2>/dev/null || true
jetstream
for n in 1 2 3; do calls $n 500; done
"$FAY" attach "$id" --cluster "$URL" --key asker.key "${ASK_OPTIONS[@]}" --json --stop >trace.json \
	2>trace.err || { cat trace.err >&2; fail "attach"; }
fault "the disk under JetStream runs full" $((3 * (2000 + rounds * 2000 + 1500))) "$(total n)"
equal "finished, lost" "3 0" "$(coverage finished) $(coverage lost)"
