#!/usr/bin/env bash
# Fay's counts of entries and returns beside those of the processor's own breakpoints, in the same
# run: of each program 200 functions, odd ones first, while all functions of all its modules are
# traced. exact.py says how.
#
#   FAY=build/bin/fay tests/soak/exact.sh [PROGRAM...]
#   NUMBER=200 SEED=25 ...: how many, and which
host=1
. "$(dirname "$0")/../integration/lib.sh"
. "$(dirname "$0")/starts.sh"
. "$(dirname "$0")/loads.sh"
here=$(dirname "$(readlink -f "$0")")
needs_bpf
mkfifo "$work/ask"
exec 7<>"$work/ask" # lets exact.py go on
asked=0
echo "program | asked for | compared | called | calls | equal | kinds of the called ones"
for name in ${*:-$programs}; do
	pid=
	"${name}_" || {
		echo "$name | not here"
		continue
	}
	exec 6< <(exec 7>&- "$here/exact.py" "$name" "$pid" "${NUMBER:-200}" "${SEED:-25}" \
		<"$work/ask" 2>"$work/exact.err")
	own "$!"
	while read -r line <&6; do
		if [ "$line" = work ]; then
			"${name}_load" $((asked += 1)) </dev/null >"$work/load.out" 2>&1 || true
			echo done >&7
		else
			echo "$line"
		fi
	done
	[ ! -s "$work/exact.err" ] || echo "$name | $(tail -n 3 "$work/exact.err")"
	signal_owned KILL "$pid"
done
