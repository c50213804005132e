#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# interactive.sh: `fay shell` and `fay top` on terminals of all sizes and kinds, driven through
# tmux.
. "$(dirname "$0")/../../integration/lib.sh"
. "$(dirname "$0")/terminal.sh"
text=$(text_hash $target)

# Completion of sources, modules, functions and methods; a query; Ctrl-C ends it, and not the shell.
terminal plain 80 24 fay shell -p $target
await_prompt "fay $target>"
types 'clus'
keys Tab
types '.Func'
keys Tab
types '("trac'
keys Tab
types 'add'
keys Tab
types '").Co'
keys Tab
await_screen 'cluster.Function("tracer_target!add_up").Count'
types '();'
keys Enter
await_screen "fay: tracing 1 function in 1 process"
keys C-c
await_screen "fay: interrupted; 1 thread counted, 0 events lost"
await_prompt "fay $target>"

# Fields; an error's caret stands below the word, as it was typed; Ctrl-C gives up a line.
types 'from e in cluster.Function("tracer_target!add_up") where e.cp'
keys Tab
types ' >= 0'
keys Enter
types 'select e.tiem;'
keys Enter
await_screen "fay: unknown field \`tiem\` of event \`e\`; did you mean \`time\`?"
grep -A1 -F '...> select e.tiem;' "$work/screen" | tail -1 >"$work/caret"
prompt="fay $target> "
equal caret "$(printf '%*s^~~~' $((${#prompt} + 9)) '')" "$(cat "$work/caret")"
grep -qF 'where e.cpu >= 0' "$work/screen" || fail "a field was not completed"
types 'nothing'
await_screen "> nothing"
keys C-c # which drops what is typed before it is done
await_prompt "fay $target>"
types '.save '"$work"'/q.linq'
keys Enter
await_screen "fay trace -f $work/q.linq runs it"
keys C-d
restored 0
grep -qF 'where e.cpu >= 0 select e.tiem;' "$work/state/fay/history" || fail "no history"

# A small terminal that can do nothing, in a locale without UTF-8; the target is traced when the
# terminal goes.
terminal dumb 20 10 TERM=dumb LC_ALL=C fay shell
types ".target $target"
keys Enter
await_prompt "fay $target>"
types 'cluster.Function("tracer_target!add_up").Count();'
keys Enter
await_screen "Ctrl-C ends"
pid=$(pgrep -P "$(tmux -S "$screen" display-message -p '#{pane_pid}')" -x fay)
own "$pid"
kill -HUP "$pid"
restored 0
equal "text" "$text" "$(text_hash $target)"

# A result on a terminal: over the picture stands how it goes, and the last one is as it would be in
# a file.
terminal live 80 12 fay trace --budget none -p $target \
	"'cluster.Function(\"tracer_target!add_up\").Count()'"
await_screen " s, 1 function in 1 process, "
grep -qE '^[0-9.]+ s, 1 function in 1 process, [0-9]+ events/s, 0 lost' \
	"$work/screen" || fail "the line over a picture: $(cat "$work/screen")"
keys C-c
restored 0
grep -q events/s "$work/screen" && fail "the line over a picture is still there"

# What probes take of a busy program, where there is a budget by which it is known.
"$BUDGET_TARGET" < <(echo && exec sleep 300) >/dev/null &
busy=$!
own $busy
rest 2
terminal share 100 12 fay trace --budget 90% -p $busy \
	"'cluster.Function(\"budget_target!hot\").Count()'"
takes() {
	shows " events/s" && grep -qE ' probes take [1-9][0-9]*\.[0-9]%, 0 lost' "$work/screen"
}
tries takes || fail "what probes take: $(cat "$work/screen")"
keys C-c
restored 0
kill $busy

