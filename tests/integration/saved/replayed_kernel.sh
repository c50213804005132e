#!/usr/bin/env bash
# Queries about system calls and tracepoints, through BPF, and at the same time these events saved,
# once before them and once behind: each answer is what a plain reference makes of the saved ones.
# The main thread's calls begin before the traces do, and are left out.
host=1
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/replay_lib.sh"
needs_bpf

both='from l in cluster.Syscall("lseek") join r in cluster.Syscall("read") on l.tid equals r.tid
	within 1s where l.comm != "replayed_target" && r.comm != "replayed_target"
	select new { l, r }'
seeks='from s in cluster.Syscall("lseek") where s.comm != "replayed_target"'
reads='from s in cluster.Syscall("read") where s.comm != "replayed_target"'

ask_all() {
	queries=() live=()
	start_target ready "$bin/replayed_target" 3 "$1"
	saved first "$both"
	asked by_thread 1 \
		"$seeks group s by s.tid into g select new { g.Key, n = g.Count(),
			sum = g.Sum(x => x.Arg(1)), least = g.Min(x => x.Arg(1)),
			most = g.Max(x => x.Arg(1)),
		mean = g.Average(x => x.Arg(1)), deviation = g.StdDev(x => x.Arg(1)),
		first = g.First(x => x.Arg(1)), last = g.Last(x => x.Arg(1)),
		any = g.Any(x => x.Arg(1) < -50),
		all = g.All(x => x.Arg(2) < 3), some = g.Count(x => x.Arg(1) > 100) }" \
		0 by:tid count sum:Arg\(1\) min:Arg\(1\) max:Arg\(1\) average:Arg\(1\) \
		stddev:Arg\(1\) first:Arg\(1\) last:Arg\(1\) any:Arg\(1\):lt:-50 all:Arg\(2\):lt:3 \
		countif:Arg\(1\):gt:100
	asked ends 1 "$seeks group s by s.Failed into g select new { g.Key, n = g.Count(),
		sum = g.Sum(x => x.ReturnValue), took = g.Sum(x => x.Duration),
		least = g.Min(x => x.Duration),
		most = g.Max(x => x.Duration), mean = g.Average(x => x.Duration),
		spread = g.Histogram(x => x.Duration) }" \
		0 by:Failed count sum:ReturnValue sum:Duration min:Duration max:Duration \
		average:Duration histogram:Duration
	asked returned 2 \
		"$reads group s by new { s.ReturnValue, s.comm } into g
			select new { g.Key, n = g.Count(), sizes = g.Sum(x => x.Arg(2)),
			failed = g.Any(x => x.Failed) }" \
		1 by:ReturnValue by:comm count sum:Arg\(2\) any:Failed:eq:true
	asked summaries 1 \
		"$seeks group s by s.comm into g select new { g.Key, sizes = g.Histogram(x =>
			x.Arg(1)), mostly = g.TopK(3, x => x.Arg(1)), values = g.DistinctCount(x =>
			x.Arg(1)) }" \
		0 by:comm histogram:Arg\(1\) top:Arg\(1\) distinct:Arg\(1\)
	asked half 1 "$reads group s by s.function into g select new { g.Key, half = g.Quantile(0.5,
		x => x.Arg(2)), often = g.TopK(3, x => x.Arg(2)) }" \
		1 by:function quantile:0.5:Arg\(2\) top:Arg\(2\)
	asked tumbling 2 \
		"from s in cluster.Syscall(\"lseek\").Where(s => s.comm
			!= \"replayed_target\").Tumbling(100ms) group s by s.Failed into g
			select new { g.Key, n = g.Count(), sum = g.Sum(x => x.ReturnValue) }" \
		0 tumbling:100000000 by:Failed count sum:ReturnValue
	asked sliding 2 \
		"from s in cluster.Syscall(\"read\").Where(s => s.comm
			!= \"replayed_target\").Sliding(300ms, 100ms) group s by s.comm into g
			select new { g.Key, n = g.Count(), last = g.Last(x => x.ReturnValue) }" \
		1 sliding:300000000:100000000 by:comm count last:ReturnValue
	asked every 2 \
		"from s in cluster.Syscall(\"lseek\").Where(s => s.comm
			!= \"replayed_target\").Every(50) group s by s.Failed into g
			select new { g.Key, n = g.Count(), sum = g.Sum(x => x.ReturnValue) }" \
		0 every:50 by:Failed count sum:ReturnValue
	asked joined 2 \
		'from l in cluster.Syscall("lseek") join r in cluster.Syscall("read")
			on new { l.tid, k = l.Arg(2) } equals new { r.tid, k = r.Arg(0) - r.Arg(0) }
			within 1h
		where l.comm != "replayed_target" && r.comm != "replayed_target" && r.time > l.time
		&& l.ReturnValue > 500
		group new { l, r } by new { l.ReturnValue, r.Failed } into g
		select new { g.Key, n = g.Count(), bytes = g.Sum(x => x.r.ReturnValue),
		least = g.Min(x => x.r.Arg(2)), mean = g.Average(x => x.l.Arg(1)) }' \
		0,1 on:l.tid:r.tid within:3600000000000 ordered where:l.ReturnValue:gt:500 \
		by:l.ReturnValue by:r.Failed count sum:r.ReturnValue min:r.Arg\(2\) \
		average:l.Arg\(1\)
	saved last "$both"
	finish
}
until_sure

# Tracepoints, and stacks in the kernel and in the program.
queries=() live=()
start_target ready "$bin/replayed_target" 2 6
saved point 'from s in cluster.Tracepoint("sys_exit") where s.comm != "replayed_target"
	select new { s.time, s.tid, s.ret }'
asked results 1 'from s in cluster.Tracepoint("sys_exit") where s.comm != "replayed_target"
	group s by s.ret into g select new { g.Key, n = g.Count(), threads = g.DistinctCount(x =>
	x.tid) }' \
	0 by:ret count distinct:tid
finish
judge_all point point
queries=() live=()
start_target ready "$bin/replayed_target" 2 6
saved stacks 'from s in cluster.Syscall("lseek") select new { s.time, s.tid, user = s.UserStack,
	kernel = s.Stack(6) }'
asked by_stack 1 \
	'from s in cluster.Syscall("lseek") group s by s.UserStack into g
		select new { g.Key, n = g.Count() }' 0 by:user count
asked by_kernel_stack 1 \
	'from s in cluster.Syscall("lseek") group s by s.Stack(6) into g
		select new { g.Key, n = g.Count() }' 0 by:kernel count
finish
judge_all stacks stacks
