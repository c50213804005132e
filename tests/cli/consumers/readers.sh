#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# readers.sh FAY SOURCE: what others make of one saved trace, with importers that are theirs:
# speedscope in headless Chromium reads it as Chrome's trace, as a profile of pprof and as folded
# stacks, and shows the times and counts that a query has; OpenTelemetry's own messages take the
# requests of OTLP, and give back what was in them. Both are packages of npm, which are fetched.
set -euo pipefail
fay=$1 source=$2
for program in npm node chromium jq; do
	command -v $program >/dev/null || { echo "skipped: $program is not installed"; exit 77; }
done
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "FAIL: $*" >&2; exit 1; }
cd "$work"
npm install --silent --no-audit --no-fund --ignore-scripts speedscope@1.25.0 \
	@opentelemetry/otlp-transformer@0.57.2 >npm.log 2>&1 ||
	{ echo "skipped: npm has no packages for us: $(tail -1 npm.log)"; exit 77; }
export FAY_BUDGET=none
columns='r.time, r.pid, r.tid, r.function, r.Duration'
"$fay" trace --save s.fay "cluster.Return(\"libc!*alloc\").Select(r => new { $columns,
	stack = r.Stack(12) })" -- ls -l /etc >/dev/null 2>err || fail "$(cat err)"
ask() { "$fay" trace "$@" 2>err || fail "$*: $(cat err)"; }
ask --json "file(\"s.fay\").Select(r => new { $columns, r.stack })" |
	jq -c 'select(.type == "row") | .values' >rows
[ "$(wc -l <rows)" -gt 100 ] || fail "no events"
ask --format chrome "file(\"s.fay\").Select(r => new { $columns })" >chrome.json
by_stack='from e in file("s.fay") group e by e.stack into g select new { g.Key, '
ask --format pprof "$by_stack time = g.Sum(e => e.Duration) }" >profile.pb.gz
ask --format folded "$by_stack n = g.Count() }" >folded.txt

# --- speedscope ---

cd node_modules/speedscope/dist/release
# its table of functions, once it has read the file
cat >probe.js <<'END2'
addEventListener("load", () => {
	let n = 0;
	const named = (text) =>
		[...document.querySelectorAll("div")].filter((d) => text.test(d.textContent)).pop();
	const timer = setInterval(() => {
		if (document.querySelectorAll("tr").length < 2) named(/Sandwich$/)?.click();
		if (++n < 10 || (n < 400 && document.querySelectorAll("tr").length < 2)) return;
		clearInterval(timer);
		document.body.dataset.said = [...document.querySelectorAll("tr")]
			.map((row) => [...row.children].map((cell) => cell.textContent).join(" "))
			.join("|");
	}, 100);
});
END2
sed 's|</body>|<script src="probe.js"></script></body>|' index.html >probe.html
# Chromium asks its maker for updates and the time unless it has no network.
offline=(unshare --net)
[ "$(id -u)" = 0 ] || offline=(unshare --map-root-user --net)
# shows FILE EXPECTED: a row of the table is EXPECTED (an expression of grep)
shows() {
	local file=$1 log=$work/err.$1
	echo "speedscope.loadFileFromBase64('$file', '$(base64 -w0 "$work/$file")')" >"$work/load.js"
	timeout -k 5 100 "${offline[@]}" chromium --headless --no-sandbox --disable-gpu \
		--disable-dev-shm-usage --no-first-run --enable-unsafe-swiftshader \
		--user-data-dir="$work/profile" --window-size=1200,900 --virtual-time-budget=60000 \
		--dump-dom "file://$PWD/probe.html#localProfilePath=$work/load.js" \
		>"$work/dom" 2>"$log" || fail "chromium: $(tail -3 "$log")"
	sed -n 's/.*data-said="\([^"]*\)".*/\1/p' "$work/dom" | sed 's/&lt;/</g' | tr '|' '\n' \
		>"$work/table"
	grep -qE "$2" "$work/table" ||
		fail "speedscope, $file: no '$2': $(head -5 "$work/table")"
	echo "ok: speedscope, $file: $(grep -E "$2" "$work/table")"
}
# spans of time as it shows them
shown() { awk '{ if ($1 < 1e6) printf "%.2fµs", $1 / 1e3; else printf "%.2fms", $1 / 1e6 }'; }
inner='select(.stack[0] | test("!malloc$"))'
calls=$(jq -s "map($inner) | length" "$work/rows")
time=$(jq -s "map($inner | .Duration) | add" "$work/rows" | shown)
[ "$calls" -gt 0 ] || fail "no call of malloc"
# columns: of the whole with what it calls, by itself, the name
shows folded.txt "^[0-9.]+k? \(.*\) *$calls \(.*\) *malloc$"
shows profile.pb.gz "^.*\) *$time \(.*\) *malloc$"
whole=$(jq -s 'map(select(.function == "malloc") | .Duration) | add' "$work/rows" | shown)
shows chrome.json "^$whole \(.*\) .* malloc( \{\})?$"

# --- OpenTelemetry ---

cd "$work"
ask --format otlp "file(\"s.fay\").Select(r => new { $columns })" >spans
ask --format otlp 'from e in file("s.fay") group e by e.function into g
	select new { g.Key, n = g.Count(), time = g.Histogram(e => e.Duration),
		slow = g.Quantile(0.9, e => e.Duration), longest = g.Max(e => e.Duration) }' >metrics
node "$source/tests/cli/consumers/otlp.js" "$work/node_modules" spans metrics ||
	fail "OpenTelemetry's messages"