# The functions of a process; sorted, filtered, paused, saved; down to the stacks and back; sizes.
terminal top 80 24 fay top -p $target
await_screen "from r in cluster.Return(\"tracer_target!*\") group r by r.function into g"
await_screen " add_up"
keys s
await_screen "CALLS*"
types "/add"
keys Enter
await_screen ", filter add"
types "p"
await_screen ", PAUSED"
types "w$work/top.csv"
keys Enter
await_screen "saved to $work/top.csv"
grep -qE '^"add_up",[0-9.]+,[0-9]+,[0-9]+,[0-9]+,[0-9]+,0$' "$work/top.csv" ||
	fail "$(cat "$work/top.csv")"
keys Enter
await_screen "add_up < main < __libc_start_call_main"
await_screen "from f in cluster.Function(\"tracer_target!add_up\") group f by f.Stack(16) into g"
tmux -S "$screen" resize-window -x 20 -y 8
await_screen "CALLS/s* STACK"
tmux -S "$screen" resize-window -x 200 -y 50
await_screen "tracer_target!main+0x"
equal "lines of a large screen" 50 "$(tmux -S "$screen" display-message -p '#{pane_height}')"
# Back, it is as it was left: sorted by calls, filtered, and its counts go on.
keys Escape
await_screen "fay top: functions of"
await_screen ", filter add"
await_screen "CALLS*"
await_screen "in 1 process; Ctrl-C ends"
calls_before=$(awk -F, '$1 == "\"add_up\"" { print $3 }' "$work/top.csv")
counts_go_on() {
	shows "add_up" && awk -v before="$calls_before" '$NF == "add_up" { n = $2
		n *= n ~ /k$/ ? 1000 : n ~ /M$/ ? 1000000 : 1 } END { exit n <= before }' \
		"$work/screen"
}
tries counts_go_on || fail "more than $calls_before calls: $(cat "$work/screen")"
# Other functions: of a library, then of all with the program's, each with its module, by which
# stacks are asked for; and the program's alone again.
types "/"
keys Enter
types "flibc!usleep*"
await_screen "Functions, as libc!*, or *!* (empty: the program's): libc!usleep*_"
keys Enter
await_screen 'Return("libc!usleep*") group r by new { r.module, r.function } into g'
await_screen " libc!usleep"
types "w$work/libc.csv"
keys Enter
await_screen "saved to $work/libc.csv"
grep -qE '^"libc!usleep",[0-9.]+,[1-9][0-9]*,' "$work/libc.csv" || fail "$(cat "$work/libc.csv")"
keys Enter
await_screen "usleep < main < __libc_start_call_main"
await_screen 'Function("libc!usleep")'
keys Escape
await_screen " libc!usleep"
types "f"
for _ in {1..12}; do keys BSpace; done
types 'no_such_*'
keys Enter
await_screen 'Return("*!no_such_*")'
await_screen 'no function `no_such_*` in *'
types "f"
for _ in {1..9}; do keys BSpace; done
types 'add_*'
keys Enter
await_screen " tracer_target!add_up"
types "f"
for _ in {1..5}; do keys BSpace; done
keys Enter
await_screen " add_up"
shows "tracer_target!add_up" && fail "the program's own functions have its name"
keys C-c
restored 0
# A program of any name: what is asked of it is what `fay trace` can be asked.
odd="$work/a[b]*\"c"
cp "$(readlink /proc/$target/exe)" "$odd"
"$odd" &
odd_pid=$!
own $odd_pid
rest 1
terminal top.odd 80 24 fay top -p $odd_pid
await_screen " add_up"
query=$(sed -n '/^from /,$p' "$work/screen" | tr -d '\n')
[[ "$query" == *'Return("a\\[b\\]\\*\"c!*")'* ]] || fail "the query: $query"
types "/add_up"
keys Enter
await_screen ", filter add_up"
keys Enter
await_screen "add_up < main < __libc_start_call_main"
keys q
restored 0
"$FAY" trace --for 300ms -p $odd_pid "$query" >"$work/odd" 2>"$work/odd.err" ||
	fail "$query: $(cat "$work/odd.err")"
