#!/usr/bin/env bash
# How many bytes of a program's stack a query takes below the function's first instruction: no more
# than what the loader says (stack_of() in loader/plan/runtimes.c), which refuses functions of Go by
# it.
. "$(dirname "$0")/../lib.sh"
here=$(cd "$(dirname "$0")" && pwd)
gcc -O1 -g -pthread -o "$work/stack_used" "$here/stack_used.c"
while read -r query; do
	"$FAY" trace --budget none --verbose --csv -o "$work/rows" "$query" -- \
		"$work/stack_used" >"$work/out" 2>"$work/err" || { cat "$work/err" >&2; fail "$query"; }
	used=$(cat "$work/out")
	# of several probes, those of which most is said
	more=0
	own=$(sed -n 's/.*instructions, \([0-9]*\) bytes of stack.*/\1/p' "$work/err" | sort -n | tail -1)
	said=$((own + 216))
	! grep -q "helpers called:.*fay_" "$work/err" || said=$((own + 440))
	! grep -q "helpers called:.*fay_flush" "$work/err" || said=$((own + 472))
	! grep -q "probe .*(offset" "$work/err" || said=$((said + 224))
	for field in address.24 retval2.32 reg.168 flags.176; do # bytes up to its end, but for 120
		! grep -q "reads of the event:.*\b${field%.*}\b" "$work/err" || more=${field#*.}
	done
	said=$((said + more))
	[ "$used" -gt 0 ] || fail "$query: nothing was changed"
	[ "$used" -le "$said" ] || fail "$query: $used bytes, said to be $said"
	echo "ok: $used of $said bytes: $query"
done <<'IN'
cluster.Function("stack_used!probed").Count()
from r in cluster.Function("stack_used!probed") group r by r.Arg(0) into g select new { g.Key, n = g.Count() }
from r in cluster.Function("stack_used!probed") select new { a = r.Arg(0) }
from r in cluster.Function("stack_used!probed") select new { s = r.Stack(1) }
from r in cluster.Function("stack_used!probed") select new { s = r.Stack(4) }
from r in cluster.Function("stack_used!probed") group r by r.Stack(16) into g select new { g.Key, n = g.Count() }
from r in cluster.Function("stack_used!probed") group r by r.Caller into g select new { g.Key, n = g.Count() }
from r in cluster.Function("stack_used!probed") group r by r.Arg(1).Text into g select new { g.Key, n = g.Count() }
from r in cluster.Function("stack_used!probed") select new { t = r.Arg(1).Text, a = r.Arg(0), r.comm, r.tid, r.time }
from r in cluster.Function("stack_used!probed") group r by r.tid into g select new { g.Key, h = g.Histogram(x => x.Arg(0)), p = g.TopK(5, x => x.Arg(0)) }
from r in cluster.Return("stack_used!probed") group r by r.ReturnValue into g select new { g.Key, n = g.Count() }
from l in cluster.Line("stack_used!stack_used.c:14") select new { l.a }
from l in cluster.Line("stack_used!stack_used.c:14") group l by l.a into g select new { g.Key, n = g.Count() }
IN
