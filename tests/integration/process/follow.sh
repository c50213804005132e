#!/usr/bin/env bash
# Forked children, programs that are executed, modules that are loaded later, processes of a name
# that start later, 100,000 threads (FAY_LONG=1: a million).
. "$(dirname "$0")/../lib.sh"
bin=$(dirname "$FAY")
program=$bin/follow_target
count='cluster.Function("follow_target!work").Count()'
# counts WHAT EXPECTED OPTION... -- COMMAND...: the final count of a command that is traced from its
# start
counts() {
	local what=$1 want=$2 code=0
	shift 2
	"$FAY" trace --json "$@" >"$work/trace.json" 2>"$work/trace.err" </dev/null || code=$?
	[ "$code" = 0 ] || { cat "$work/trace.err" >&2; fail "$what: fay exited with $code"; }
	equal "$what" "$want" \
		"$(jq -s '[.[] | select(.type == "row" and .final) | .values.Count] |
			add // 0' "$work/trace.json")"
	equal "$what: events lost" 0 \
		"$(jq -s 'map(select(.type == "end"))[0].events_lost' "$work/trace.json")"
}

counts "forked children are not counted without --follow" 10 "$count" -- "$program" calls 10 fork \
	3 100
equal "but said to be there" 3 \
	"$(jq -s 'map(select(.type == "end"))[0].child_threads_not_counted' "$work/trace.json")"
# More children than there are slots: each takes that of one that has ended, and the program's own
# threads find theirs.
counts "threads after 5,000 forked children" 40 "$count" -- "$program" fork 5000 1 threads 40
equal "each of the children said to be there" 5000 \
	"$(jq -s 'map(select(.type == "end"))[0].child_threads_not_counted' "$work/trace.json")"
counts "the returns of 2,500 children" 2500 \
	--follow 'cluster.Return("follow_target!work").Count()' -- "$program" fork 2500 1
[ "$(jq -s 'map(select(.type == "end"))[0].threads' "$work/trace.json")" -lt 2200 ] ||
	fail "children do not take the slots of those that have ended"
# Who has entered a sandbox that kills for any system call is counted all the same: an event makes
# none while slots are plenty.
counts "a child in a sandbox" 300 --follow "$count" -- "$program" sandbox 300
counts "its returns" 300 --follow 'cluster.Return("follow_target!work").Count()' -- "$program" \
	sandbox 300
counts "a child in a sandbox that is not counted" 5 "$count" -- "$program" calls 5 sandbox 300
counts "a thread in a sandbox" 307 "$count" -- "$program" calls 7 sandbox-thread 300
counts "forked children" 310 --follow "$count" -- "$program" calls 10 fork 3 100
counts "vfork and exec, posix_spawn, exec from a second thread" 4321 --follow "$count" \
	-- "$program" calls 1 vfork 20 spawn 300 thread-exec 4000
counts "a chain of a shell's children and its own exec" 1500 --follow "$count" -- sh \
	-c "'$program' calls 1000; exec env A=b '$program' calls 500"
counts "300 programs one after the other" 300 --follow "$count" -- sh \
	-c "for i in \$(seq 300); do '$program' calls 1; done"
exits "a program that becomes another" 0 "$FAY" trace 'cluster.Function("libc!write").Count()' \
	-- sh -c "echo; exec '$program' wait" < <(exec sleep 60)
contains "which is said" "$work/err" "is now 'follow_target', which is not traced"
# A program that is traced before its heap begins has room for one behind itself.
exits "all of a program" 0 "$FAY" trace --follow 'cluster.Return("bash!*").Max(r => r.Duration)' -- \
	setarch -R bash -c 'while read -r line; do echo "$line"; done </proc/self/maps'
contains "its heap" "$work/out" "[heap]"
# However short that one runs, whatever it is called, and of whichever thread it takes the place.
executes() { # WHAT SAID COMMAND...
	local what=$1 said=$2
	shift 2
	exits "$what" 0 "$FAY" trace --json 'cluster.Function("libc!malloc").Count()' -- "$@"
	contains "$what, said" "$work/err" "$said"
}
for i in 1 2 3; do executes "a program that becomes a short one" "'true', which" env true; done
executes "one of the same name" "'bash', which" bash -c 'exec bash -c "exit 3"'
executes "from a second thread" "'exe', which" "$program" thread-exec 4
executes "a program that executes none" "the traced program ended with exit status 0" sh \
	-c 'exec 8</dev/null; (true)'
equal "nor do its children" 0 "$(grep -c 'executed other programs' "$work/err" || true)"
executes "a child's" "children executed other programs, which were not traced" sh \
	-c 'env true; true'
equal "for programs" true \
	"$(jq -s 'map(select(.type == "end"))[0].child_programs_not_traced' "$work/out")"
exits "nothing to trace in all that was followed" 2 "$FAY" trace \
	--follow 'cluster.Function("no_such_module!x").Count()' -- sh -c "'$program' calls 1"
contains "its reason" "$work/err" "no module \`no_such_module\`"

# One that runs already.
mkfifo "$work/go"
bash -c 'echo waiting; read -r x; exec true' <"$work/go" >"$work/said" &
target=$!
own "$target"
exec 9>"$work/go"
wait_for "$work/said" waiting
trace -p "$target" 'cluster.Function("libc!malloc").Count()'
echo >&9
exec 9>&-
ended "$target"
ended "$tracer"
contains "that a process that runs already became another" "$work/trace.err" \
	"process $target replaced its program (execve)"