contains "the odd program's function" "$work/odd" "add_up"
kill $odd_pid
for signal in HUP TERM; do
	terminal top.$signal 80 24 fay top -p $target
	await_screen "in 1 process; Ctrl-C ends"
	pid=$(pgrep -P "$(tmux -S "$screen" display-message -p '#{pane_pid}')" -x fay)
	own "$pid"
	kill -$signal "$pid"
	restored 0
	shows "CALLS/s" && fail "the screen was left as it was"
done
equal "text" "$text" "$(text_hash $target)"

# Stacks have the names that people write.
cat >"$work/cart.cc" <<'C'
#include <unistd.h>
namespace shop {
struct Cart {
	__attribute__((noipa)) void add(int n) { sum += n; }
	__attribute__((noipa)) void fill() { add(1), add(2); usleep(1000); }
	volatile int sum = 0;
};
}
int main() { for (shop::Cart cart;;) cart.fill(); }
C
g++ -O1 -o "$work/cart" "$work/cart.cc"
"$work/cart" &
cart=$!
own $cart
rest 1
terminal top.names 100 24 fay top -p $cart
await_screen " shop::Cart::add"
types "/Cart::add"
keys Enter
await_screen ", filter Cart::add"
keys Enter
await_screen "shop::Cart::add < shop::Cart::fill < main"
await_screen "cart!shop::Cart::fill+0x"
await_screen "what calls cart!shop::Cart::add in cart"
keys q
restored 0
kill $cart

# What the budget leaves out is marked, and keeps the rate that it had; Ctrl-C ends attaching.
"$BUDGET_TARGET" < <(echo && exec sleep 300) >/dev/null &
busy=$!
own $busy
rest 2
terminal top.budget 80 24 fay top --budget 0.1% -p $busy
await_screen "(rate): left out by the budget of 0.1%, as it was before"
left_out() { shows "(rate)" && grep -qE '^ *\([1-9][0-9.]*[kMG]?\) .* hot *$' "$work/screen"; }
tries left_out || fail "the rate of what is left out: $(cat "$work/screen")"
keys q
restored 0
kill $busy
/usr/bin/python3 -c 'input()' < <(sleep 300) &
python=$!
own $python
rest 1
text=$(text_hash $python)
terminal top.attaching 80 24 fay top -p $python
await_screen "attaching ..."
keys C-c
restored 0
equal "text" "$text" "$(text_hash $python)"

# Ctrl-C is an answer to the question before a trace that would take much.
cat >"$work/hot.c" <<'C'
volatile long n;
__attribute__((noipa)) void hot(void) { n = n * 3 + 1, n ^= 5; }
int main(void) { for (;;) hot(); }
C
gcc -O1 -o "$work/hot" "$work/hot.c"
"$work/hot" &
hot=$!
own $hot
terminal asked 80 24 env -u FAY_BUDGET fay trace -p $hot "'cluster.Function(\"hot!hot\").Count()'"
await_screen "trace all the same? [y/N]"
keys C-c
await_screen "not traced"
restored 1
kill $hot

# A terminal on which nothing can be drawn, and none.
terminal none 40 12 TERM=dumb fay top -p $target
await_screen "a terminal of the kind 'dumb' cannot be drawn on"
restored 1
exits "no terminal" 1 "$FAY" top -p $target

# Lines that nobody types.
exits "a mistake among lines" 2 "$FAY" shell -p $target <<'S'
.options --for 1ms --csv
cluster.Function("tracer_target!add_up")
	.Count(e => e.Arg(0) > 7);
.run funccount tracer_target!add_up
.unheard of
S
equal "the query's result, and an example's head" Count,0,function,calls \
	"$(head -n 3 "$work/out" | paste -sd,)"
contains "the mistake" "$work/err" "unknown command \`.unheard\`"
