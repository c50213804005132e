#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# hints.sh: what `fay shell` says below a query that is being typed, on terminals of all kinds,
# driven through tmux.
. "$(dirname "$0")/../../integration/lib.sh"
. "$(dirname "$0")/terminal.sh"
gone() { tries lacks "$1" || { cat "$work/screen" >&2; fail "'$1' is still there"; }; }
lacks() { ! shows "$1"; }
count() { grep -oF -- "$1" "$work/raw" | wc -l; }
said="1 function in 1 process, at most [0-9]+ instructions a call, 8 bytes a thread"
await_hint() {
	tries hinted || { cat "$work/screen" >&2; fail "no hint on the screen"; }
}
hinted() {
	tmux -S "$screen" capture-pane -p >"$work/screen" && grep -qxE "$said *" "$work/screen"
}
query='cluster.Function("tracer_target!add_up").Count()'

# What is not at its end is not complained about; what is, is told.
terminal plain 80 24 fay shell -p $target
await_prompt "fay $target>"
tmux -S "$screen" pipe-pane -o "cat >$work/raw"
types 'cluster.Function("tracer_target!add_up").Co'
sleep 1
is_at "fay $target> cluster.Function(\"tracer_target!add_up\").Co" || fail "$(cat "$work/screen")"
types 'nut()'
await_screen "unknown function \`Conut\` of a sequence; did you mean \`Count\`?"
keys BSpace BSpace BSpace BSpace BSpace
types 'unt()'
await_hint

# Keys that make the line longer or shorter leave it there: it is neither cleared nor drawn again.
cleared=$(count $'\033[J') drawn=$(count "1 function in 1 process")
types '    '
keys BSpace BSpace BSpace BSpace
sleep 1
await_hint
equal "times it was cleared" "$cleared" "$(count $'\033[J')"
equal "times it was drawn" "$drawn" "$(count "1 function in 1 process")"

# In the middle of the line, too; a function that is not there; when the line is done it is gone.
keys Home
types ' '
sleep 1
await_hint
keys End
for _ in $(seq 10); do keys BSpace; done
types 'x").Count()'
await_screen "no function \`add_upx\` in tracer_target of process $target"
keys C-c
await_prompt "fay $target>"
lacks "no function" || fail "the hint is still there"
types "$query;"
await_hint
keys Enter
await_screen "fay: tracing 1 function in 1 process"
lacks "instructions a call" || fail "the hint is still there"
keys C-c
await_screen "fay: interrupted; 1 thread counted, 0 events lost"

# A query of several lines; of the kernel's there are no functions, and commands have none.
await_prompt "fay $target>"
types 'from e in cluster.Function("tracer_target!add_up")'
keys Enter
types 'group e by 0 into g select g.Count()'
await_screen " bytes a key"
keys C-c
await_prompt "fay $target>"
types 'cluster.Syscall("read").Count()'
await_screen "entry of system call read, 8 bytes a processor"
keys C-u
types ".explain $query"
await_hint
keys C-u
gone "instructions a call"
types ".list $query"
sleep 1
lacks "instructions a call" || fail "a hint on a command"
keys C-u
types '.hints off'
keys Enter
await_prompt "fay $target>"
types "$query"
sleep 1
lacks "instructions a call" || fail "a hint though they are off"
keys C-c
keys C-d
restored 0

# On the last line of a small screen: lines scroll up, and the rest stands where it was. Then the
# screen becomes narrower, and the line has two.
terminal small 80 4 fay shell -p $target
await_prompt "fay $target>"
for _ in 1 2 3; do
	types '.target'
	keys Enter
done
types "$query"
await_hint
equal "lines on the screen" "process $target
fay $target> $query" "$(sed 's/ *$//' "$work/screen" | grep -v ' instructions a call' | tail -2)"
tmux -S "$screen" resize-window -x 50 -y 6
said="1 function in 1 process, at most [0-9]+ instructions a" # as wide as the screen
types '  '
keys BSpace
await_hint
keys C-c
await_prompt "fay $target>"
keys C-d
restored 0

# Where lines cannot be gone up, or are scrolled sideways, nothing is said.
echo 'set horizontal-scroll-mode on' >"$work/inputrc"
for with in TERM=dumb "INPUTRC=$work/inputrc"; do
	terminal "${with%%=*}" 100 12 "$with" fay shell -p $target
	await_prompt "fay $target>"
	types "$query"
	sleep 1
	shows "$query" || fail "$(cat "$work/screen")"
	lacks "instructions a call" || fail "a hint with $with"
	keys C-c
	await_prompt "fay $target>"
	keys C-d
	restored 0
done
