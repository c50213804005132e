#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# serve.sh FAY SOURCE: `fay serve` counts what a program reads, exactly, beside who asks and does
# not read the answer; token, TLS, wrong requests, a port in use, a terminal that goes away; what it
# serves is read by promtool and Prometheus' own parser, where they are installed.
set -euo pipefail
fay=$1
# shellcheck source=/dev/null
. "$2/scripts/owned.sh"
work=$(mktemp -d)
trap 'kill_owned TERM; rm -rf "$work"' EXIT
fail() { echo "FAIL: $*" >&2; cat "$work/err" >&2; exit 1; }
export FAY_BUDGET=none

mkfifo "$work/in"
cat <"$work/in" >/dev/null &
target=$!
own $target
exec 3>"$work/in"
head -c 32 /dev/urandom | od -An -tx1 | tr -d ' \n' >"$work/token"
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 \
	-subj /CN=localhost -addext subjectAltName=IP:127.0.0.1 -keyout "$work/key" \
	-out "$work/cert" 2>/dev/null
nohup "$fay" serve --listen 127.0.0.1:0 --token-file "$work/token" \
	--tls-cert "$work/cert" --tls-key "$work/key" -p $target --every 200ms 'bytes=from r in
	cluster.Return("libc!read") where r.ReturnValue >= 0 group r by r.comm into g
	select new { g.Key, bytes = g.Sum(r => r.ReturnValue), size = g.Histogram(r => r.ReturnValue) }' \
	'calls=cluster.Function("libc!read").Count()' 2>"$work/err" &
server=$!
own $server
# becomes COMMAND...: within ten seconds
becomes() {
	for _ in $(seq 100); do ! "$@" 2>/dev/null || return 0; sleep 0.1; done
	fail "never: $*"
}
listens() {
	address=$(sed -n 's|.* at https://\([^/]*\)/metrics.*|\1|p' "$work/err")
	[ -n "$address" ]
}
becomes listens
ask() { curl -sS --max-time 10 --cacert "$work/cert" "$@"; }
metrics() { ask -H "Authorization: Bearer $(cat "$work/token")" "$@" "https://$address/metrics"; }
serves() { metrics >"$work/metrics"; grep -qE "$1" "$work/metrics"; }
becomes serves '^fay_calls_lost_events_total 0$'
becomes serves '^fay_bytes_lost_events_total 0$'
kill -HUP $server # it is under nohup
# one that never reads its answer, and one that never asks
exec 4<>"/dev/tcp/${address%:*}/${address#*:}" 5<>"/dev/tcp/${address%:*}/${address#*:}"
printf 'no TLS at all' >&5
for n in 1000 20 4; do head -c $n /dev/zero >&3; done
becomes serves '^fay_bytes_bytes\{Key="cat"\} 1024$'
serves '^fay_bytes_size_bucket\{Key="cat",le="\+Inf"\} ' || fail "no histogram"
serves '^fay_bytes_lost_events_total 0$' || fail "losses"
serves '^fay_query_running\{query="calls"\} 1$' || fail "not running"
ask -u "x:$(cat "$work/token")" "https://$address/" >"$work/page"
grep -q '<h2>bytes</h2>' "$work/page" || fail "no page"
! grep -qE '<(script|img|link)|https?://' "$work/page" || fail "the page asks for more"
code() { [ "$(ask -o /dev/null -w '%{http_code}' "${@:2}")" = "$1" ] || fail "not $1: ${*:2}"; }
code 401 "https://$address/metrics"
code 401 -H "Authorization: Bearer $(cat "$work/token")x" "https://$address/metrics"
code 401 -u x: "https://$address/"
bearer=(-H "Authorization: Bearer $(cat "$work/token")")
code 404 "${bearer[@]}" "https://$address/etc/passwd"
code 405 "${bearer[@]}" -d x "https://$address/metrics"

status=0
"$fay" serve --listen "$address" 'cluster.Function("libc!read").Count()' 2>"$work/used" || status=$?
[ $status = 1 ] && grep -q "cannot listen at $address: Address already in use" "$work/used" ||
	fail "a port in use: $status $(cat "$work/used")"
for wrong in "--listen 0.0.0.0:0 q" "--listen 9464 q" "--listen 127.0.0.1:99999 q" "--tls-cert x q" "query=q" "a=q a_b=q" ""; do
	status=0
	# shellcheck disable=SC2086
	"$fay" serve $wrong 2>"$work/used" || status=$?
	[ $status = 2 ] || fail "fay serve $wrong: $status"
done
# a query that cannot run ends all
status=0
"$fay" serve --listen 127.0.0.1:0 -p $target 'cluster.Function("libc!raed").Count()' \
	2>"$work/used" || status=$?
[ $status = 2 ] && grep -q "did you mean" "$work/used" || fail "no such function: $status"

metrics -H 'Accept: application/openmetrics-text' >"$work/openmetrics"
[ "$(tail -1 "$work/openmetrics")" = "# EOF" ] || fail "no end"
if command -v promtool >/dev/null; then
	promtool check metrics <"$work/metrics" >"$work/said" 2>&1 || fail "$(cat "$work/said")"
else
	echo "skipped: promtool (prometheus) is not installed"
fi
if /usr/bin/python3 -c 'import prometheus_client' 2>/dev/null; then
	/usr/bin/python3 -c 'import sys
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse
assert {"fay_bytes_bytes", "fay_bytes_size"} <= {f.name for f in parse(sys.stdin.read())}' \
		<"$work/openmetrics" || fail "the parser of OpenMetrics"
else
	echo "skipped: python3-prometheus-client is not installed"
fi
kill $server
wait $server || fail "exit code $?"
echo "ok: $(grep -vc '^#' "$work/openmetrics") samples"
