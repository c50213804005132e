#!/usr/bin/env bash
# What tracing by an agent costs the programs it traces: allocations counted by thread, in 1 to 10
# processes of 1 to 1,000 threads, as in the cluster experiment of the Fay paper.
# One agent, one NATS server, both on this machine. In each round the program
# (bench/cluster/allocations.c) makes the same number of allocations three times: untraced, traced
# from the first event of each thread on (`first`), and once more (`steady`); the next round's
# untraced part is compared with, too. Its own processor time counts, so that other load matters
# little.
# The counts must be exact, for each thread. Prints a JSON line for each configuration;
# bench/cluster/cluster_overhead_table.sh makes the tables of docs/performance.md.
# Usage: bench/cluster/cluster_overhead.sh [ROUNDS] >bench/results/cluster_overhead.json    
# default: 4 rounds, some four minutes
set -euo pipefail
rounds=${1:-4}
bin=$(realpath "${BIN:-$(dirname "$0")/../../build/bin}")
work=$(mktemp -d)
port=$((20000 + RANDOM % 10000))
url=nats://127.0.0.1:$port
. "$(dirname "$0")/../../scripts/owned.sh"
trap 'kill_owned; rm -rf "$work"' EXIT
cd "$work"
by_thread='from m in cluster.Function("libc!malloc") group m by m.tid into g
	select new { g.Key, n = g.Count() }'
each_event='from m in cluster.Function("libc!malloc") select new { m.tid, size = m.Arg(0) }'

start_agent() {
	"$bin/fay" cluster keygen asker >/dev/null 2>&1
	"$bin/fay" cluster keygen agent >/dev/null 2>&1
	echo "signer bench $(cat asker.pub)" >signers
	nats-server -a 127.0.0.1 -p $port >nats.log 2>&1 &
	own $!
	until (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; do sleep 0.05; done
	"$bin/fayd" --url "$url" --key agent.key --signers signers --name bench 2>fayd.log &
	agent=$!
	own $agent
	until grep -q 'has joined' fayd.log; do sleep 0.05; done
}

# allocate COUNT: $per_ns: processor time for one, in ns; $made: how many
allocate() {
	local line
	echo "$1" >&5
	read -r -u 6 line
	made=${line% *}
	per_ns=$(awk '{printf "%.4f", $2 / $1}' <<<"$line")
}
agent_ticks() { awk '{print $14 + $15}' "/proc/$agent/stat"; }

# traced QUERY WINDOW COUNT: two parts, $first and $steady; $rows, $counted, $lost of the result,
# $share of a processor that the agent used
traced() {
	local tracer ticks since
	rm -f err
	"$bin/fay" trace --cluster "$url" --key asker.key --comm fay_allocations --every "$2" \
		--json "$1" >out.json 2>err &
	tracer=$!
	own $tracer
	until grep -q 'fay: tracing' err 2>/dev/null; do
		kill -0 $tracer || {
			cat err >&2
			exit 1
		}
		sleep 0.02
	done
	ticks=$(agent_ticks) since=$(date +%s%N)
	allocate "$3"
	first=$per_ns
	allocate "$3"
	steady=$per_ns
	share=$(awk -v t=$(($(agent_ticks) - ticks)) -v ns=$(($(date +%s%N) - since)) \
		'BEGIN {printf "%.4f", t / 100 / (ns / 1e9)}')
	kill -INT $tracer
	wait $tracer
	lost=$(sed -n '/"type":"end"/p' out.json | jq .events_lost)
}
count_groups() {
	grep '"type":"row"' out.json |
		jq -s '[.[] | select(.final) | .values.n] | {rows: length, counted: add, even:
			(min == max)}'
}
count_events() {
	jq -n --argjson n "$(grep -c '"type":"row"' out.json)" --argjson want $((2 * made)) \
		--argjson lost "$lost" '{rows: 0, counted: $n, even: ($n + $lost == $want)}'
}

# measure NAME PROCESSES THREADS WORK COUNT QUERY WINDOW COUNTING
measure() {
	local program
	mkfifo in out
	"$bin/fay_allocations" "$2" "$3" "$4" <in >out &
	program=$!
	own $program
	exec 5>in 6<out
	allocate "$5"
	: >rounds
	for _ in $(seq "$rounds"); do
		allocate "$5"
		local untraced=$per_ns
		traced "$6" "$7" "$5"
		"$8" | jq -c --argjson u "$untraced" --argjson f "$first" --argjson s "$steady" \
			--argjson made $((2 * made)) --argjson lost "$lost" --argjson share \
			"$share" \
			'. + {untraced: $u, first: $f, steady: $s, made: $made, lost: $lost, share:
				$share}' \
			>>rounds
	done
	allocate "$5"
	exec 5>&- 6<&-
	wait $program
	rm in out
	jq -cs --arg name "$1" --argjson processes "$2" --argjson threads "$3" --argjson work "$4" \
		--arg window "$7" --argjson last "$per_ns" '
		def quartiles: sort | [.[((length - 1) * 0.25 | floor), ((length - 1) * 0.5 |
		floor), ((length - 1) * 0.75 | ceil)]] | {q1: .[0], median: .[1], q3: .[2]};
		. as $r | [range(length) | $r[.] + {beside: (($r[.].untraced + ($r[. + 1].untraced
		// $last)) / 2)}] |
		{what: $name, $processes, $threads, $work, $window, rounds: length, allocations:
		(map(.made) | add), counted: (map(.counted) | add), lost: (map(.lost) | add),
		 exact: all(.[]; .even and .counted + .lost == .made and (.rows == 0
		 or .rows == $processes * $threads)), untraced_ns: (map(.beside) | quartiles),
		 first: (map(.first / .beside) | quartiles), steady: (map(.steady / .beside) |
		 quartiles), added_ns: (map(.steady - .beside) | quartiles),
		 set_up_us: (map((.first - .steady) * .made / 2 / $processes / $threads / 1000) |
		 quartiles), agent_share: (map(.share) | quartiles)}' \
		 rounds
}

start_agent
jq -nc --arg cpu "$(sed -n 's/^model name.*: //p' /proc/cpuinfo | head -1)" --arg n "$(nproc)" \
	--arg load "$(cut -d' ' -f1 /proc/loadavg)" --arg date "$(date -u +%F)" \
	'{what: "machine", cpu: $cpu, processors: ($n | tonumber), load_at_start: ($load | tonumber), date: $date}'
while read -r processes threads; do
	measure "by thread" "$processes" "$threads" 10 1500000 "$by_thread" 1s count_groups
done <<-END
	1 1
	1 10
	1 100
	1 1000
	10 1
	10 10
	10 100
	10 1000
END
measure "told ten times a second" 10 100 10 1500000 "$by_thread" 100ms count_groups
measure "nothing but allocations" 1 1 0 20000000 "$by_thread" 1s count_groups
measure "blocks written" 1 1 1 10000000 "$by_thread" 1s count_groups
measure "each event sent" 1 10 10 300000 "$each_event" 1s count_events
