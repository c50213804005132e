#!/usr/bin/env bash
# Traces of one program that begin and end while others are planned: no jump of one is taken for the
# program's own code. What is refused beside them is refused because they are there, and all go on.
# Who is planned has his turn (loader/session/turn.c), which goes with a fay that is killed.
. "$(dirname "$0")/../lib.sh"
sleep 1000 &
target=$!
own $target
before=$(text_hash $target)
query() { echo "cluster.Return(\"libc!$1\").Count()"; }
returns() { "$FAY" trace -v -p $target --for "$2" "$(query "$1")"; }
# The functions that are traced, and those that are not because another trace is too close.
beside=' has been patched by another trace'
those() { # WHAT
	local traced
	traced=$(sed -n 's/^fay: tracing \([0-9]*\) function.*/\1/p' "$work/err")
	equal "$1: functions" "$alone" $((traced + $(grep -c "not traced.*$beside" "$work/err")))
	grep 'not traced' "$work/err" | grep -v "$beside" | sort >"$work/refused" || true
	diff "$work/alone" "$work/refused" || fail "$1: others are refused"
}
exits "alone" 0 returns '*' 1ms
alone=$(sed -n 's/^fay: tracing \([0-9]*\) function.*/\1/p' "$work/err")
grep 'not traced' "$work/err" | sort >"$work/alone" || true

for pattern in '*a*' '*e*'; do
	(while [ ! -e "$work/enough" ]; do
		returns "$pattern" 10ms >/dev/null 2>"$work/other" || exit 1
		echo >>"$work/rounds"
	done) &
	own $!
	others+=($!)
done
wait_for "$work/rounds" "" 2
for round in {1..6}; do
	exits "among others, $round" 0 returns '*' 1ms
	those "among others, $round"
done
touch "$work/enough"
for other in "${others[@]}"; do ended "$other" || fail "one of the others failed"; done
echo "ok: the others began and ended $(wc -l <"$work/rounds") times"
equal "text after all" "$before" "$(text_hash $target)"

# Whose turn it is not waits, and has it when a fay that had it is killed.
turn=/proc/$target/task/$target/mem
is_free() { flock -n "$turn" true; }
is_taken() { ! is_free; }
wants_turn() { ls -l "/proc/$1/fd" 2>/dev/null | grep -q "/proc/$target/.*mem\$"; }
exec 8<"$turn"
flock 8
"$FAY" trace -p $target --for 1ms "$(query '*a*')" >"$work/out" 2>"$work/waits" &
waits=$!
own $waits
await "a trace that wants its turn" wants_turn $waits
rest 5
wants_turn $waits || fail "it does not wait for its turn"
! grep 'fay: tracing' "$work/waits" || fail "it has not waited for its turn"
# one that is interrupted waits no longer
"$FAY" trace -p $target --for 1ms "$(query '*a*')" >"$work/out" 2>"$work/left" &
leaves=$!
own $leaves
await "another one that wants its turn" wants_turn $leaves
rest 5 # it may have opened the file to read
wants_turn $leaves || fail "another one does not wait for its turn"
kill -TERM $leaves
if ended $leaves; then fail "who was interrupted has traced"; fi
contains "who was interrupted while it waited" "$work/left" "fay: interrupted"
wants_turn $waits || fail "the other one does not wait any more"
exec 8<&-
ended $waits || fail "it has waited and not traced"
contains "a trace that waited" "$work/waits" "fay: tracing"
for round in {1..5}; do
	"$FAY" trace -p $target --for 60s "$(query '*')" >"$work/out" 2>"$work/killed" &
	killed=$!
	own $killed
	await "a turn" is_taken
	kill -KILL $killed
	if ended $killed 2>/dev/null; then fail "fay was not killed"; fi
	await "the turn of a fay that was killed" is_free
	exits "after a fay that was killed" 0 returns '*' 1ms
	those "after a fay that was killed, $round"
done
equal "text after all" "$before" "$(text_hash $target)"
