#!/usr/bin/env bash
# Who called: exact counts by return address, shown by name, in the program, in libraries, in one
# that is loaded later; the process is gone when the result is shown.
. "$(dirname "$0")/../lib.sh"
here=$(cd "$(dirname "$0")" && pwd)
gcc -O1 -fno-optimize-sibling-calls -o "$work/callers" "$here/callers_target.c"
gcc -O1 -fPIC -shared -fno-optimize-sibling-calls -o "$work/libcallers.so" "$here/callers_library.c"
exits "by caller" 0 "$FAY" trace \
	--csv 'from e in cluster.Function("callers!compared") group e by e.Caller into g
		select new { g.Key, n = g.Count() }' -- "$work/callers" "$work/libcallers.so"
equal "calls by function" \
	"callers!once 300 callers!twice 100 callers!twice 100 libcallers!call_back 50" \
	"$(tail -n +2 "$work/out" | sed 's/+0x[0-9a-f]*,/ /' | sort | tr '\n' ' ' | sed 's/ $//')"
# Each address is that of the instruction behind a call.
start=$(objdump -d "$work/callers" | sed -n 's/^0*\([0-9a-f]*\) <once>:$/\1/p')
behind=$(objdump -d "$work/callers" | sed -n '/<once>:$/,/^$/p' | grep -A1 'call .*<compared>' |
	sed -n '2s/^ *\([0-9a-f]*\):.*/\1/p')
place=$(printf 'once+0x%x' $((16#$behind - 16#$start)))
contains "the address is behind the call" "$work/out" "callers!$place,300"
exits "rows of events" 0 "$FAY" trace \
	--csv 'from e in cluster.Function("callers!compared") select new { e.Caller } take 1' \
	-- "$work/callers"
equal "rows of events" "Caller callers!$place" "$(tr '\n' ' ' <"$work/out" | sed 's/ $//')"
# Of calls as they end: by themselves, and with what needs records of calls.
for also in '' ', took = g.Count(r => r.Duration > 0)' ', x = g.Count(r => r.Failed)'; do
	exits "of calls that end$also" 0 "$FAY" trace \
		--csv "from r in cluster.Return(\"callers!compared\") group r by r.Caller into g
			select new { g.Key, n = g.Count()$also }" \
		-- "$work/callers" "$work/libcallers.so"
	equal "of calls that end$also" \
		"callers!once 300 callers!twice 100 callers!twice 100 libcallers!call_back 50" \
		"$(tail -n +2 "$work/out" | sed 's/+0x[0-9a-f]*,/ /' | cut -d, -f1 | sort |
			tr '\n' ' ' | sed 's/ $//')"
done
exits "of system calls" 2 "$FAY" explain 'cluster.Syscall("read").DistinctCount(r => r.Caller)'
contains "said" "$work/err" '`Caller` is known of calls of a program'
# Functions without names, whose registers are all kept (docs/internals/returns.md).
strip -o "$work/unnamed" "$work/callers"
for source in Function Return; do
	exits "$source without a name" 0 "$FAY" trace \
		--csv "from e in cluster.$source(\"unnamed!fn_*\") group e by e.Caller into g
			select new { g.Key, n = g.Count() }" -- "$work/unnamed" "$work/libcallers.so"
	equal "$source without a name: callers" "libcallers 50 unnamed 300 unnamed 300" \
		"$(sed -n 's/^\([a-z]*\)![^,]*,\(300\|50\)$/\1 \2/p' "$work/out" | sort |
			tr '\n' ' ' | sed 's/ $//')"
done
