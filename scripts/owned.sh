# Processes that a script started, by number and start time: numbers of ended processes are given
# out again, within seconds beside a test that makes a million threads.
# To be sourced by bash scripts.
started=() # "PID BIRTH"
# read_birth PID: when it started, in ticks since boot (proc(5)), into $birth_read; nothing if there
# is no such process. No process is started for it, which may take longer than all the rest.
read_birth() {
	local stat
	birth_read=
	{ read -r stat <"/proc/$1/stat"; } 2>/dev/null || return 0
	stat=(${stat##*) })
	birth_read=${stat[19]}
}
# born PID: says it
born() { read_birth "$1"; [ -z "$birth_read" ] || echo "$birth_read"; }
# own PID...: the script's own, from now on
own() { local pid; for pid; do read_birth "$pid"; started+=("$pid $birth_read"); done; }
# signal_owned SIGNAL PID...: those that are its own and have not ended
signal_owned() {
	local signal=$1 pid one
	shift
	for pid; do
		for one in "${started[@]}"; do
			[ "${one% *}" = "$pid" ] || continue
			read_birth "$pid"
			[ "$birth_read" != "${one#* }" ] || kill "-$signal" "$pid" 2>/dev/null || true
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
