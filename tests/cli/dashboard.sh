#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# dashboard.sh FAY SOURCE: what the dashboard says is to be served is served, Debian's Prometheus
# scrapes it, and each query of the dashboard finds something there.
set -euo pipefail
fay=$1 dashboard=$2/examples/grafana/system-calls.json
# shellcheck source=/dev/null
. "$2/scripts/owned.sh"
for program in prometheus jq curl; do
	command -v $program >/dev/null ||
		{ echo "skipped: $program is not installed (scripts/deps --test)"; exit 77; }
done
work=$(mktemp -d)
trap 'kill_owned TERM; rm -rf "$work"' EXIT
fail() { echo "FAIL: $*" >&2; tail -5 "$work"/err* >&2; exit 1; }
status=0
"$fay" trace --for 10ms -f syscount >/dev/null 2>"$work/err" || status=$?
[ $status != 1 ] || { echo "skipped: $(tail -1 "$work/err")"; exit 77; }
jq -e '.panels | all(.gridPos and .title and (.targets | length > 0) and .datasource.uid) and
	(map(.id) | unique | length) == length' "$dashboard" >/dev/null || fail "the dashboard"

read -ra words <<<"$(jq -r .description "$dashboard")"
[ "${words[0]} ${words[1]}" = "fay serve" ] || fail "no command: ${words[*]}"
"$fay" serve --listen 127.0.0.1:0 "${words[@]:2}" 2>"$work/err" &
own $!
becomes() {
	for _ in $(seq 300); do ! "$@" 2>/dev/null || return 0; sleep 0.1; done
	fail "never: $*"
}
listens() {
	address=$(sed -n "s|.* at http://\([^/]*\)/metrics.*|\1|p" "$work/err")
	[ -n "$address" ]
}
becomes listens
cat >"$work/prometheus.yml" <<END
global: { scrape_interval: 1s }
scrape_configs: [{ job_name: fay, static_configs: [{ targets: ["$address"] }] }]
END
# a port of its own: one that was free a moment ago
port=$(/usr/bin/python3 -c 'import socket
s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
prometheus --config.file "$work/prometheus.yml" --storage.tsdb.path "$work/data" \
	--web.listen-address "127.0.0.1:$port" 2>"$work/err.prometheus" &
own $!
asks() { # QUERY: the value of what it finds first
	curl -sS --max-time 10 "http://127.0.0.1:$port/api/v1/query" --data-urlencode "query=$1" |
		jq -er '.data.result[0].value[1]' >"$work/value"
}
# what is measured: calls, some that fail, reads and writes
while :; do cat /nonexistent /etc/services >/dev/null 2>&1 || sleep 0.1; done &
own $!
jq -r '.panels[].targets[].expr' "$dashboard" >"$work/queries"
while read -r query; do
	becomes asks "$query"
	echo "ok: $(cat "$work/value"): $query"
done <"$work/queries"
asks 'fay_query_not_there' && fail "a metric that is not there has a value"
asks 'min(up)' && [ "$(cat "$work/value")" = 1 ] || fail "not scraped"
asks 'sum(fay_query_running)' && [ "$(cat "$work/value")" = 4 ] || fail "not running"
