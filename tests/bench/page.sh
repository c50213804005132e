#!/usr/bin/env bash
# page.sh [PAGE CHARTS]: a page (the benchmark's) in headless Chromium, at desktop and phone width,
# light and dark: nothing lies outside the page's width, nothing is written to the console, nothing is
# asked of the network, and there are so many charts at least, each with a size. Exit code 77, a skip,
# where there is no Chromium.
set -euo pipefail
page=${1:-$(cd "$(dirname "$0")/../.." && pwd)/docs/benchmark.html} charts=${2:-10}
chromium=$(command -v chromium || command -v chromium-browser || command -v google-chrome) || {
	echo "skipped: chromium is not installed (scripts/deps --test)"
	exit 77
}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failures=0
fail() { echo "FAIL $*"; failures=$((failures + 1)); }

# Links are followed by whoever reads it; nothing else is from elsewhere.
! sed 's|<a href="https://[^"]*">||g' "$page" | grep -nE 'https?://|<script|<link[^>]*href="[^d]|src=|url\([^#]|@import' ||
	fail "the page names something outside itself"
# The probe reports what lies outside the window's width; elements inside a table that scrolls by
# itself do not count.
probe='<script>addEventListener("load", () => {
	const width = document.documentElement.clientWidth, outside = [];
	for (const element of document.querySelectorAll("body *")) {
		const box = element.getBoundingClientRect();
		if (!element.closest(".wide, pre") && box.width > 0 && (box.right > width + 1 || box.left < -1)) outside.push(element.tagName + "." + element.getAttribute("class"));
	}
	const flat = [...document.querySelectorAll("svg")].filter(s => s.getBoundingClientRect().width < 60 && !s.closest("details"));
	parent.document.body.setAttribute("data-probe", JSON.stringify({ width, scroll: document.documentElement.scrollWidth, outside: outside.length, first: outside[0] || "", flat: flat.length,
		charts: document.querySelectorAll("svg").length, asked: performance.getEntriesByType("resource").length, dark: matchMedia("(prefers-color-scheme: dark)").matches }));
});</script>'
# It stands before the page's policy, which may allow no scripts.
# In a frame of the width that is asked for: a window of Chromium's is not narrower than 500.
framed() {
	PROBE=$probe jq -Rsj --arg width "$1" \
		'"<!DOCTYPE html><body style=\"margin:0\"><iframe style=\"border:0\" width=" + $width + " height=4000 srcdoc=\"" + (sub("<head>"; "<head>" + env.PROBE) | @html) + "\"></iframe></body>"' \
		"$page"
}
# Chromium asks its maker for updates and the time unless it has no network.
offline=(unshare --net)
[ "$(id -u)" = 0 ] || offline=(unshare --map-root-user --net)
"${offline[@]}" true 2>/dev/null || {
	echo "skipped: no network namespace for chromium to run in"
	exit 77
}

# look WIDTH light|dark
look() {
	local said dark=()
	[ "$2" = light ] || dark=(--force-dark-mode)
	framed "$1" >"$work/page.html"
	timeout -k 5 100 "${offline[@]}" "$chromium" --headless --no-sandbox --disable-gpu \
		--disable-dev-shm-usage --no-first-run --user-data-dir="$work/profile.$1.$2" \
		--window-size=1400,4000 --hide-scrollbars \
		"${dark[@]}" --enable-logging=stderr --dump-dom "file://$work/page.html" \
		>"$work/dom" 2>"$work/err" ||
		{ cat "$work/err"; fail "$1 $2: chromium did not show the page"; return; }
	said=$(sed -n 's/.*data-probe="\([^"]*\)".*/\1/p' "$work/dom" | sed 's/&quot;/"/g' |
		head -1)
	echo "$1 $2: $said"
	[ -n "$said" ] || { cat "$work/err"; fail "$1 $2: the page's probe did not run"; return; }
	[ "$(jq .charts <<<"$said")" -ge "$charts" ] || fail "$1 $2: too few charts"
	[ "$(jq .flat <<<"$said")" = 0 ] || fail "$1 $2: charts without a size"
	[ "$(jq .width <<<"$said")" = "$1" ] ||
		fail "$1 $2: the window is $(jq .width <<<"$said") wide"
	[ "$(jq .dark <<<"$said")" = "$([ "$2" = dark ] && echo true || echo false)" ] ||
		fail "$1 $2: the other colours"
	[ "$(jq '.outside + (if .scroll > .width then 1 else 0 end)' <<<"$said")" = 0 ] ||
		fail "$1 $2: outside the page's width: $(jq -c '[.outside, .scroll, .first]' \
		<<<"$said")"
	[ "$(jq .asked <<<"$said")" = 0 ] || fail "$1 $2: it asked for other files"
	! grep -a 'CONSOLE.*source: \(file\|about\|blob\|data\|$\)' "$work/err" ||
		fail "$1 $2: console"
}
look 1280 light
look 390 light
look 390 dark
[ "$failures" -eq 0 ] && echo "all fine"
exit $((failures != 0))
