#!/usr/bin/env bash
# Where results go (--output), what becomes of them on a full disk, and what fay exits with beside a
# command that fails.
. "$(dirname "$0")/../lib.sh"
head -c 5000 /dev/zero >"$work/file"
reads='cluster.Function("libc!read").Where(r => r.Arg(2) == 100).Count()'
command=(dd if="$work/file" of=/dev/null bs=100 status=none)

echo "what was there before, and is longer than a result" >"$work/result"
exits "a table in a file" 0 "$FAY" trace -o "$work/result" "$reads" -- "${command[@]}"
equal "nothing on standard output" 0 "$(stat -c %s "$work/out")"
equal "the table" "Count 51" "$(xargs <"$work/result")"
contains "messages stay" "$work/err" "exit status 0"
exits "JSON in a file" 0 "$FAY" trace --json --output "$work/result" "$reads" -- "${command[@]}"
equal "the lines" "schema row end" "$(jq -r .type "$work/result" | xargs)"
(umask 027 && "$FAY" trace --csv -o "$work/new" "$reads" -- "${command[@]}" 2>"$work/err")
equal "CSV in a new file" "Count 51" "$(xargs <"$work/new")"
equal "its mode" 640 "$(stat -c %a "$work/new")"
exits "rows as they come" 0 "$FAY" trace --csv -o "$work/new" \
	'from r in cluster.Function("libc!read") where r.Arg(2) == 100
		select new { size = r.Arg(2) }' -- "${command[@]}"
equal "all rows" 52 "$(wc -l <"$work/new")"

# tables are for people: spans of time have units, and a query for rows says that there was none
spans='cluster.Return("libc!read").Where(r => r.ReturnValue == 100).Max(r => r.Duration)'
exits "a span" 0 "$FAY" trace -o "$work/new" "$spans" -- "${command[@]}"
matches() { grep -Eqx "$2" <(tail -1 "$work/new") || fail "$1: $(cat "$work/new")"; }
matches "with its unit" ' *[0-9.]+ [num]?s *'
exits "a difference of times" 0 "$FAY" trace -o "$work/new" "from r in cluster.Return(\"libc!read\")
	group r by r.pid into g select new { span = g.Max(r => r.time - (r.time - r.Duration)) }" \
	-- "${command[@]}"
matches "with its unit, too" ' *[0-9.]+ [num]?s *'
exits "a span, raw" 0 "$FAY" trace --raw -o "$work/new" "$spans" -- "${command[@]}"
matches "a number" ' *[0-9]+ *'
exits "a count" 0 "$FAY" trace -o "$work/new" \
	'cluster.Return("libc!read").Count(r => r.Duration > 0)' -- "${command[@]}"
matches "has none" ' *[0-9]+ *'
exits "no row" 0 "$FAY" trace -o "$work/new" \
	'cluster.Function("libc!read").Where(r => r.Arg(2) == 101)' -- "${command[@]}"
equal "said" "(no event matched)" "$(cat "$work/new")"

exits "a file that cannot be made" 2 "$FAY" trace -o "$work/none/result" "$reads" -- touch \
	"$work/was_run"
contains "which, and why" "$work/err" "cannot write '$work/none/result': No such file or directory"
[ ! -e "$work/was_run" ] || fail "the command was run all the same"
exits "a full disk" 4 "$FAY" trace -o /dev/full "$reads" -- "${command[@]}"
contains "which file" "$work/err" "cannot write the result to '/dev/full': No space left on device"
exits "a full disk, and rows as they come" 4 "$FAY" trace -o /dev/full \
	'cluster.Function("libc!read")' -- "${command[@]}"
exits "with --save" 2 "$FAY" trace -o "$work/result" --save "$work/x.fay" \
	'cluster.Function("libc!read")' -- true
contains "why not" "$work/err" "--save keeps events in a file of its own"
exits "with --detach" 2 "$FAY" trace -o "$work/result" --detach --cluster nats://127.0.0.1 \
	--comm x "$reads"
contains "why not" "$work/err" "fay attach"
exits "saved" 0 "$FAY" trace --save "$work/saved.fay" 'cluster.Function("libc!read")' \
	-- "${command[@]}"
size=$(stat -c %s "$work/saved.fay")
exits "over the file that is asked" 2 "$FAY" trace -o "$work/saved.fay" \
	"file(\"$work/saved.fay\").Count()"
contains "why not" "$work/err" "it is the saved trace that is being queried"
equal "it stays as it is" "$size" "$(stat -c %s "$work/saved.fay")"
# A program that becomes another: each event has the name that its thread has then, also in a saved
# trace.
cp "$(command -v dd)" "$work/second"
become=(bash -c
	'read -r x <"$0/file"; exec "$0/second" if="$0/file" of=/dev/null bs=100 status=none'
	"$work")
