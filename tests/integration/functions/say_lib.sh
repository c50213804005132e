# For targets that read commands and answer each with a line. Sourced behind lib.sh.
say() { # COMMAND ANSWER-PREFIX: the answer in $answer
	local had
	had=$(grep -cF "$2" "$work/target.out" || true)
	echo "$1" >&9
	wait_for "$work/target.out" "$2" $((had + 1))
	answer=$(grep "^$2" "$work/target.out" | tail -1)
}
semaphore() { say semaphore semaphore; equal "$1" "semaphore $2" "$answer"; }
row() { # KEY COLUMN...: of the final row with that key
	local key=$1
	shift
	jq -c --arg k "$key" --arg c "$*" 'select(.type == "row" and .final and .values.Key == $k)
		.values | [.[$c | split(" ")[]]]' "$work/trace.json"
}
