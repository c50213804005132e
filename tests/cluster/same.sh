#!/usr/bin/env bash
# Three agents on one NATS server: totals are exact, and the answers are those of one machine:
# groups, root stage, function names, streams, sketches.
. "$(dirname "$0")/lib.sh"
server 0
for n in 1 2 3; do agent $n; done
equal "machines in status" 3 \
	"$("$FAY" cluster status --cluster "$URL" --key asker.key "${ASK_OPTIONS[@]}" --json \
	--await 3 | wc -l)"
each() { for n in 1 2 3; do target $n 4 "$1"; done; }
run() { for n in 1 2 3; do go $n; done; }
end() { for n in 1 2 3; do finish $n; done; }
# ask_all CALLS QUERY: of programs on all machines that make so many calls a thread, when they are
# told to run
ask_all() { each "$1"; ask --await 3 --comm threads_target "$2"; }
# The programs' end ends the query; its exit code in $code
run_to_end() {
	run
	end
	code=0; ended "$tracer" || code=$?
}
final_rows() { jq -sc "[.[] | select(.type == \"row\" and .final) | .values$*]" trace.json; }

each 250000
clean=$(text_hash "${targets[1]}")
ask --await 3 --comm threads_target 'cluster.Function("threads_target!work").Count()'
run
until_rows '.[0].Count' 3000000
end_ask
equal "calls on 3 machines" 3000000 "$(total Count)"
equal "machines that finished" 3 "$(coverage finished)"
equal "machines lost, late, incomplete" "0 0 0" \
	"$(coverage lost) $(coverage late) $(coverage incomplete)"
equal "nothing merged twice, refused or unknown" "0 0 0" \
	"$(coverage conflicts) $(coverage malformed) $(coverage unknown)"
equal "threads" 12 "$(jq -s 'map(select(.type == "end"))[0].threads' trace.json)"
end

# The query of the paper's kind, many keys (tables overflow, into rings that hold all of them), and
# a root stage; the programs' end ends it.
lost() { jq -s 'map(select(.type == "end"))[0].events_lost' trace.json; }
ask_all 15000 'from w in cluster.Function("threads_target!w*") group w by w.Arg(1) into g
	where g.Count() == 12
	orderby g.Key descending take 5 select new { key = g.Key, n = g.Count(),
	low = g.Min(w => w.Arg(0)), high = g.Max(w => w.Arg(0)), mean = g.Average(w => w.Arg(0)) }'
run_to_end
equal "the programs' end ends it" 0 $code
equal "order, take and values over 3 machines" \
	'[{"key":14999,"n":12,"low":0,"high":3,"mean":1.5},{"key":14998,"n":12,"low":0,"high":3,"mean":1.5},{"key":14997,"n":12,"low":0,"high":3,"mean":1.5},{"key":14996,"n":12,"low":0,"high":3,"mean":1.5},{"key":14995,"n":12,"low":0,"high":3,"mean":1.5}]' \
	"$(final_rows)"
equal "events lost" 0 "$(lost)"

# Quantiles and a histogram by group, which are kept by bucket: Arg(1) counts from 0 in each thread.
ask_all 16384 'from w in cluster.Function("threads_target!work") group w by w.Arg(0) into g
	orderby g.Key select new { key = g.Key, n = g.Count(), low = g.Quantile(0, x => x.Arg(1)),
	half = g.Quantile(0.5, x => x.Arg(1)), all = g.Histogram(x => x.Arg(1)) }'
run_to_end
equal "quantiles and histograms by group over 3 machines" \
	'{"low":0,"half":8191,"n":49152,"buckets":15,"in_all":49152,"last":24576}' \
	"$(final_rows | jq -c '.[0] | { low, half: ((.half / 8191 - 1 | fabs) < 0.032 |
		if . then 8191 else . end), n, buckets: (.all | length),
		in_all: (.all | map(.count) | add), last: .all[-1].count }')"
equal "groups" 4 "$(final_rows | jq length)"
equal "events lost" 0 "$(lost)"

# More keys than the rings hold: a thread waits for its agent. Where that got no processor for long,
# what was lost is told.
ask_all 40000 \
	'cluster.Function("threads_target!work").GroupBy(w => w.Arg(1)).Select(g => new { n =
		g.Count() }).Sum(g => g.n)'