# A process that runs already, with its child; both go on rightly when the trace ends before them.
mkfifo "$work/in"
rm -f "$work/target.out"
sh -c "'$program' wait calls 7 wait calls 70; '$program' calls 700; exec '$program' wait calls 7000" \
	<"$work/in" >"$work/target.out" &
shell=$!
own "$shell"
exec 9>"$work/in"
wait_for "$work/target.out" waiting
trace --follow -p "$shell" "$count"
echo >&9
wait_for "$work/target.out" waiting 2
echo >&9
wait_for "$work/target.out" waiting 3
end_trace
# Its first child was there before fay, running: it was never executed under fay's eyes, so it is
# not traced.
equal "what a followed shell executes" 700 "$(final_sum Count)"
echo >&9
code=0
ended "$shell" || code=$?
equal "the followed program's exit code" 0 "$code"
exec 9>&-

# dlopen: before, after, and again after dlclose.
cd "$work"
rm "$work/target.out"
"$program" wait calls 5 load "$bin/follow_plugin.so" plugin 100 unload load \
	"$bin/follow_plugin.so" plugin 1000 wait <"$work/in" >"$work/target.out" &
target=$!
own "$target"
exec 9>"$work/in"
wait_for "$work/target.out" waiting
trace -p "$target" 'cluster.Function("follow_*!*work").Count()'
echo >&9
wait_for "$work/target.out" loaded
wait_for "$work/trace.err" "1 function more"
echo >&9
wait_for "$work/target.out" unloaded
rest 6 # a look for modules falls between
echo >&9
wait_for "$work/trace.err" "1 function more" 2
echo >&9
wait_for "$work/target.out" waiting 2
end_trace
equal "calls of a module that was loaded twice, later" 1105 "$(final_sum Count)"
echo >&9
exec 9>&-
ended "$target"

# A process that has nothing yet of what is asked for; a command likewise, which ends without having
# loaded it.
rm "$work/target.out"
"$program" wait load "$bin/follow_plugin.so" plugin 250 wait <"$work/in" >"$work/target.out" &
target=$!
own "$target"
exec 9>"$work/in"
wait_for "$work/target.out" waiting
plugin='cluster.Function("follow_plugin!*work").Count()'
exits "a module that is not loaded, without --wait" 2 "$FAY" trace -p "$target" "$plugin"
contains "what would help" "$work/err" "--wait traces it then"
trace --wait -p "$target" "$plugin"
contains "nothing is traced yet" "$work/trace.err" "tracing nothing yet, waiting for modules"
contains "and why, at once" "$work/trace.err" "no module \`follow_plugin\` in process $target"
echo >&9
wait_for "$work/trace.err" "1 function more"
echo >&9
wait_for "$work/target.out" waiting 2
end_trace
equal "calls of a module that was waited for" 250 "$(final_sum Count)"
echo >&9
exec 9>&-
ended "$target"
exits "a command that never loads what is waited for" 2 "$FAY" trace --wait "$plugin" \
	-- "$program" calls 3

# --comm NAME --wait
trace --comm follow_target --wait "$count"
for calls in 30 400; do
	rm "$work/target.out"
	"$program" wait calls "$calls" wait <"$work/in" >"$work/target.out" &
	target=$!
	own "$target"
	exec 9>"$work/in"
	await "process $target is traced" grep -qw "in process $target" "$work/trace.err"
	echo >&9
	wait_for "$work/target.out" waiting 2
	echo >&9
	exec 9>&-
	ended "$target"
done
end_trace
equal "processes of a name that started later" 430 "$(final_sum Count)"
exits "--wait without a process" 2 "$FAY" trace --wait "$count"

# --comm NAME: children that are forked, before and after it is attached to, however they end
forks() { # WHAT EXPECTED OPTION...: 40 children of 25 calls
	local what=$1 want=$2
	rm -f "$work/target.out"
	"$program" wait calls 10 fork 40 25 wait <"$work/in" >"$work/target.out" &
	target=$!
	own "$target"
	exec 9>"$work/in"
	wait_for "$work/target.out" waiting
	trace "${@:3}" "$count"
	echo >&9
	wait_for "$work/target.out" waiting 2
	end_trace
	echo >&9
	exec 9>&-
	ended "$target"
	equal "$what" "$want" "$(final_sum Count)"
	equal "$what: events lost" 0 "$(jq -s 'map(select(.type == "end"))[0].events_lost' \
		"$work/trace.json")"
}
forks "children of a process of a name" 1010 --comm follow_target
forks "children, as ever they are born, with --wait" 1010 --comm follow_target --wait
forks "no children with --no-follow" 10 --comm follow_target --no-follow
"$program" wait calls 5 orphan 200 <"$work/in" >"$work/target.out" &
target=$!
own "$target"
exec 9>"$work/in"
trace --comm follow_target "$count"
echo >&9
exec 9>&-
ended "$target"
ended "$tracer" || fail "the trace of a process whose children outlive it"
equal "children that outlive the process" 405 "$(final_sum Count)"
contains "when the trace ends" "$work/trace.err" "ended"
exits "both ways" 2 "$FAY" trace --follow --no-follow --comm follow_target "$count"

# Slots of threads that have ended are used again.
many=100000
[ -z "${FAY_LONG:-}" ] || many=1000000
counts "$many threads" $many "$count" -- "$program" threads $many
threads=$(jq -s 'map(select(.type == "end"))[0].threads' "$work/trace.json")
[ "$threads" -le 512 ] || fail "$many threads, 32 at a time, took $threads slots"
echo "ok: they took $threads slots"
