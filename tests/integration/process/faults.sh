#!/usr/bin/env bash
# What cannot be attached to is refused, with its reason, and goes on rightly: a process under
# seccomp, one that somebody else traces, one without free memory in reach of a jump, one that is
# not ours, one that is gone.
. "$(dirname "$0")/../lib.sh"
program=$(dirname "$FAY")/follow_target
count='cluster.Function("follow_target!work").Count()'
mkfifo "$work/in"
start() { # ARGUMENT...: up to its first wait
	rm -f "$work/target.out"
	"$program" "$@" <"$work/in" >"$work/target.out" &
	target=$!
	own "$target"
	exec 9>"$work/in"
	wait_for "$work/target.out" waiting
	before=$(text_hash "$target")
}
goes_on() { # WHAT
	local code=0
	equal "$1: its text" "$before" "$(text_hash "$target")"
	equal "$1: mappings of fay's" 0 "$(grep -c memfd:fay- "/proc/$target/maps" || true)"
	echo >&9
	exec 9>&-
	ended "$target" || code=$?
	equal "$1: its exit code" 0 "$code"
}

start confine wait calls 10
exits "a process whose sandbox kills it for mmap" 1 "$FAY" trace --for 1s -p "$target" "$count"
contains "its reason" "$work/err" "runs under seccomp"
goes_on "a process in a sandbox"

start wait calls 10
exits "files may not be as large as the state" 3 bash -c 'ulimit -f 64; exec "$@"' limited "$FAY" \
	trace --for 1s -p "$target" "$count"
contains "its reason" "$work/err" "File too large"
goes_on "a process that could not be given its state"

start surround wait calls 10
exits "no free memory in reach" 1 "$FAY" trace --for 1s -p "$target" "$count"
contains "its reason" "$work/err" "no free memory within 2 GiB of follow_target!work"
goes_on "a process without free memory in reach"

if command -v gdb >"$work/which"; then
	start wait calls 10
	mkfifo "$work/gdb.in"
	gdb -q -nx -p "$target" <"$work/gdb.in" >"$work/gdb.out" 2>&1 &
	gdb=$!
	own "$gdb"
	exec 8>"$work/gdb.in"
	echo 'printf "hold%d\n", 1' >&8
	wait_for "$work/gdb.out" hold1
	exits "a process in a debugger" 1 "$FAY" trace --for 1s -p "$target" "$count"
	contains "its reason" "$work/err" "is being traced by process $gdb (gdb)"
	echo detach >&8
	echo quit >&8
	exec 8>&-
	ended "$gdb"
	goes_on "a process in a debugger"
else
	echo "SKIPPED: a process in a debugger: gdb is not installed"
fi

# Where ptrace is refused, as to the child of a fay that somebody traces, a command is not run
# untraced.
# On a busy machine it may come to its own child before it is held.
for _ in 1 2 3 4 5; do
	exits "a fay that is followed" 0 "$FAY" trace --follow 'cluster.Function("libc!read").Count()' \
		-- "$FAY" trace "$count" -- touch "$work/was_run"
	! grep -q "was not started" "$work/err" || break
done
contains "its own command's reason" "$work/err" \
	"'touch' was not started, since it cannot be traced: ptrace is refused even for a child of fay: Operation not permitted"
[ ! -e "$work/was_run" ] || fail "a command that cannot be traced was run"

