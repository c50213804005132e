#!/usr/bin/env bash
# A program that has mapped a file twice: calls are counted in both mappings, by jumps and by traps,
# each once; and both are restored. And V8, which does so with its own functions: why those are
# refused.
host=1
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/../functions/say_lib.sh"
start_target ready "$(dirname "$TARGET")/twice_target"
equal "mappings of the functions" 2 "$(grep -c ' r-xp .*/twice_target$' "/proc/$target/maps")"
second_hash() {
	local range
	range=$(awk '/ r-xp .*twice_target$/ {print $1}' "/proc/$target/maps" | tail -1)
	dd if="/proc/$target/mem" bs=4096 skip=$((16#${range%-*} / 4096)) count=1 status=none |
		sha256sum | cut -d' ' -f1
}
second=$(second_hash)
say "30 7" ran
right=$answer
try() { # WHAT QUERY NEXT COLUMNS
	trace -p "$target" "from c in $2 group c by c.function into g
		select new { g.Key, n = g.Count()$4 }"
	say "30 7" ran
	equal "$1: the program's own result" "$right" "$answer"
	say "0 100" ran
	end_trace
	for name in add behind $3; do
		equal "$1 of twice_$name" "[137]" "$(row "twice_$name" n)"
	done
	equal "text after $1" "$before" "$(text_hash "$target")"
	equal "second mapping after $1" "$second" "$(second_hash)"
}
next=next
[ "$(bpf_is ok)" = true ] || next=
try calls 'cluster.Function("twice_target!twice_*")' "$next" ""
try returns 'cluster.Return("twice_target!twice_*")' "$next" ""
try durations 'cluster.Return("twice_target!twice_*")' "$next" ", d = g.Max(x => x.Duration)"

# No trap where one of the mappings has other bytes: it would be in that one, too.
say change changed
before=$(text_hash "$target")
say "0 7" ran
right=$answer
trace --verbose -p "$target" 'cluster.Function("twice_target!twice_*").Count()'
contains "a changed mapping" "$work/trace.err" "not traced: twice_target!twice_next"
equal "traps" 0 "$(grep -c "by a trap: twice" "$work/trace.err" || true)"
say "0 7" ran
equal "changed: the program's own result" "$right" "$answer"
end_trace
equal "changed: calls" 14 "$(final_sum Count)"
equal "changed: text" "$before" "$(text_hash "$target")"
end_target

# V8: what it does with its own functions if it cannot open its file; and what is said of them.
node=$(readlink -f "$(command -v node || true)")
line=$(readelf -sW "${node:-/dev/null}" 2>/dev/null |
	awk '$4 == "FUNC" && $8 ~ /^Builtins_/ && $3 % 16 {print $2, $3, $8; exit}') || true
[ -n "$line" ] || { echo "node is not installed, or has no such functions of its own"; exit 0; }
read -r address size name <<<"$line"
cp "$node" "$work/node"
behind=$((16#$address + size)) # the padding behind one of them, where it was loaded to
# The list of mappings is read in one go: the shell reads a file piece by piece and goes back to
# where a line ended, and another line is there by then if a thread maps or unmaps meanwhile.
mappings() { cat "/proc/$target/maps"; }
# Where V8 has mapped the functions near the code that it makes, if that does not lie near them
# itself: `distance` of file and memory where the program was loaded, `mapped` offset and `bytes` of
# V8's.
find_v8s() {
	local range permissions offset file from to loaded= end=
	while read -r range permissions offset _ _ file; do
		[[ $permissions == r-xp && $file == "$work/node" ]] || continue
		from=$((16#${range%-*})) to=$((16#${range#*-})) offset=$((16#$offset))
		if [ $from -le $behind ] && [ $behind -lt $to ]; then
			distance=$((offset - from)) loaded=$offset end=$((offset + to - from))
		elif [ -n "$loaded" ] && [ $offset -gt $loaded ] && [ $offset -lt $end ]; then
			mapped=$offset bytes=$((to - from))
			return 0
		fi
	done < <(mappings)
	return 1
}
start_node() {
	start_target up "$work/node" -e '
		const { Worker } = require("worker_threads");
		const code = "require(\"worker_threads\").parentPort.postMessage(1);" +
			"setInterval(()=>{},1000)";
		process.stdin.on("data", () => new Worker(code, { eval: true }).on("message",
			() => console.log("worker"))).on("end", () => process.exit());
		console.log("up");'
}
# Addresses are random; some runs have the code near by.
start_node
for again in {1..20}; do
	find_v8s && break
	end_target
	start_node
done
find_v8s || fail "V8 has not mapped its functions twice, in $again runs"
exits "V8's own functions" 1 "$FAY" trace -p "$target" --for 1s \
	"cluster.Function(\"node!$name\").Count()"
contains "V8's own functions, and why" "$work/err" "may be copied by V8 for a worker"
echo -n N | dd of="/proc/$target/mem" bs=1 seek=$behind conv=notrunc status=none
start=$((mapped - distance))
rm "$work/node"
# a worker's code may lie near by, too
found= workers=0
while [ -z "$found" ] && [ $((workers += 1)) -le 20 ]; do
	say worker worker
	while read -r range permissions _ _ inode _; do
		from=$((16#${range%-*}))
		[ "$permissions $inode $((16#${range#*-} - from))" = "r-xp 0 $bytes" ] || continue
		found=$(dd if="/proc/$target/mem" bs=1 skip=$((from + behind - start)) count=1 \
			status=none)
	done < <(mappings)
done
equal "a byte of the copy that V8 made" N "$found"
