#!/usr/bin/env bash
# Functions of stripped files: found by the unwind table, named by a separate debug file, each where
# the unstripped file has it.
. "$(dirname "$0")/../lib.sh"
list() { "$FAY" list "$@" | awk '{sub(/.*!/, "", $3); print $1, $3}' | sort; }
starts() { cut -d' ' -f1 | sort -u; }

cp "$TARGET" "$work/whole"
strip -o "$work/bare" "$work/whole"
list "$work/whole" '*' | starts >"$work/known"
list "$work/bare" 'fn_*' >"$work/unnamed"
equal "starts that the unstripped file does not have" 0 \
	"$(starts <"$work/unnamed" | comm -23 - "$work/known" | wc -l)"
work_at=$(list "$work/whole" work | cut -d' ' -f1)
contains "a function without a symbol" "$work/unnamed" "$work_at"

# Neither symbols nor an unwind table, as Free Pascal's programs are when stripped.
printf 'int main(void) { return 0; }\n' | gcc -static -nostdlib -Wl,-e,main \
	-fno-asynchronous-unwind-tables -s -x c - -o "$work/nameless"
for pattern in '*' 'fn_*'; do
	exits "a file of which no function is known: $pattern" 2 "$FAY" list "$work/nameless" \
		"$pattern"
	contains "why" "$work/err" "it has neither symbols (stripped) nor an unwind table"
done

# Counted by the unwind table alone: the C functions of the awkward program.
bin=$(dirname "$FAY")
strip -o "$work/awkward_bare" "$bin/awkward_target"
deep=fn_$(nm "$bin/awkward_target" | awk '$3 == "deep" { sub(/^0+/, "", $1); print $1 }')
start_target ready "$work/awkward_bare"
trace --verbose -p "$target" \
	"from f in cluster.Function(\"awkward_bare!*\") where f.function != \"_start\"
		group f by f.function into g select new { f = g.Key, n = g.Count() }"
echo 200 >&9
wait_for "$work/target.out" ok
end_trace
equal "calls of a function by its unwind entry" 4200 \
	"$(jq -r "select(.type == \"row\" and .final and .values.f == \"$deep\") |
		.values.n" "$work/trace.json")"
equal "the stripped program's text" "$before" "$(text_hash "$target")"
trace -p "$target" "cluster.Return(\"awkward_bare!$deep\").Count()"
echo 200 >&9
wait_for "$work/target.out" ok 2
end_trace
equal "its returns" 4200 "$(final_sum Count)"
exec 9>&-
ended "$target" || fail "the stripped program's exit code is $?"

# A debug file under the build ID gives the names back; one of another build does not.
id=$(readelf -n "$work/whole" | awk '/Build ID/ {print $3}')
mkdir -p "$work/debug/.build-id/${id:0:2}"
objcopy --only-keep-debug "$work/whole" "$work/debug/.build-id/${id:0:2}/${id:2}.debug"
equal "by its name from the debug file" "$work_at work" \
	"$(FAY_DEBUG_DIR=$work/debug list "$work/bare" work)"
objcopy --only-keep-debug /bin/true "$work/debug/.build-id/${id:0:2}/${id:2}.debug" 2>/dev/null
FAY_DEBUG_DIR=$work/debug exits "a debug file of another build" 2 "$FAY" list "$work/bare" work

# A large program that Debian ships stripped: what the dynamic symbols name is not named again.
program=$(command -v redis-server)
list "$program" '*' >"$work/all"
equal "functions with two names" 0 "$(cut -d' ' -f1 "$work/all" | uniq -d | wc -l)"
unnamed=$(grep -c ' fn_' "$work/all")
[ "$unnamed" -gt 100 ] || fail "only $unnamed functions of $program are known by the unwind table"
echo "ok: $unnamed functions of redis-server without a symbol"
