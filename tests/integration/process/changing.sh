#!/usr/bin/env bash
# Code that is unloaded, mapped and unmapped by hand, and overwritten by the program itself
# (changing_target.c), while traces of its entries and returns come and go: the program's results
# stay right, its text is restored, nothing stays behind. What is being written just then is refused.
. "$(dirname "$0")/../lib.sh"
# Its mappings are several.
text_of_all() {
	local range
	awk -v m="$bin/changing_target" '$2 ~ /x/ && index($6, m) { print $1 }' "/proc/$target/maps" |
		while read -r range; do
			dd if="/proc/$target/mem" bs=4096 skip=$((16#${range%-*} / 4096)) \
				count=$(((16#${range#*-} - 16#${range%-*}) / 4096)) status=none
		done | sha256sum
}
cycles=${FAY_STORM_CYCLES:-${1:-12}}
bin=$(dirname "$FAY")
start_target ready "$bin/changing_target" "$bin/modules_plugin.so" "$bin/modules_plugin_two.so"
before=$(text_of_all)
echo >&9
traced=0
# once QUERY OPTION...: attached and detached again, or refused as a whole. Nothing else may go wrong.
once() {
	local code=0
	"$FAY" trace --verbose --for 20ms -p "$target" "$@" >"$work/once.out" 2>"$work/once.err" ||
		code=$?
	case $code in
	0) traced=$((traced + 1)) ;;
	1 | 2)
		grep -qE "cannot be traced|keeps changing|no module|no function|cannot be read" \
			"$work/once.err" || { cat "$work/once.err" >&2; fail "exit code $code"; }
		;;
	*) cat "$work/once.err" >&2; fail "exit code $code" ;;
	esac
	kill -0 "$target" 2>/dev/null || { cat "$work/target.out" >&2; fail "the program has ended"; }
}
for _ in $(seq "$cycles"); do
	once 'cluster.Return("changing_target!rewritten").Count()'
	once 'cluster.Function("changing_target!rewritten").Count()'
	once 'cluster.Return("*!*_work").Count()'
	once 'cluster.Return("changing_target!rewritten").Sum(r => r.Duration)'
	once 'cluster.Return("*!*_work").Sum(r => r.Duration)' --wait
	# two at a time, of which the first stays longer
	"$FAY" trace --for 200ms -p "$target" 'cluster.Return("changing_target!*").Count()' \
		>/dev/null 2>&1 &
	other=$!
	own "$other"
	once 'cluster.Function("changing_target!*").Count()'
	once 'cluster.Return("*!*_work").Count()'
	ended "$other" || true
done
[ "$traced" -gt 0 ] || { cat "$work/once.err" >&2; fail "nothing was ever traced"; }
echo "ok: $traced of $((7 * cycles)) traces were attached"
echo >&9
wait_for "$work/target.out" done
echo "ok: $(cat "$work/target.out" | tail -n 1) rounds"
equal "text afterwards" "$before" "$(text_of_all)"
equal "mappings of fay's" 0 "$(grep -c fay- "/proc/$target/maps" || true)"
end_target
