#!/usr/bin/env bash
# Queries about a program that runs, and at the same time its calls saved, once before them and once
# behind: each answer is what a plain reference makes of the saved calls.
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/replay_lib.sh"

both='from f in cluster.Function("replayed_target!work_???")
	join r in cluster.Return("replayed_target!work_???") on f.tid equals r.tid within 1s
	where r.Failed || !r.Failed select new { f, r }'
entries='from x in cluster.Function("replayed_target!work_???")'
ends='from x in cluster.Return("replayed_target!work_???")'

ask_all() {
	queries=() live=()
	start_target ready "$bin/replayed_target" 3 "$1"
	saved first "$both"
	asked by_thread 1 \
		"$entries group x by x.tid into g select new { g.Key, n = g.Count(),
			sum = g.Sum(x => x.Arg(1)), least = g.Min(x => x.Arg(1)),
			most = g.Max(x => x.Arg(1)),
		mean = g.Average(x => x.Arg(1)), deviation = g.StdDev(x => x.Arg(1)),
		first = g.First(x => x.Arg(1)), last = g.Last(x => x.Arg(1)),
		any = g.Any(x => x.Arg(1) < -50),
		all = g.All(x => x.Arg(0) < 3), some = g.Count(x => x.Arg(1) > 100) }" \
		0 by:tid count sum:Arg\(1\) min:Arg\(1\) max:Arg\(1\) average:Arg\(1\) \
		stddev:Arg\(1\) first:Arg\(1\) last:Arg\(1\) any:Arg\(1\):lt:-50 all:Arg\(0\):lt:3 \
		countif:Arg\(1\):gt:100
	asked by_names 2 "$entries where x.Arg(1) > -15 group x by new { x.function, x.comm } into g
		select new { g.Key, sizes = g.Histogram(x => x.Arg(1)), often = g.TopK(3,
		x => x.Arg(0)), mostly = g.TopK(3, x => x.Arg(1)), values = g.DistinctCount(x =>
		x.Arg(1)) }" \
		0 where:Arg\(1\):gt:-15 by:function by:comm histogram:Arg\(1\) top:Arg\(0\) \
		top:Arg\(1\) distinct:Arg\(1\)
	asked by_kind 1 \
		"$entries where x.comm == \"worker-1\" group x by x.Arg(0) into g
			select new { g.Key, half = g.Quantile(0.5, x => x.Arg(1)),
			most = g.Quantile(0.95, x => x.Arg(1)) }" \
		0 where:comm:eq:worker-1 by:Arg\(0\) quantile:0.5:Arg\(1\) quantile:0.95:Arg\(1\)
	asked value 0 \
		'cluster.Function("replayed_target!work_two").Where(x => x.Arg(1) % 2
			!= 9).StdDev(x => x.Arg(1))' 0 where:function:eq:work_two stddev:Arg\(1\)
	asked tumbling 2 'from x in cluster.Function("replayed_target!work_???").Tumbling(100ms)
		group x by x.Arg(0) into g select new { g.Key, n = g.Count(),
		sum = g.Sum(x => x.Arg(1)) }' \
		0 tumbling:100000000 by:Arg\(0\) count sum:Arg\(1\)
	asked sliding 2 \
		'from x in cluster.Function("replayed_target!work_???").Sliding(300ms, 100ms)
			group x by x.comm into g select new { g.Key, n = g.Count(),
			last = g.Last(x => x.Arg(1)) }' \
		0 sliding:300000000:100000000 by:comm count last:Arg\(1\)
	asked every 2 \
		'from x in cluster.Function("replayed_target!work_???").Where(x => x.Arg(0) <
			2).Every(50) group x by x.function into g select new { g.Key, n = g.Count(),
			sum = g.Sum(x => x.Arg(1)) }' \
		0 where:Arg\(0\):lt:2 every:50 by:function count sum:Arg\(1\)
	asked ends 2 "$ends group x by new { x.function, x.Failed } into g
		select new { g.Key, n = g.Count(), sum = g.Sum(x => x.ReturnValue),
		took = g.Sum(x => x.Duration), least = g.Min(x => x.Duration),
		most = g.Max(x => x.Duration), mean = g.Average(x => x.Duration),
		spread = g.Histogram(x => x.Duration) }" \
		1 by:function by:Failed count sum:ReturnValue sum:Duration min:Duration \
		max:Duration average:Duration histogram:Duration
	asked returned 1 \
		"$ends where x.ReturnValue > 0 group x by x.function into g
			select new { g.Key, n = g.Count(), sum = g.Sum(x => x.ReturnValue),
			half = g.Quantile(0.5, x => x.Duration) }" \
		1 where:Failed:eq:false where:ReturnValue:gt:0 by:function count sum:ReturnValue \
		quantile:0.5:Duration
	asked joined 1 \
		'from l in cluster.Function("replayed_target!work_???")
			join r in cluster.Return("replayed_target!work_???") on new { l.tid,
			l.function } equals new { r.tid, r.function } within 1h
		where r.time > l.time && l.Arg(1) > 300 group new { l, r } by r.Failed into g
		select new { g.Key, n = g.Count(), sum = g.Sum(x => x.l.Arg(1)),
		returned = g.Sum(x => x.r.ReturnValue), most = g.Max(x => x.r.ReturnValue) }' \
		0,1 on:l.tid:r.tid on:l.function:r.function within:3600000000000 ordered \
		where:l.Arg\(1\):gt:300 by:r.Failed count sum:l.Arg\(1\) sum:r.ReturnValue \
		max:r.ReturnValue
	saved last "$both"
	finish
}
until_sure

# Stacks and callers: what is saved of them, and how often each came.
queries=() live=()
start_target ready "$bin/replayed_target" 2 6
saved stacks "$entries select new { x.time, x.tid, x.function, stack = x.Stack(4), who = x.Caller }"
asked by_stack 1 "$entries group x by x.Stack(4) into g select new { g.Key, n = g.Count() }" 0 \
	by:stack count
asked by_caller 2 \
	"$entries group x by new { x.Caller, x.function } into g select new { g.Key, n = g.Count(),
		threads = g.DistinctCount(x => x.tid) }" \
	0 by:who by:function count distinct:tid
finish
judge_all stacks stacks

# Calls that return and that throw, of one session.
queries=() live=()
start_target ready "$bin/replayed_target" 2 6
saved thrown "$ends select new { x.time, x.tid, x.function, x.ReturnValue, x.Failed, x.Duration }"
finish
"$FAY" trace --json \
	"from x in file(\"$work/thrown.fay\") group x by new { x.function, x.Failed } into g
		select new { g.Key, n = g.Count(), sum = g.Sum(x => x.ReturnValue),
		took = g.Sum(x => x.Duration) }" \
	>"$work/asked.json" 2>"$work/err" || { cat "$work/err" >&2; fail "the file"; }
judge asked 2 thrown thrown 0 by:function by:Failed count sum:ReturnValue sum:Duration

# A recursion that is deeper than calls are watched, by two sessions: the program lives, and each
# call is counted or lost.
queries=() live=()
start_target ready "$bin/replayed_target" 1 0 6000
deep='cluster.Return("replayed_target!deeper").Count()'
tracer_of one --json "$deep"
tracer_of two --json "$deep"
finish
for name in one two; do
	equal "$name: calls" 6001 \
		"$(jq -s '(map(select(.type == "row" and .final))[0].values.Count) +
			(map(select(.type == "end"))[0].lost_calls)' "$work/$name.json")"
done
