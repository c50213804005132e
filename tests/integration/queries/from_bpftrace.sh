#!/usr/bin/env bash
# The commands of docs/from-bpftrace.md: all are planned; those that this machine can run are run on
# one load, and what they answer is compared with it.
host=1
. "$(dirname "$0")/../lib.sh"
page=$(dirname "$0")/../../../docs/from-bpftrace.md
needs_bpf
PATH=$(dirname "$FAY"):$PATH

# Each tool's name and command, a tab between. Commands that trace the machine for 10 s trace the
# load instead.
awk '/^### / { name = substr($0, 5); sub(/:.*/, "", name) } /^```sh$/ { inside = 1; next } /^```$/ {
	inside = 0 } inside { print name "\t" $0 }' \
	"$page" >"$work/commands"
[ "$(cut -f1 "$work/commands" | sort -u | wc -l)" -ge 20 ] ||
	fail "fewer than twenty tools in $page"
grep -c '^```bpftrace$' "$page" >"$work/originals"
equal "tools with the original beside them" "$(cut -f1 "$work/commands" | sort -u | wc -l)" \
	"$(cat "$work/originals")"

head -c 5000 /dev/zero >"$work/file"
cat >"$work/load" <<END
sync -d $work/file
kill -0 \$\$
sleep 0.02
cat $work/file /nonexistent >/dev/null 2>&1
i=0; while [ \$i -lt 100000 ]; do i=\$((i + 1)); done
true
END

# run NAME COMMAND: its final rows into $work/rows
run() {
	local name=$1 command=$2 code=0
	eval "$(sed 's/^fay trace\( --for 10s\)\?/fay explain/' <<<"$command")" >"$work/plan" 2>&1 \
		</dev/null || code=$?
	[ $code = 0 ] || { cat "$work/plan" >&2; fail "$name has no plan: exit code $code"; }
	command=${command/#fay trace/fay trace --json}
	case $command in *"--for 10s "*) \
		command="${command/--for 10s /--follow } -- sh $work/load" ;; esac
	eval "$command" >"$work/out" 2>"$work/err" </dev/null || code=$?
	: >"$work/rows"
	if [ $code = 1 ] && grep -q 'functions of the kernel cannot be traced here' \
		"$work/err"; then
		echo "not run: $name: $(grep -o 'cannot be traced here.*' "$work/err" | head -1)"
		return 1
	fi
	[ $code = 0 ] || { cat "$work/err" >&2; fail "$name: exit code $code"; }
	take_rows
	echo "ok: $name: $(wc -l <"$work/rows") rows"
}
take_rows() {
	grep '^{' "$work/out" | jq -c 'select(.type == "row" and .final != false).values' \
		>"$work/rows" || true
}
# rows WHAT EXPECTED JQ-EXPRESSION, of the list of all rows
rows() { equal "$1" "$2" "$(jq -sc "$3" "$work/rows")"; }

while IFS=$'\t' read -r name command; do
	run "$name" "$command" || continue
	case $name in
	syscount) rows "ten, the most frequent first" '[10,true]' \
		'[length, map(.n) == (map(.n) | sort | reverse)]' ;;
	opensnoop) case $command in
		*Syscall*) rows "an open that failed" true \
			'any(.Failed and .comm == "cat" and .fd == -2)' ;;
		*) rows "the path" true 'any(.path == "/etc/hostname")' ;;
		esac ;;
	statsnoop) rows "cat looks at its file" true 'any(.comm == "cat" and .error == 0)' ;;
	syncsnoop | "fsync latency") rows "what sync asks for" true \
		'any((.comm // .Key) == "sync")' ;;
	killsnoop) rows "one signal, 0, and its result" '[[0,0]]' 'map([.signal, .result])' ;;
	naptime) rows "one sleep, of 20 ms at least" '[["sleep",true]]' \
		'map([.comm, .slept >= 20000000])' ;;
	execsnoop) rows "what was executed, in order" '["sync","sleep","cat"]' 'map(.program)' ;;
	pidpersec) rows "children in all windows" 3 'group_by(.window) | map(last.Count) | add' ;;
	cpuwalk | profile) rows "samples" true 'map(.samples) | add > 0' ;;
	biolatency) # whoever is interrupted completes a request: the whole machine is traced
		rm "$work/err"
		"$FAY" trace --json "$(sed "s/^[^']*'//; s/'$//" <<<"$command")" >"$work/out" \
			2>"$work/err" &
		tracer=$!
		own "$tracer"
		wait_for "$work/err" "fay: tracing"
		dd if=/dev/zero of="$work/written" bs=64k count=8 conv=fsync status=none
		sleep 0.1
		kill -INT "$tracer"
		ended "$tracer"
		take_rows
		rows "each request has its latency" true \
			'all(.requests == (.latency | map(.count) | add))' ;;
	runqlat | off-processor) rows "switches" true 'map(.n // .runs) | add > 0' ;;
	threadsnoop) rows "one thread made" '[1]' 'map(.n)' ;;
	funccount) rows "functions, the most called first" true \
		'length > 1 and (map(.n) == (map(.n) | sort | reverse))' ;;
	funclatency) rows "what is read, and the end of the file" 2 \
		'map(.Histogram[].count) | add' ;;
	funcslower) rows "one sleep, which succeeded" '[["sleep",true,0]]' \
		'map([.comm, .took >= 20000000, .result])' ;;
	argdist) rows "sizes" true 'map(.Histogram[].count) | add > 1' ;;
	stackcount) rows "malloc, called by something" true \
		'length > 1 and all(.Key[0] == "libc!malloc" and (.Key | length) > 1)' ;;
	gethostlatency) rows "a lookup that succeeded" true 'any(.result == 0 and .took > 0)' ;;
	esac
done <"$work/commands"