run_to_end
equal "counted and lost over 3 machines" 480000 $(($(total Sum) + $(lost)))
echo "ok: $(lost) of 480000 events were lost"

# Names of functions come along; so do rows of events.
ask_all 1000 'cluster.Function("threads_target!w*rk").GroupBy(w => w.function).Select(g => new { f =
	g.Key, n = g.Count() })'
run
until_rows '.[0].n' 12000
end_ask
equal "a function's name" '[{"f":"work","n":12000}]' "$(final_rows)"
end
ask_all 1000 'from w in cluster.Function("threads_target!work") where w.Arg(1) % 2 == 0
	select new { number = w.Arg(1) }'
run_to_end
equal "streamed rows" 6000 "$(jq -s '[.[] | select(.type == "row")] | length' trace.json)"
equal "their sum" $((12 * 500 * 499)) \
	"$(jq -s '[.[] | select(.type == "row") | .values.number] | add' trace.json)"

# Arguments of calls that have ended; rows that replace, too.
for replaces in '' ', top = g.TopK(1, r => r.Arg(1) / 600)'; do
	ask_all 1000 "from r in cluster.Return(\"threads_target!work\") where r.Arg(1) < 600
		group r by r.Arg(0) into g select new { g.Key, n = g.Count(r => r.ReturnValue ==
		(r.Arg(0) ^ r.Arg(1)))$replaces }"
	run_to_end
	equal "calls by their arguments" '[[0,1800],[1,1800],[2,1800],[3,1800]]' \
		"$(final_rows '| [.Key, .n]')"
	equal "calls lost" 0 "$(jq 'select(.type == "end").lost_calls' trace.json)"
done

# Operators that cannot be told as differences: rows replace.
ask_all 3000 'from w in cluster.Function("threads_target!work") group w by w.Arg(0)%2 into g
	select new { g.Key, top = g.TopK(4, w => w.Arg(0)), n = g.Count() }'
run_to_end
equal "most frequent values" \
	'[{"Key":0,"top":[[0,9000],[2,9000]],"n":18000},{"Key":1,"top":[[1,9000],[3,9000]],"n":18000}]' \
	"$(final_rows '| .top |= (map([.key, .count]) | sort)')"

# Some machines only, by name.
each 1000
ask --await 2 --comm threads_target 'machine("node[13]").Function("threads_target!work").Count()'
run
until_rows '.[0].Count' 8000
end_ask
equal "machines asked" 2 "$(coverage asked)"
end
exits "a name that no machine has" 1 "$FAY" trace --cluster "$URL" --key asker.key \
	"${ASK_OPTIONS[@]}" --comm threads_target \
	'machine("node9").Function("threads_target!work").Count()'
contains "says so" "$work/err" 'no machine that answers has that name'
for n in 1 2; do echo "machine web$n $(cat node$n.pub)"; done >machines
exits "a name that the machine gives itself" 1 "$FAY" trace --cluster "$URL" --key asker.key \
	"${ASK_OPTIONS[@]}" --machines machines --comm threads_target \
	'machine("node1").Function("threads_target!work").Count()'
each 1000
ask --machines machines --comm threads_target \
	'machine("web1").Function("threads_target!work").Count()'
run
until_rows '.[0].Count' 4000
end_ask
equal "machines asked by the names of --machines" 1 "$(coverage asked)"
end

# Windows of so many events of all machines, whatever they come from.
ask_all 1000 'from w in cluster.Function("threads_target!work").Every(5000) group w by w.Arg(0) % 2
	into g select new { g.Key, n = g.Count() }'
run_to_end
equal "windows over 3 machines" '[[0,5000],[1,5000],[2,2000]]' \
	"$(jq -sc '[.[] | select(.type == "row") | .values] | group_by(.window) |
		map([.[0].window, (map(.n) | add)])' trace.json)"
equal "each event once" '[[0,6000],[1,6000]]' \
	"$(jq -sc '[.[] | select(.type == "row") | .values] | group_by(.Key) |
		map([.[0].Key, (map(.n) | add)])' trace.json)"

# Who starts later is traced with --wait, on each machine.
ask --await 3 --comm threads_target --wait 'cluster.Function("threads_target!work").Count()'
each 1000
for n in 1 2 3; do patched $n "$clean"; done
run
until_rows '.[0].Count' 12000
end_ask
end
