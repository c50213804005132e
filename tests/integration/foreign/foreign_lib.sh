# Shared by foreign_*.sh, behind lib.sh: programs of other compilers and run-time systems, with the
# ends of all calls of the program and of libc traced, durations too. The programs: foreign/.
# foreign_FAMILY.sh [GLOB]: only those of such names.
only=${1:-*}
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
STORM=${STORM:-$(dirname "$FAY")/storm}
cycles=${FAY_STORM_CYCLES:-${FAY_LONG:+50}}
cycles=${cycles:-2}
tried=0 left_out=
# lacks WHAT PACKAGE: what is not tried, and what would have to be installed
lacks() { left_out+=" $2"; echo "SKIPPED: $1: $2 is not installed"; }
# has WHAT COMMAND PACKAGE
has() { command -v "$2" >/dev/null || { lacks "$1" "$3"; return 1; }; }
# long_or ALL SOME: ALL of the scenarios where there is time (FAY_LONG), else SOME: of builds that differ
# from others little
long_or() { [ -n "${FAY_LONG:-}" ] && echo "$1" || echo "$2"; }
# compiled WHAT COMMAND...: in $work
compiled() {
	local what=$1
	shift
	(cd "$work" && "$@") >"$work/build.out" 2>&1 || {
		cat "$work/build.out" >&2
		fail "$what: $*"
	}
}
# image NAME FILE MODULE [TRACED]: $work/NAME.img, which counts what happens to the functions TRACED
# and takes the durations of all calls of MODULE and of libc, where FILE is not static
# `untimed`: only that they end, and their callers
image() {
	local file=$2
	set -- "$1" "${@:3}"
	cat >"$work/image.c" <<-IMAGE
		#include <fay/probe.h>
		FAY_COUNT(entries);
		FAY_COUNT(returns);
		FAY_COUNT(exceptions);
		FAY_COUNT(ends);
		FAY_HISTOGRAM(took);
		FAY_MAX(began);
		static inline void end(const struct fay_event *event)
		{
			fay_hist(&took, event->duration);
			fay_max(&began, event->arg[0] ^ event->caller);
		}
		FAY_RETURN("$2!*") { fay_count(&ends); end(event); }
		FAY_EXCEPTION("$2!*") { fay_count(&ends); end(event); }
	IMAGE
	! ldd "$file" 2>/dev/null | grep -q 'libc\.so' || [ "$2" = "*" ] || cat >>"$work/image.c" \
		<<-IMAGE
		FAY_RETURN("libc!*") { fay_count(&ends); end(event); }
		FAY_EXCEPTION("libc!*") { fay_count(&ends); end(event); }
	IMAGE
	[ -z "${3:-}" ] || cat >>"$work/image.c" <<-IMAGE
		FAY_ENTRY("$2!$3") { fay_count(&entries); }
		FAY_RETURN("$2!$3") { fay_count(&returns); end(event); }
		FAY_EXCEPTION("$2!$3") { fay_count(&exceptions); end(event); }
	IMAGE
	[ -z "${untimed:-}" ] ||
		sed -i '/EXCEPTION/d; s/event->duration/1/; s/event->arg\[0\]/1/' "$work/image.c"
	"$FAY" cc "$work/image.c" -o "$work/$1.img" || fail "the image $1 does not compile"
}
# Of a trace in the file $1: the final value of $2; what the end says of $2
value() {
	grep '^{"type"' "$1" | jq -s --arg c "$2" \
		'[.[] | select(.type == "row" and .final) | .values[$c] // empty | numbers] |
			add // 0'
}
ending() { grep '^{"type"' "$1" | jq -s "map(select(.type == \"end\"))[0].$2"; }
counts_of() { echo "$(value "$1" entries) $(value "$1" returns) $(value "$1" exceptions)"; }
# within WHAT GOT ALL LOST: some of those lost are of these
within() {
	[ "$2" -le "$3" ] && [ $(($2 + $4)) -ge "$3" ] || fail "$1: $2 of $3, $4 lost"
	echo "ok: $1: $2 of $3, $4 lost"
}
# compare WHAT TRACE OUTPUT SLACK: the trace's counts with the program's last line. SLACK calls
# that were left may have no event: what longjmp leaves is noticed when its place is used again.
# SLACK `reentrant`: handlers interrupt probes, which is counted as lost. `untraced_handlers`: so
# they do, but what they call is none of TRACED. `entries`: see there.
compare() {
	local e r x seen lost
	[ "$(value "$2" ends)" -gt 0 ] || fail "$1: no call was seen to end"
	[ -n "$traced" ] && read -r _ e r x < <(grep '^tally ' "$3") || return 0
	if [ "$4" = reentrant ]; then
		lost=$(ending "$2" events_lost)
		within "$1: entries" "$(value "$2" entries)" "$e" "$lost"
		within "$1: returns" "$(value "$2" returns)" "$r" "$lost"
		equal "$1: lost for no other reason" "$lost" "$(ending "$2" lost_reentrant)"
		return 0
	elif [ "$4" = untraced_handlers ]; then
		equal "$1: entries, returns, exceptions" "$e $r $x" "$(counts_of "$2")"
		equal "$1: lost for no other reason" "$(ending "$2" events_lost)" \
			"$(ending "$2" lost_reentrant)"
		return 0
	elif [ "$4" = entries ]; then
		equal "$1: entries" "$e" "$(value "$2" entries)"
		return 0
	elif [ "$4" = 0 ]; then
		equal "$1: entries, returns, exceptions" "$e $r $x" "$(counts_of "$2")"
	else
		equal "$1: entries, returns" "$e $r" "$(value "$2" entries) $(value "$2" returns)"
		seen=$(value "$2" exceptions)
		[ "$seen" -le "$x" ] && [ "$seen" -ge $((x - $4)) ] ||
			fail "$1: $seen exceptions of $x"
		echo "ok: $1: $seen exceptions of $x"
	fi
	equal "$1: lost" 0 "$(ending "$2" events_lost)"
}
# What the program says, whatever the number of its rounds
said() { { grep -v '^tally \|^{"type"' "$1" || true; } | tr '\n' ' '; }
begun() { # IMAGE...: of $target, each in the background; NAME.json
	local image
	tracers=()
	for image; do
		rm -f "$work/$image.err"
		"$FAY" trace --json -p "$target" --probe "$work/$image.img" >"$work/$image.json" \
			2>"$work/$image.err" &
		tracers+=($!)
		own $!
		wait_for "$work/$image.err" "fay: tracing"
	done
}
program_ended() { # WHAT
	local code=0 tracer
	exec 9>&-
	ended "$target" || code=$?
	[ "$code" = 0 ] || {
		cat "$work/target.out" >&2
		fail "$1: the program's exit code is $code"
	}
	for tracer in "${tracers[@]}"; do
		ended "$tracer" || fail "$1: the trace's exit code is $?"
	done
}
# program WHAT NAME TRACED SLACK COMMAND...: its functions are those of the module NAME. Untraced;
# traced from its start; from when it waits, by two traces; while traces come and go all the time.
program() {
	local what=$1 slack=$4 storms
	[[ $what == $only ]] || return 0
	tried=$((tried + 1))
	traced=$3
	image one "$5" "$2" "$3"
	shift 4
	echo | "$@" >"$work/untraced" 2>&1 || { cat "$work/untraced" >&2; fail "$what, untraced"; }
	echo | "$FAY" trace --json --probe "$work/one.img" -- "$@" >"$work/start" \
		2>"$work/start.err" ||
		{ cat "$work/start" "$work/start.err" >&2; fail "$what, from its start"; }
	equal "$what, from its start: output" "$(said "$work/untraced")" "$(said "$work/start")"
	compare "$what, from its start" "$work/start" "$work/start" "$slack"

	cp "$work/one.img" "$work/two.img"
	start_target ready "$@"
	begun one ${traced:+two} # two of all that a run-time system has may find no room
	echo >&9
	program_ended "$what, attached"
	equal "$what, attached: output" "$(said "$work/untraced")" "$(said "$work/target.out")"
	compare "$what, attached, one" "$work/one.json" "$work/target.out" "$slack"
	[ -z "$traced" ] || compare "$what, attached, two" "$work/two.json" "$work/target.out" \
		"$slack"

	rm -f "$work/stop"
	start_target ready "$@" loop "$work/stop"
	tracers=()
	[ -z "$traced" ] || begun one
	echo >&9
	storms=0
	"$STORM" "$target" "$cycles" "$work/two.img" >"$work/storm.out" 2>&1 || storms=$?
	# Those others may load modules meanwhile, which is more text than before.
	has_lines "$work/storm.out" ": $cycles attached" 1 && [ "$storms" = 0 -o -z "$traced" ] ||
		{ cat "$work/storm.out" >&2; fail "$what: the storm, or the program in it"; }
	echo >&9 # either of which ends the loop
	touch "$work/stop"
	program_ended "$what, in a storm"
	equal "$what, in a storm: output" "$(said "$work/untraced")" "$(said "$work/target.out")"
	[ -z "$traced" ] || compare "$what, in a storm" "$work/one.json" "$work/target.out" "$slack"
}
all_done() { [ "$tried" -gt 0 ] || skip "not installed:$left_out"; }
