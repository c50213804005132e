# Processes that a script started, by number and start time: numbers of ended processes are given
# out again, within seconds beside a test that makes a million threads.
# To be sourced by bash scripts.
started=() # "PID BIRTH"
# born PID: when it started, in ticks since boot (proc(5)); nothing if there is no such process
born() {
	local stat
	{ read -r stat <"/proc/$1/stat"; } 2>/dev/null || return 0
	stat=(${stat##*) })
	echo "${stat[19]}"
}
# own PID...: the script's own, from now on
own() { local pid; for pid; do started+=("$pid $(born "$pid")"); done; }
# signal_owned SIGNAL PID...: those that are its own and have not ended
signal_owned() {
	local signal=$1 pid one
	shift
	for pid; do
		for one in "${started[@]}"; do
			[ "${one% *}" != "$pid" ] || [ "$(born "$pid")" != "${one#* }" ] ||
				kill "-$signal" "$pid" 2>/dev/null || true
		done
	done
}
# kill_owned [SIGNAL]: all of them, by KILL unless said
kill_owned() {
	local one
	for one in "${started[@]}"; do
		signal_owned "${1:-KILL}" "${one% *}"
	done
}
