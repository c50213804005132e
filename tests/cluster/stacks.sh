#!/usr/bin/env bash
# Stacks over machines: addresses differ from process to process, so they are told by name, and
# equal stacks of all machines are one group. What they are called, one machine alone says of the
# same program.
. "$(dirname "$0")/lib.sh"
command -v gcc >/dev/null || skip "gcc is not installed"
server 0 -js -sd "$work/store"
cat >worker.c <<'END'
#include <dlfcn.h>
#include <stdio.h>
#define CALLED __attribute__((noinline, noclone))
#define AFTER() __asm__ volatile("" ::: "memory") /* no tail call */
int reached(int number);
CALLED int reached(int number) { __asm__ volatile("" : "+r"(number)); return number; }
CALLED static int left(int number) { int result = reached(number); AFTER(); return result; }
CALLED static int right(int number) { int result = reached(number) + 1; AFTER(); return result; }
int main(int argc, char **argv)
{
	int (*through)(int) = NULL;
	char kind;
	int count, done = 0;
	puts("did 0");
	fflush(stdout);
	while (scanf(" %c%d", &kind, &count) == 2) {
		if (kind == 'p' && !through)
			through = (int (*)(int))dlsym(dlopen(argv[1], RTLD_NOW), "through");
		for (int i = 0; i < count; i++)
			(kind == 'l' ? left : kind == 'r' ? right : through)(i);
		printf("did %d\n", done += count);
		fflush(stdout);
	}
	return argc - 2;
}
END
cat >plugin.c <<'END'
__attribute__((noinline, noclone)) int reached(int number) { __asm__ volatile("" : "+r"(number)); return number; }
int through(int number);
int through(int number) { int result = reached(number); __asm__ volatile("" ::: "memory"); return result; }
END
gcc -O2 -fPIE -pie -o worker worker.c -ldl
gcc -O2 -fPIC -shared -Wl,-Bsymbolic -o libplugin.so plugin.c

# Machines of another release cannot be asked, and it is said why.
old_machine() {
	exec 3<>"/dev/tcp/$subnet.1/4000"
	printf 'CONNECT {"verbose":false}\r\n' >&3
	while :; do
		printf 'PUB fay.1.hello 24\r\nFAYc\6\0\2\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\r\n' >&3
		sleep 0.1
	done
}
old_machine &
own $!
exits "machines of another release" 1 "$FAY" cluster status --cluster "$URL" --key asker.key \
	"${ASK_OPTIONS[@]}"
contains "which versions" "$work/err" "use version 6 of Fay's protocol, and this is version 7"
signal_owned KILL $!

for n in 1 2 3; do
	agent $n
	CALLS=$work/worker TARGET=$work/worker target $n "$work/libplugin.so"
done
# makes N KIND COUNT: the program of node N makes that many calls: l and r by a function each, p by
# a library that is loaded for it
makes() {
	sums[$1]=$((sums[$1] + $3))
	echo "$2$3" >&$((20 + $1))
	wait_for "out$1" "did ${sums[$1]}"
}
query='from e in cluster.Function("worker!reached") group e by e.Stack(4) into g
	select new { stack = g.Key, n = g.Count() }'
stacks() {
	jq -sc '[.[] | select(.type == "row" and .final) | .values] | sort_by(.n) |
		map([.n, .stack])' "$1"
}
# One machine alone.
"$FAY" trace --json -p "${targets[1]}" "$query" >one.json 2>one.err &
one=$!
own $one
wait_for one.err "fay: tracing"
makes 1 l 100
makes 1 r 200
kill -INT $one
ended $one || fail "a trace of one machine"
equal "frames, of one machine" "worker!reached worker!left worker!main" \
	"$(jq -sr '[.[] | select(.type == "row" and .final
		and .values.n == 100)][0].values.stack[0:3] | map(sub("\\+.*"; "")) | join(" ")' \
		one.json)"
# The same of three.
ask --await 3 --comm worker "$query"
for n in 1 2 3; do
	makes $n l 100
	makes $n r 200