by_name='from r in cluster.Function("libc!read") group r by r.comm into g
	select new { g.Key, n = g.Count(r => r.Arg(2) == 100) }'
exits "followed to another program" 0 "$FAY" trace --json --follow "$by_name" -- "${become[@]}"
equal "reads by name" '{"Key":"bash","n":0} {"Key":"second","n":51}' \
	"$(jq -c 'select(.type == "row") | .values' "$work/out" | sort | xargs -d '\n')"
exits "followed and saved" 0 "$FAY" trace --save "$work/names.fay" \
	--follow 'cluster.Function("libc!read")' -- "${become[@]}"
exits "asked of the saved trace" 0 "$FAY" trace \
	--json "${by_name/cluster/file(\"$work/names.fay\")}"
equal "the same names" '{"Key":"bash","n":0} {"Key":"second","n":51}' \
	"$(jq -c 'select(.type == "row") | .values' "$work/out" | sort | xargs -d '\n')"

# What fay exits with is whether the trace went well; how the command ended is said beside it.
ended_with() { # WHAT MEMBER VALUE MESSAGE COMMAND...
	local what=$1 member=$2 value=$3 message=$4
	shift 4
	exits "$what" 0 "$FAY" trace --json "$reads" -- "$@"
	contains "$what, said" "$work/err" "$message"
	equal "$what, for programs" "$value" \
		"$(jq -s "map(select(.type == \"end\"))[0].$member" "$work/out")"
}
ended_with "a command that ends with 3" exit_status 3 "ended with exit status 3" sh -c 'exit 3'
ended_with "a command that ends well" exit_status 0 "ended with exit status 0" true
ended_with "a shell that cannot run it" exit_status 127 "ended with exit status 127" sh \
	-c "$work/none 2>/dev/null"
ended_with "a command that is killed" signal 15 "killed by SIGTERM" sh -c 'kill $$'
ended_with "a command that is killed in real time" signal 40 "killed by signal 40" sh \
	-c 'kill -40 $$'
exits "a command that is not there" 2 "$FAY" trace "$reads" -- "$work/none"
contains "which" "$work/err" "cannot run '$work/none': No such file or directory"
exits "a command that cannot be executed" 2 "$FAY" trace "$reads" -- "$work/file"
contains "which" "$work/err" "cannot run '$work/file': Permission denied"

# Ctrl-C while the output waits for a reader: what is being written is written to its end. A second
# one breaks it off. Either way the program is as it was.
start_target ready "$TARGET" 1 100
mkfifo "$work/pipe"
waits_for_reader() { # write(2) to standard output
	local number first
	read -r number first _ <"/proc/$tracer/syscall" && [ "$number $first" = "1 0x1" ]
} 2>/dev/null
into_full_pipe() {
	exec 5<>"$work/pipe"
	head -c 65500 /dev/zero >&5
	"$FAY" trace --json --every 10ms -p "$target" 'cluster.Function("threads_target!*").Count()' \
		>"$work/pipe" 2>"$work/trace.err" 5>&- &
	tracer=$!
	own "$tracer"
	await "the pipe is full" waits_for_reader
}
into_full_pipe
kill -INT "$tracer"
rest 3
exec 6<"$work/pipe" 5>&-
cat <&6 >"$work/out" # until the trace has ended
exec 6<&-
ended "$tracer" || { cat "$work/trace.err" >&2; fail "exit code $?"; }
equal "the end of what nobody read at first" '["interrupted",0]' \
	"$(tr -d '\0' <"$work/out" | jq -cs 'map(select(.type == "end"))[0] | [.reason, .events_lost]')"
into_full_pipe
kill -INT "$tracer"
rest 3
waits_for_reader || fail "a first Ctrl-C broke the writing off"
code=0
kill -INT "$tracer"
ended "$tracer" || code=$?
exec 5>&-
equal "by the second Ctrl-C" 4 "$code"
contains "why" "$work/trace.err" "cannot write the result: Interrupted system call"
equal "text after" "$before" "$(text_hash "$target")"
end_target

# Bars are of what the query orders by, also where one row tells no order; else of the first count.
bars() { # CLAUSE: what stands over them
	exits "bars: $1" 0 "$FAY" trace "from r in cluster.Return(\"libc!read\") group r by r.pid into g
		$1 select new { g.Key, n = g.Count(), failed = g.Count(x => x.ReturnValue < 0),
		bytes = g.Sum(x => x.ReturnValue) }" -- dd if=/dev/zero of=/dev/null bs=9 count=9 \
		status=none
	head -1 "$work/out" | awk '{ print NF, $NF }'
}
equal "by a sum" "5 bytes" "$(bars 'orderby g.Sum(x => x.ReturnValue) descending' | tail -1)"
equal "by what is not shown" "5 n" "$(bars 'orderby g.Max(x => x.ReturnValue)' | tail -1)"
equal "in no order" "5 n" "$(bars '' | tail -1)"
