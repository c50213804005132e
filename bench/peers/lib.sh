# What the peers share; see docs/benchmarking.md.

# needs COMMAND [PACKAGE]: or the mode cannot run
needs() {
	command -v "$1" >/dev/null || {
		echo "$1 is not installed${2:+ (Debian package $2)}"
		exit 1
	}
}

needs_root() { [ "$(id -u)" = 0 ] || { echo "needs root"; exit 1; }; }

# launch READY COMMAND...: runs it in the background; returns once READY stands in what it prints
launch() {
	local ready=$1
	shift
	: >"$PEER_WORK/out"
	"$@" >"$PEER_WORK/out" 2>&1 </dev/null &
	echo $! >"$PEER_WORK/pid"
	for _ in $(seq 1500); do
		[ -n "$ready" ] && ! grep -qs -- "$ready" "$PEER_WORK/out" || return 0
		kill -0 $! 2>/dev/null || break
		sleep 0.02
	done
	cat "$PEER_WORK/out" >&2
	kill -KILL $! 2>/dev/null || true
	exit 1
}

# interrupt [SIGNAL]: ends what launch began, and waits until it is gone; some miss a signal that
# comes while they start, and some throw away what is still to be written at a second one
interrupt() {
	local pid
	pid=$(cat "$PEER_WORK/pid" 2>/dev/null) || return 0
	for attempt in $(seq 3000); do
		[ $((attempt % 500)) -ne 1 ] || kill "-${1:-INT}" "$pid" 2>/dev/null || return 0
		[ -d "/proc/$pid" ] || return 0
		sleep 0.02
	done
	kill -KILL "$pid"
}

# build HEADER-TEXT [COMPILER FLAG...]: the target with a static tracepoint, TRACEPOINT(size), in
# $PEER_WORK/target
build() {
	local header=$1
	shift
	[ $# -gt 0 ] || set -- cc
	printf '%s\n' "$header" >"$PEER_WORK/static.h"
	"$1" -D_GNU_SOURCE -DFAY_BENCH_STATIC="\"$PEER_WORK/static.h\"" -O2 -rdynamic \
		-I"$PEER_WORK" "$PEER_CONTEXT/target.c" -o "$PEER_WORK/target" "${@:2}" \
		-pthread >"$PEER_WORK/build" 2>&1 ||
		{ echo "the target does not build: $(grep -m1 -i error "$PEER_WORK/build")"
		exit 1; }
}
no_tracepoint='#define TRACEPOINT(size)'
marker='#include <sys/sdt.h>
#define TRACEPOINT(size) DTRACE_PROBE1(fay_bench, work, size)'

# offset_in_file FUNCTION FILE: its address, through the segment that holds it
offset_in_file() {
	local address
	address=$((16#$(nm "$2" | awk -v f="$1" '$3 == f {print $1}')))
	readelf -lW "$2" | awk '$1 == "LOAD" {print $2, $3, $5}' | while read -r offset start \
		size; do
		[ "$address" -lt $((start)) ] || [ "$address" -ge $((start + size)) ] ||
			printf '0x%x\n' $((address - start + offset))
	done
}