done
until_rows 'map(.n) | sort' '[300,600]'
end_ask
fault "three machines, each with other addresses" 900 "$(total n)"
equal "stacks of three machines" "$(stacks one.json | jq -c 'map(.[0] *= 3)')" \
	"$(stacks trace.json)"

# A library that a process loads while it is traced: stacks go through it, and its functions have
# names.
ask --await 3 --comm worker \
	'from e in cluster.Function("*!reached") group e by e.Stack(3) into g
		select new { stack = g.Key, n = g.Count() }'
for n in 1 2; do
	count=$(grep -c "functions traced in process" "fayd$n.log")
	makes $n p 0
	wait_for "fayd$n.log" "functions traced in process" $((count + 1))
	makes $n p 50
done
makes 3 l 7
until_rows 'map(.n) | sort' '[7,100]'
end_ask
equal "through a library" "libplugin!reached libplugin!through worker!main" \
	"$(jq -sr '[.[] | select(.type == "row" and .final and .values.n == 100)][0].values.stack |
		map(sub("\\+.*"; "")) | join(" ")' trace.json)"

# Callers, rows of events, flame graphs, and a query whose asking side goes away.
ask --await 3 --comm worker 'from e in cluster.Function("worker!reached") group e by e.Caller into g
	select new { caller = g.Key, n = g.Count() }'
for n in 1 2 3; do makes $n l 10; done
until_rows 'map([(.caller | sub("\\+.*"; "")), .n])' '[["worker!left",30]]'
end_ask
ask --await 3 --comm worker \
	'cluster.Function("worker!reached").Select(e => new { number = e.Arg(0),
		stack = e.Stack(2) })'
for n in 1 2 3; do makes $n r 5; done
wait_for trace.json '"type":"row"' 15
end_ask
equal "events' stacks" \
	'[[0,"worker!right",3],[1,"worker!right",3],[2,"worker!right",3],[3,"worker!right",3],[4,"worker!right",3]]' \
	"$(jq -sc '[.[] | select(.type == "row") | .values | [.number, (.stack[1] |
		sub("\\+.*"; ""))]] | group_by(.) | map(.[0] + [length])' trace.json)"
rm -f trace.err
"$FAY" trace --cluster "$URL" --key asker.key "${ASK_OPTIONS[@]}" --await 3 --folded --comm worker \
	"$query" >folded 2>trace.err &
tracer=$!
own "$tracer"
wait_for trace.err "fay: tracing"
for n in 1 2 3; do makes $n l 20; done
end_ask
equal "folded" "main;left;reached 60" "$(sed -E 's/^.*;(main;)/\1/' folded)"
id=$("$FAY" trace --cluster "$URL" --key asker.key "${ASK_OPTIONS[@]}" --await 3 --detach \
	--every 100ms --comm worker "$query" 2>detach.err) || {
	cat detach.err >&2
	fail "detach"
}
for n in 1 2 3; do
	makes $n l 100
	makes $n r 200
done
"$FAY" attach "$id" --cluster "$URL" --key asker.key "${ASK_OPTIONS[@]}" --json --stop >trace.json \
	2>trace.err || { cat trace.err >&2; fail "attach"; }
equal "stacks of a detached query" "$(stacks one.json | jq -c 'map(.[0] *= 3)')" \
	"$(stacks trace.json)"

# What would be of one machine's addresses.
asks() {
	"$FAY" trace --cluster "$URL" --key asker.key "${ASK_OPTIONS[@]}" --await 3 --for 1s \
		--comm worker "$1"
}
exits "different stacks" 1 asks 'cluster.Function("worker!reached").DistinctCount(e => e.Stack(4))'
contains "why" "$work/err" "code addresses differ between machines"
exits "what replaces rows" 1 asks \
	'from e in cluster.Function("worker!reached") group e by e.Stack(4) into g
		select new { g.Key, t = g.TopK(2, e => e.Arg(0)) }'
contains "why" "$work/err" "stacks and callers with TopK"