# assemble32 NAME CODE: a program of 32 bits
assemble32() {
	printf '.globl _start\n_start: %s\n' "$2" | as --32 -o "$work/narrow.o" -
	ld -m elf_i386 -o "$work/$1" "$work/narrow.o"
}
# A program of 32 bits, which pauses.
narrow_programs() {
	narrow=narrow$$
	assemble32 "$narrow" 'mov $29, %eax; int $0x80; jmp _start'
	exits "a program of 32 bits" 1 "$FAY" trace 'cluster.Function("*!*").Count()' -- "$work/$narrow"
	contains "its reason" "$work/err" "32-bit program"
	"$work/$narrow" &
	target=$!
	own "$target"
	is_named() { [ "$(cat "/proc/$1/comm")" = "$2" ]; }
	await "it has begun" is_named "$target" "$narrow"
	exits "a process of 32 bits" 1 "$FAY" trace --for 1s -p "$target" "$count"
	contains "its reason" "$work/err" "process $target runs a 32-bit program"
	exits "by its name" 1 "$FAY" trace --for 1s --comm "$narrow" "$count"
	contains "its reason" "$work/err" "process $target runs a 32-bit program"
	# With --wait it is passed over, and others of the name are traced.
	narrow_pid=$target
	trace --comm "$narrow" --wait 'cluster.Function("*!work").Count()'
	mkdir "$work/wide"
	cp "$program" "$work/wide/$narrow"
	start_target waiting "$work/wide/$narrow" wait calls 10
	await "process $target is traced" grep -qw "in process $target" "$work/trace.err"
	wait_for "$work/trace.err" "process $narrow_pid: not traced"
	equal "the process of 32 bits is said not to be, once" 1 \
		"$(grep -c "process $narrow_pid: not traced: .* 32-bit program" "$work/trace.err")"
	end_target
	end_trace
	equal "calls of the other one" 10 "$(final_sum Count)"
	kill "$narrow_pid"
}
assemble32 ends32 'mov $1, %eax; xor %ebx, %ebx; int $0x80'
if "$work/ends32" 2>"$work/ends32.err"; then
	narrow_programs
else
	echo "SKIPPED: programs of 32 bits: the kernel runs none: $(tail -n 1 "$work/ends32.err")"
fi
# One that valgrind translates, under its launcher's number.
if command -v valgrind >"$work/which"; then
	rm -f "$work/target.out"
	valgrind -q --tool=none "$program" wait calls 10 <"$work/in" >"$work/target.out" &
	target=$!
	own "$target"
	exec 9>"$work/in"
	wait_for "$work/target.out" waiting
	before=$(text_hash "$target" follow_target)
	exits "a process under valgrind" 1 "$FAY" trace --for 1s -p "$target" "$count"
	contains "its reason" "$work/err" "runs under valgrind"
	equal "a process under valgrind: its text" "$before" "$(text_hash "$target" follow_target)"
	echo >&9
	exec 9>&-
	ended "$target" || fail "the program under valgrind: exit code $?"
else
	echo "SKIPPED: a process under valgrind: it is not installed"
fi

if [ "$(id -u)" = 0 ]; then
	start wait calls 10
	copy_fay
	exits "another user's process" 1 setpriv --reuid=65534 --regid=65534 --clear-groups \
		"$work/bin/fay" trace --for 1s -p "$target" "$count"
	goes_on "another user's process"

	# In its own root directory the program's file is a FIFO that nobody writes to; the file
	# that is mapped may not be asked for.
	less=(setpriv --bounding-set=-checkpoint_restore,-sys_admin)
	if "${less[@]}" true 2>"$work/err"; then
		jail=$work/jail
		mkdir -p "$jail$jail"
		cp "$(dirname "$FAY")/awkward_static_target" "$jail/target"
		mkfifo "$jail$jail/target"
		start_target ready chroot "$jail" /target
		exits "a FIFO in place of a module" 2 timeout 60 "${less[@]}" "$FAY" trace \
			--for 1s -p "$target" 'cluster.Function("*!leaf").Count()'
		contains "its reason" "$work/err" "not a regular file"
		exec 9>&-
		ended "$target"
	else
		echo "SKIPPED: a FIFO in place of a module: $(cat "$work/err")"
	fi
else
	echo "SKIPPED: another user's process, a FIFO in place of a module: both need root"
fi
exits "a process that is gone" 1 "$FAY" trace --for 1s -p "$target" "$count"
