#!/usr/bin/env bash
# Debian's CPython: its own USDT probes against what it did.
. "$(dirname "$0")/../lib.sh"
python=$(readlink -f /usr/bin/python3 || true)
[ -x "$python" ] || skip "/usr/bin/python3 is not installed"
"$FAY" list --usdt "$python" '*!python:*' >"$work/list" 2>&1 ||
	skip "$python has no USDT probes: $(head -1 "$work/list")"
module=$(sed -n '1s/.* \([^ !]*\)!.*/\1/p' "$work/list")
cat >"$work/program.py" <<'END'
import gc, sys
gc.disable()
print("ready", flush=True)
def called(x):
    return x
for line in sys.stdin:
    if line.startswith("collect"):
        for generation in (0, 1, 2, 2):
            gc.collect(generation)
    elif line.startswith("call"):
        for i in range(1000):
            called(i)
    elif line.startswith("traced"): # CPython 3.11 passes function__entry only while the program traces itself
        sys.settrace(lambda *event: None)
        for i in range(300):
            called(i)
        sys.settrace(None)
    elif line.startswith("audit"):
        for i in range(500):
            sys.audit("fay.event", i)
    print("did", line, end="", flush=True)
END
mkfifo "$work/in"
"$python" "$work/program.py" <"$work/in" >"$work/python.out" &
target=$!
own "$target"
exec 9>"$work/in"
wait_for "$work/python.out" ready
before=$(text_hash "$target")
run() { echo "$1" >&9; wait_for "$work/python.out" "did $1"; }
trace -p "$target" "cluster.Usdt(\"$module!python:gc__start\").Sum(x => x.Arg(0))"
run collect
end_trace
equal "generations collected" 5 "$(final_sum Sum)"
trace -p "$target" "from m in cluster.Usdt(\"$module!python:*\") group m by m.function into g
	select new { g.Key, n = g.Count() }"
run "audit 2"
run "call 2"
run "collect 2"
end_trace
count() {
	jq -s --arg k "python:$1" \
		'[.[] | select(.type == "row" and .final and .values.Key == $k) | .values.n] |
			add // 0' \
		"$work/trace.json"
}
equal "audit" 500 "$(count audit)"
equal "gc__start" 4 "$(count gc__start)"
equal "gc__done" 4 "$(count gc__done)"
returns=$(count function__return)
[ "$returns" -ge 1000 ] || fail "function__return: $returns for 1000 calls"
echo "ok: function__return = $returns, of which 1000 are the loop's"
equal "function__entry of an untraced program" 0 "$(count function__entry)"
trace -p "$target" "cluster.Usdt(\"$module!python:function__entry\").Count()"
run "traced 2"
end_trace
equal "function__entry of one that traces itself" 300 "$(final_sum Count)"
equal "text after" "$before" "$(text_hash "$target")"
run "audit 3"
exec 9>&-
ended "$target"
