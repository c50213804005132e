# What a program's definition (programs/*.sh) is made of, for scripts/soak. Sourced behind lib.sh of
# the integration tests.
#
#   program NAME LANGUAGE PACKAGE...   declares; the function NAME_ says what it does, as below
#   subject FILE [MODULE...]           the executable, and what modules are traced: the program and
#                                      libc unless said
#   loop COMMAND...                    prints the same line again and again until the file $stop is
#                                      there, at least once
#   filter FILE COMMAND...             reads its standard input, which is FILE again and again
#   oneshot COMMAND...                 ends by itself, after some tenths of a second at least
#   server READY CHECK COMMAND...      runs until SIGTERM; CHECK, a command, fails at a wrong answer
#
# Each of the last four runs the command untraced, then from its start with all returns traced, then
# under cycles of attaching and detaching. Standard output and exit code must be the same every
# time.
cycles=${FAY_SOAK_CYCLES:-50}
STORM=${STORM:-$(dirname "$FAY")/storm}
SURVEY=${SURVEY:-$(dirname "$FAY")/flow_survey}
export LC_ALL=C.UTF-8 TZ=UTC HOME=$work
stop=$work/stop
export stop work
cd "$work"
done_cycles=0
# In $made: files whose content is output, too; in $hide: lines that are not the same each time.
made= hide=

# note KEY VALUE: for the program's row
note() { echo "$1 $2" >>"${row:-/dev/stdout}"; }
shown() { [ -z "$hide" ] || sed -i -E "/$hide/d" "$1"; }
and_made() { [ -z "$made" ] || sha256sum $made >>"$1"; }
without_made() { [ -z "$made" ] || rm -f $made; }
lines() { # COUNT: a file of so many lines
	seq "${1:-20000}" | awk '{ print $1 * 7919 % 1009, "word" $1 % 97, $1 }' >"$work/lines"
	echo "$work/lines"
}

# With FAY_SOAK_TRY a definition is only tried: the command runs twice, untraced, and does the same.
twice() { # INPUT COMMAND...
	local input=$1 one=0 two=0
	shift
	time "$@" <"$input" >"$work/want" 2>"$work/want.err" || one=$?
	and_made "$work/want"
	without_made
	"$@" <"$input" >"$work/got" 2>"$work/got.err" || two=$?
	and_made "$work/got"
	shown "$work/want"
	shown "$work/got"
	echo "exit status $one, $(wc -c <"$work/want") bytes"
	tail -n 1 "$work/want" | cut -c1-60 | tr -cd '[:print:]\n'
	tail -n 2 "$work/want.err"
	[ "$one" = "$two" ] && [ -s "$work/want" ] && cmp "$work/want" "$work/got" ||
		fail "two runs differ, or there is no output"
}

subject() {
	exe=$(readlink -f "$1")
	shift
	modules=$*
	[ -n "$modules" ] || modules="$(basename "$exe") libc"
	[ -z "${FAY_SOAK_TRY:-}" ] || return 0
	{
		echo '#include <fay/probe.h>'
		echo 'FAY_COUNT(calls);'
		echo 'FAY_HISTOGRAM(took);'
		for module in $modules; do
			echo "FAY_RETURN(\"$module!*\")"
			echo '{ fay_count(&calls); fay_hist(&took, (int64_t)event->duration); }'
		done
	} >"$work/probe.c"
	"$FAY" cc "$work/probe.c" -o "$work/probe.img"
}

# module_file PID MODULE: what the process has mapped as that
module_file() {
	awk -v m="$2" '$2 ~ /x/ {
		f = $6
		sub(/.*\//, "", f)
		if (!found && (f == m || index(f, m ".") == 1)) { print $6; found = 1 }
	} END { exit !found }' "/proc/$1/maps" 2>/dev/null
}
sum() { awk '{ n += $1 } END { print n + 0 }'; }
survey() { # PID: of the traced modules, libc left out
	local module files=
	[ ! -e "$work/surveyed" ] || return 0
	for module in $modules; do
		[ "$module" = libc ] || files="$files $(module_file "$1" "$module" || true)"
	done
	touch "$work/surveyed"
	"$SURVEY" ${files:-$exe} >"$work/survey.out" || return 0
	note functions "$(sed -n 's/.*: \([0-9]*\) functions, .*/\1/p' "$work/survey.out" | sum)"
	note watchable "$(sed -n 's/.* of some; \([0-9]*\) (.*/\1/p' "$work/survey.out" | sum)"
}

