#!/usr/bin/env bash
# Libraries that have an unwinder of their own linked in, with symbols and without: exceptions pass
# through traced calls, also where the library is loaded later.
. "$(dirname "$0")/../lib.sh"
bin=$(dirname "$FAY")
library=$(find "$bin/.." -name libown_unwinder.so | head -1)
mkdir "$work/stripped"
strip -o "$work/stripped/libown_unwinder.so" "$library" || skip "strip is not installed"
calls() { printf '\n' >&9; wait_for "$work/target.out" "7 7" "$1"; }

for file in "$library" "$work/stripped/libown_unwinder.so"; do
	start_target loaded "$bin/own_unwinder_target" "$file"
	calls 1
	trace -p "$target" 'from r in cluster.Return("*own_unwinder*!own_*") group r by 1 into g
		select new { Count = g.Count(), time = g.Sum(x => x.Duration) }'
	calls 2
	end_trace
	equal "returns beside exceptions" 2 "$(final_sum Count)"
	equal "text after" "$before" "$(text_hash "$target")"
	calls 3
	end_target

	start_target ready "$bin/own_unwinder_target" "$file" later
	trace -p "$target" 'cluster.Return("own_unwinder_target!*").Count()'
	echo >&9
	wait_for "$work/target.out" loaded
	calls 1
	end_trace
	calls 2
	end_target
done
