#!/usr/bin/env bash
# A debugger stops and resumes a traced program: counts stay exact, the result right, and the stack
# inside traced calls is what it was; functions that are hard to patch, too.
# And a program that unwinds through LLVM's unwinder.
. "$(dirname "$0")/../lib.sh"
command -v gdb >/dev/null || skip "gdb is not installed"
bin=$(dirname "$TARGET")
mkfifo "$work/in"
"$bin/markers_target" <"$work/in" >"$work/target.out" 2>&1 &
target=$!
own "$target"
exec 9>"$work/in"
wait_for "$work/target.out" ready
wait_answers() { wait_for "$work/target.out" "step " "$1"; }
echo "step 2 3000000" >&9
wait_answers 1
right=$(grep '^step' "$work/target.out" | tail -1)
before=$(text_hash "$target")

# The program's work begins while it is stopped, and goes on between stops.
trace -p "$target" 'cluster.Function("markers_target!step").Count()'
timeout 120 gdb -nx -batch -p "$target" -ex 'set pagination off' \
	-ex "shell echo 'step 2 3000000' >$work/in" \
	-ex 'continue &' -ex 'shell sleep 0.05' -ex 'interrupt' -ex 'shell sleep 0.2' \
	-ex 'continue &' -ex 'shell sleep 0.05' -ex 'interrupt' -ex 'shell sleep 0.2' \
	-ex 'continue &' -ex 'shell sleep 0.05' -ex 'interrupt' -ex 'shell sleep 0.2' -ex detach \
	>"$work/gdb.out" 2>&1 || { cat "$work/gdb.out"; fail gdb; }
wait_answers 2
equal "the program's result under a debugger" "$right" \
	"$(grep '^step' "$work/target.out" | tail -1)"
end_trace
equal "calls counted" 6000000 "$(final_sum Count)"
equal "text after" "$before" "$(text_hash "$target")"

# run() calls step(); both are traced, library_step() is not.
library=$(basename "$bin"/libmarkers_library.so .so)
trace -p "$target" 'from c in cluster.Function("markers_target!*step") group c by c.function into g
	select new { g.Key, n = g.Count() }'
timeout 120 gdb -nx -batch -p "$target" -ex 'set pagination off' -ex 'break library_step' \
	-ex "shell echo 'step 1 3' >$work/in" -ex continue -ex bt \
	-ex delete -ex detach >"$work/gdb.out" 2>&1 || { cat "$work/gdb.out"; fail gdb; }
wait_answers 3
end_trace
for function in library_step run start_thread; do
	grep -qE "^#[0-9]+ .*\b$function\b" "$work/gdb.out" || {
		cat "$work/gdb.out"
		fail "gdb's stack has no $function"
	}
	echo "ok: gdb's stack has $function"
done
equal "calls counted beside a breakpoint" 3 "$(final_sum n)"
equal "text after" "$before" "$(text_hash "$target")"
exec 9>&-
ended "$target"

mkfifo "$work/other"
rm "$work/target.out"
"$bin/unwinder_target" <"$work/other" >"$work/target.out" &
target=$!
own "$target"
exec 9>"$work/other"
wait_for "$work/target.out" ready
trace -p "$target" 'cluster.Function("unwinder_target!waits").Count()'
printf 'xyz' >&9
wait_for "$work/target.out" "one more" 3
end_trace
equal "entries" 3 "$(final_sum Count)"
exec 9>&-
ended "$target"

# Each kind of function that is hard to patch: interrupted, stepped through the trampolines
# instruction by instruction, stopped at a breakpoint elsewhere, let go.
. "$(dirname "$0")/../calls/awkward_lib.sh"
batches=20
rounds=40000
# In a batch's midst there is code to step through; a program that has done all of them waits in
# read(2), where a step would wait, too.
cat >"$work/gdb.commands" <<'END'
set pagination off
handle SIGINT stop nopass
define walk
	if $orig_rax < 0
		stepi 1500
	end
end
define breaks
	if $orig_rax < 0
		tbreak fflush
		continue
		bt
		stepi 1500
	end
end
END
under_gdb() {
	local interrupted=(-ex "shell (sleep 0.02; kill -INT $target) &" -ex continue -ex walk)
	timeout 120 gdb -nx -batch -p "$target" -x "$work/gdb.commands" \
		-ex "shell for i in \$(seq $batches); do echo $rounds; done >$work/in" \
		"${interrupted[@]}" "${interrupted[@]}" "${interrupted[@]}" -ex breaks -ex detach \
		>"$work/gdb.out" 2>&1 || { cat "$work/gdb.out"; fail gdb; }
	equal "interruptions" 3 "$(grep -c 'received signal SIGINT' "$work/gdb.out")"
	right_answers $batches
}
start awkward_target
for kind in Function Return; do
	for share in 1 1000000; do
		trace_awkward awkward_target $kind --share $share
		under_gdb
		end_trace
		counted "under gdb, $kind, shared from $share" $((batches * rounds))
		equal "text after gdb" "$before" "$(text_hash "$target")"
	done
done
