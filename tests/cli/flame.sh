#!/usr/bin/env bash
# flame.sh TEST_CLI_SHOWN GOLDEN: the page of `fay trace --flame` in headless Chromium, with stacks
# that are known: frames and their shares, what is found, a choice, the same compared with others;
# nothing lies outside a narrow window, and nothing is asked of the network. The same of the pages
# of `--html`, as wide as a desktop and as a phone, in light and dark. Exit code 77, a skip, where
# there is no Chromium.
set -euo pipefail
pages=$1 golden=$2
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
printf '%s\n' 'main;get<int>;read 30' 'main;get<int>;write 10' 'main;put;read 20' 'other 40' \
	>"$work/now"
printf '%s\n' 'main;get<int>;read 10' 'main;gone 30' 'other 160' >"$work/before"
begin='<script>addEventListener("load", () => {
	const said = [], root = document.documentElement;
	const tree = (one, text) => { said.push(text + names[one.name] + " " + one.total);
		for (let next = one.begin; next < one.end;) { read(next);
			next = end; tree({ name, total, begin, end }, text + " "); } };
	const box = graph.getBoundingClientRect();
	const choose = (x, y) => { graph.dispatchEvent(new MouseEvent("click", {
		clientX: box.left + box.width * x, clientY: box.top + HEIGHT * y }));
		said.push($("said").textContent); };
	tree(all, "");'
end='said.push("outside: " + (root.scrollWidth > root.clientWidth),
		"asked: " + performance.getEntriesByType("resource").length);
	document.body.dataset.said = said.join("|");
});</script>'
# browse [OPTION]: what page.html says
browse() {
	timeout -k 5 100 "${offline[@]}" "$chromium" --headless --no-sandbox --disable-gpu \
		--disable-dev-shm-usage --no-first-run --user-data-dir="$work/profile" \
		--window-size=500,900 --enable-logging=stderr "$@" --dump-dom \
		"file://$work/page.html" \
		>"$work/dom" 2>"$work/err" || { cat "$work/err"; echo "FAIL: chromium"; exit 1; }
	said=$(sed -n 's/.*data-said="\([^"]*\)".*/\1/p' "$work/dom" | sed 's/&lt;/</g; s/&gt;/>/g')
}
# That files of a busy machine are slow to come is no complaint about the page.
complains() { grep CONSOLE "$work/err" | grep -v "Slow network is detected"; }
# shows WANTED SCRIPT ARGUMENTS...: what the page says that is made of these
shows() {
	local wanted=$1
	"$pages" "${@:3}" >"$work/page.html"
	printf '%s\n%s\n%s\n' "$begin" "$2" "$end" >>"$work/page.html"
	browse
	if [ "$said" != "$wanted" ] || complains; then
		printf 'FAIL: expected %s\n           got %s\n' "$wanted" "$said"
		exit 1
	fi
	echo "ok: $said"
}
wanted='all 100| main 60|  get<int> 40|   read 30|   write 10|  put 20|   read 20| other 40'
wanted+='|1 functions found: 50.00 % of all|get<int>: 40, 40.00 % of all|outside: false|asked: 0'
shows "$wanted" 'find("READ"); said.push($("said").textContent); choose(.05, 1.5);' "$work/now"
# Compared by shares: 80 % were in `other` before, 40 % are now. Then what was before.
wanted='all 100| main 60|  get<int> 40|   read 30|   write 10|  gone 0|  put 20|   read 20'
wanted+='| other 40'
wanted+='|other: 40, 40.00 % of all, −40.00 points since before'
wanted+='|read: 30, 30.00 % of all, +25.00 points since before'
wanted+='|all 200| main 40|  get<int> 10|   read 10|   write 0|  gone 30|  put 0|   read 0'
wanted+='| other 160'
wanted+='|outside: false|asked: 0'
shows "$wanted" 'choose(.9, 2.5); $("all").click(); choose(.05, .5); $("all").click();
	$("other").click(); tree(all, "");' "$work/now" "$work/before"
# Many: their text has several parts. What is too narrow is not drawn before its caller is chosen.
awk 'BEGIN { for (i = 0; i < 20000; i++) print "f" i % 100 ";g" i ";h 1" }' >"$work/many"
wanted='40100 frames in 3 parts, 101 drawn|f9: 200, 1.00 % of all|402 drawn'
wanted+='|1 functions found: 0.01 % of all|g9: 1, 0.01 % of all|4 drawn|outside: false|asked: 0'
shows "$wanted" 'said.length = 0;
	let count = 0;
	for (let next = 0; next < text.length; next = begin, count++) read(next);
	const parts = document.querySelectorAll("#stacks script").length;
	said.push(`${count} frames in ${parts} parts, ${seen.length} drawn`);
	choose(.999, 2.5); said.push(`${seen.length} drawn`);
	find("g19999"); said.push($("said").textContent);
	choose(.999, 1.5); said.push(`${seen.length} drawn`);' "$work/many"

# A window of Chromium is not narrower than 500, so a phone is a frame. Pages of `--html` allow no
# script: it is let in here.
for name in heat histogram; do
	sed '/Content-Security-Policy/d' "$golden/$name.html" >"$work/inner.html"
	grep -q "default-src 'none'; style-src 'unsafe-inline'" "$golden/$name.html"
	cat >>"$work/inner.html" <<-'END'
	<script>addEventListener("load", () => {
		const root = document.documentElement, style = getComputedStyle(document.body);
		parent.postMessage([innerWidth, root.scrollWidth > root.clientWidth,
			style.backgroundColor,
			performance.getEntriesByType("resource").length].join(" "), "*");
	});</script>
	END
	for width in 360 1200; do for scheme in 0 1; do
		cat >"$work/page.html" <<-END
		<body><script>onmessage = e => { document.body.dataset.said = e.data; };</script>
		<iframe src="inner.html" style="border: 0" width="$width" height="800"></iframe>
		END
		browse "--blink-settings=preferredColorScheme=$scheme"
		colours=("rgb(21, 23, 26)" "rgb(255, 255, 255)")
		wanted="$width false ${colours[scheme]} 0"
		[ "$said" = "$wanted" ] || { echo "FAIL: $name: '$said', not '$wanted'"; exit 1; }
		! complains || exit 1
		echo "ok: $name: $said"
	done; done
done