# is_up PID: it executes the program and has loaded what is traced
is_up() {
	local module
	[ "$(readlink "/proc/$1/exe")" = "$exe" ] || return 1
	for module in $modules; do module_file "$1" "$module" >/dev/null || return 1; done
}
gone() {
	local state
	{ read -r _ _ state _ <"/proc/$1/stat"; } 2>/dev/null || return 0
	[ "$state" = Z ]
}
up_or_gone() { is_up "$1" || gone "$1"; }
loaded() { tries up_or_gone "$1" || fail "it does not load what is to be traced"; }

# result FILE: of fay trace of a run from the start; how the program ended, into $traced_end
result() {
	note calls "$(jq -Rr 'fromjson? | select(.type == "row" and .final and .result == "calls") |
		.values.calls' "$1")"
	traced_end=$(jq -Rr 'fromjson? | select(.type == "end") |
		.exit_status // (if .signal then "signal \(.signal)" else .reason end)' "$1")
}
from_start() { # OUTPUT INPUT COMMAND...
	local code=0 output=$1 input=$2
	shift 2
	timeout 900 "$FAY" trace --json --probe "$work/probe.img" -o "$work/trace.json" -- "$@" \
		<"$input" >"$output" 2>"$work/trace.err" || code=$?
	[ "$code" = 0 ] || {
		tail -n 5 "$work/trace.err" >&2
		fail "from the start: fay trace exits with $code: $(grep -m1 '^fay: ' \
			"$work/trace.err")"
	}
	result "$work/trace.json"
}
same_output() { # WHEN WANT GOT
	shown "$2"
	shown "$3"
	cmp -s "$2" "$3" && return 0
	(diff "$2" "$3" 2>&1 || true) | sed -n 1,5p >&2
	fail "$1: the output differs: $(cmp "$2" "$3" 2>&1 | sed 's,.*differ: ,,')"
}
end_is() { # WHEN WANT GOT
	[ "$2" = "$3" ] || fail "$1: exit status $3, not $2"
}
stormed() { # OPTIONS PID CYCLES: adds to $done_cycles
	local code=0
	timeout 900 "$STORM" $1 "$2" "$3" "$work/probe.img" >"$work/storm.out" 2>&1 || code=$?
	tail -n 1 "$work/storm.out"
	[ "$code" = 0 ] ||
		fail "$done_cycles cycles and more: $(tail -n 1 "$work/storm.out" | cut -c1-200)"
	code=$(sed -n 's/^\([0-9]*\) cycles.*/\1/p' "$work/storm.out")
	done_cycles=$((done_cycles + code))
}

# under_storm PID: traces come and go while it works; then it is told to stop
under_storm() {
	own "$1"
	loaded "$1"
	rest 5
	survey "$1"
	stormed "" "$1" "$cycles"
	touch "$stop"
}
loop() {
	local untraced=0 code=0 pid
	touch "$stop"
	[ -z "${FAY_SOAK_TRY:-}" ] || { twice /dev/null "$@"; return; }
	"$@" </dev/null >"$work/want" 2>"$work/want.err" || untraced=$?
	[ -s "$work/want" ] || {
		tail -n 5 "$work/want.err" >&2
		fail "untraced: no output; exit status $untraced"
	}
	from_start "$work/got" /dev/null "$@"
	same_output "from the start" "$work/want" "$work/got"
	end_is "from the start" "$untraced" "$traced_end"
	rm -f "$stop"
	"$@" </dev/null >"$work/got" 2>"$work/got.err" &
	pid=$!
	under_storm "$pid"
	ended "$pid" || code=$?
	end_is "after the cycles" "$untraced" "$code"
	sort -u "$work/want" >"$work/want.lines"
	sort -u "$work/got" >"$work/got.lines"
	same_output "after the cycles" "$work/want.lines" "$work/got.lines"
	note cycles "$done_cycles"
}

# repeat N FILE
repeat() { for _ in $(seq "$1"); do cat "$2" 2>/dev/null || true; done; }
feed() { # FILE: until $stop is there; how often, into $work/count
	local n=0
	trap '' PIPE
	while [ ! -e "$stop" ] && cat "$1" 2>/dev/null; do
		n=$((n + 1))
		sleep 0.02
	done
	echo $n >"$work/count"
}
filter() {
	local untraced=0 code=0 pid block=$1 feeder
	shift
	[ -z "${FAY_SOAK_TRY:-}" ] || { twice "$block" "$@"; return; }
	"$@" <"$block" >"$work/want" 2>"$work/want.err" || untraced=$?
	from_start "$work/got" "$block" "$@"
	same_output "from the start" "$work/want" "$work/got"
	end_is "from the start" "$untraced" "$traced_end"
	mkfifo "$work/input"
	rm -f "$stop"
	feed "$block" >"$work/input" &
	feeder=$!
	own "$feeder"
	"$@" <"$work/input" 2>"$work/got.err" >"$work/got" &
	pid=$!
	under_storm "$pid"
	ended "$feeder" || true
	ended "$pid" || code=$?
	untraced=0
	repeat "$(cat "$work/count")" "$block" | ("$@" 2>"$work/want.err" >"$work/want") ||
		untraced=$?
	end_is "after the cycles" "$untraced" "$code"
	same_output "after the cycles" "$work/want" "$work/got"
	note cycles "$done_cycles"
}

# Output of some size is read slowly while there are cycles to come, so that the program has work
# all the time; into $output.
read_slowly() { # BYTES
	while [ ! -e "$stop" ]; do
		dd bs="$1" count=1 status=none
		sleep 0.05
	done
	cat
}
slowly() {
	local size
	size=$(wc -c <"$work/want")
	output=$work/got reader=
	rm -f "$stop" "$work/slow"
	[ "$size" -gt 100000 ] && [ -z "$made" ] || return 0
	output=$work/slow
	mkfifo "$output"
	read_slowly $(((size - 65536) / 500 + 1)) <"$output" >"$work/got" &
	reader=$!
	own "$reader"
}
oneshot() {
	local untraced=0 code pid runs=0
	[ -z "${FAY_SOAK_TRY:-}" ] || { twice /dev/null "$@"; return; }
	"$@" </dev/null >"$work/want" 2>"$work/want.err" || untraced=$?
	and_made "$work/want"
	without_made
	from_start "$work/got" /dev/null "$@"
	and_made "$work/got"
	same_output "from the start" "$work/want" "$work/got"
	end_is "from the start" "$untraced" "$traced_end"
	while [ "$done_cycles" -lt "$cycles" ] && [ "$runs" -lt "${FAY_SOAK_RUNS:-40}" ]; do
		runs=$((runs + 1))
		code=0
		without_made
		slowly
		# Less of the processor for it, so that it lives for some cycles
		nice -n 10 "$@" </dev/null >"$output" 2>"$work/got.err" &
		pid=$!
		own "$pid"
		loaded "$pid"
		survey "$pid"
		stormed -e "$pid" $((cycles - done_cycles))
		touch "$stop"
		ended "$pid" || code=$?
		[ -z "$reader" ] || ended "$reader" || true
		end_is "run $runs" "$untraced" "$code"
		and_made "$work/got"
		same_output "run $runs" "$work/want" "$work/got"
	done
	note cycles "$done_cycles"
}

# serve COMMAND...: starts it and waits for $ready; pid in $server
serve() {
	"$@" </dev/null >"$work/server.out" 2>"$work/server.err" &
	server=$!
	own "$server"
	listening "$server" eval "$ready" && return 0
	tail -n 3 "$work/server.out" "$work/server.err" >&2 || true
	fail "the server does not answer"
}
checks() { # WHEN
	"$check" >"$work/check.out" 2>&1 && return 0
	tail -n 3 "$work/check.out" >&2
	fail "$1: a wrong answer: $(tail -n 1 "$work/check.out" | cut -c1-80)"
}
check_on() {
	while [ ! -e "$stop" ]; do
		"$check" >"$work/check.out" 2>&1 || { touch "$work/wrong"; break; }
		echo >>"$work/rounds"
	done
}
server() {
	local untraced=0 code=0 load traced
	ready=$1 check=$2
	shift 2
	serve "$@"
	checks untraced
	[ -z "${FAY_SOAK_TRY:-}" ] || return 0
	kill -TERM "$server"
	ended "$server" || untraced=$?
	[ "$untraced" -lt 128 ] || untraced="signal $((untraced - 128))"
	# From the start
	serve "$FAY" trace --json --probe "$work/probe.img" -o "$work/trace.json" -- "$@"
	traced=$(pgrep -P "$server" | head -1)
	own "$traced"
	checks "from the start"
	signal_owned TERM "$traced"
	ended "$server" || code=$?
	[ "$code" = 0 ] || {
		tail -n 5 "$work/server.err" >&2
		fail "from the start: fay trace exits with $code"
	}
	result "$work/trace.json"
	end_is "from the start" "$untraced" "$traced_end"
	# Cycles
	serve "$@"
	rm -f "$stop"
	: >"$work/rounds"
	check_on &
	load=$!
	own "$load"
	survey "$server"
	stormed "" "$server" "$cycles"
	tries eval '[ -s "$work/rounds" ] || [ -e "$work/wrong" ]' || true
	touch "$stop"
	ended "$load" || true
	[ ! -e "$work/wrong" ] ||
		fail "in the cycles: a wrong answer: $(tail -n 1 "$work/check.out" | cut -c1-80)"
	code=0
	kill -TERM "$server"
	ended "$server" || code=$?
	[ "$code" -lt 128 ] || code="signal $((code - 128))"
	end_is "after the cycles" "$untraced" "$code"
	note cycles "$done_cycles"
}
