#!/usr/bin/env bash
# flame.sh SOURCE: the page of `fay trace --flame` in headless Chromium, with stacks that are known:
# the frames and their shares, what is found, a choice; nothing lies outside a narrow window, and
# nothing is asked of the network. Exit code 77, a skip, where there is no Chromium.
set -euo pipefail
source=$1
chromium=$(command -v chromium || command -v chromium-browser || command -v google-chrome) || {
	echo "skipped: chromium is not installed (scripts/deps --test)"
	exit 77
}
# Chromium asks its maker for updates and the time unless it has no network.
offline=(unshare --net)
[ "$(id -u)" = 0 ] || offline=(unshare --map-root-user --net)
"${offline[@]}" true 2>/dev/null || {
	echo "skipped: no network namespace for chromium to run in"
	exit 77
}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
stacks='main;get&lt;int>;read 30\nmain;get&lt;int>;write 10\nmain;put;read 20\nother 40\n'
probe='<script>addEventListener("load", () => {
	const said = [], root = document.documentElement;
	const tree = (one, text) => { said.push(text + names[name[one]] + " " + total[one]); for (let c = child[one]; c >= 0; c = next[c]) tree(c, text + " "); };
	tree(0, "");
	find("READ");
	said.push($("said").textContent);
	const box = graph.getBoundingClientRect();
	graph.dispatchEvent(new MouseEvent("click", { clientX: box.left + box.width * .05, clientY: box.top + HEIGHT * 1.5 }));
	said.push($("said").textContent);
	said.push("outside: " + (root.scrollWidth > root.clientWidth), "asked: " + performance.getEntriesByType("resource").length);
	document.body.dataset.said = said.join("|");
});</script>'
# the frame of a phone: a window of Chromium is not narrower than 500
page=$(sed "s/@QUERY@/a \&lt; b/; s/@STACKS@/${stacks//&/\\&}/" "$source/cli/output/flame.html" |
	sed "s|</body>|$(printf '%s' "$probe" | sed 's/[&|\\]/\\&/g; $!s/$/\\/')</body>|")
printf '%s\n' "$page" >"$work/page.html"
timeout -k 5 100 "${offline[@]}" "$chromium" --headless --no-sandbox --disable-gpu \
	--disable-dev-shm-usage --no-first-run --user-data-dir="$work/profile" \
	--window-size=500,900 --enable-logging=stderr --dump-dom "file://$work/page.html" \
	>"$work/dom" 2>"$work/err" || { cat "$work/err"; echo "FAIL: chromium"; exit 1; }
said=$(sed -n 's/.*data-said="\([^"]*\)".*/\1/p' "$work/dom" | sed 's/&lt;/</g; s/&gt;/>/g')
wanted='all 100| main 60|  get<int> 40|   read 30|   write 10|  put 20|   read 20| other 40'
wanted+='|1 functions found: 50.00 % of all|get<int>: 40, 40.00 % of all|outside: false|asked: 0'
if [ "$said" != "$wanted" ] || grep -q CONSOLE "$work/err"; then
	grep CONSOLE "$work/err" || true
	printf 'FAIL: expected %s\n           got %s\n' "$wanted" "$said"
	exit 1
fi
echo "ok: $said"
