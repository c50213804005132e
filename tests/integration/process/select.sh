#!/usr/bin/env bash
# Processes by their command line, user and cgroup: which are traced, and which are not.
. "$(dirname "$0")/../lib.sh"
count='cluster.Function("follow_target!work").Count()'
chmod 755 "$work"
cp "$(dirname "$FAY")/follow_target" "$work/follow_target"
chmod 755 "$work/follow_target"
mkfifo "$work"/in{1,2,3}
# start N CALLS [COMMAND...]: waits twice; its line goes into descriptor 10 + N
start() {
	local n=$1 calls=$2
	shift 2
	eval "exec 1$n<>$work/in$n"
	"$@" "$work/follow_target" wait calls "$calls" fork 2 "$calls" wait \
		<"$work/in$n" >"$work/out$n" &
	eval "pid$n=\$!"
	own $!
	wait_for "$work/out$n" waiting
}
# three programs: of 10, 100 and 1,000 calls each with as many of two children; the second another
# user's
all() { # WHAT EXPECTED OPTION...
	start 1 10
	start 2 100 setpriv --reuid=nobody --clear-groups
	start 3 1000
	[ -z "${into:-}" ] || echo "$pid3" >"$into/cgroup.procs"
	trace "${@:3}" "$count"
	for n in 1 2 3; do eval "echo >&1$n"; wait_for "$work/out$n" waiting 2; done
	end_trace
	for n in 1 2 3; do eval "echo >&1$n"; eval "ended \$pid$n"; done
	equal "$1" "$2" "$(final_sum Count)"
}
all "a name" 3330 --comm follow_target
all "a command line" 30 --cmdline 'wait calls 10 '
all "one of several command lines" 3030 --cmdline 'wait calls (10|1000) '
all "its end" 3330 --cmdline 'fork 2 [0-9]+ wait$'
all "a user" 300 --user nobody
all "a user by number" 300 --user "$(id -u nobody)"
all "a name and a user" 3030 --comm follow_target --user root
all "a user and a command line" 3000 --user 0 --cmdline 'follow_target wait calls 10{3} '
all "without children" 1010 --user root --comm follow_target --no-follow

# Children that are forked while fay attaches are attached to by themselves, before tracing is said
# to have begun; those that are forked later have the parent's patches.
rm -f "$work/held"
"$work/follow_target" hold 150 10 wait <"$work/in1" >"$work/held" &
pid1=$!
own "$pid1"
exec 11>"$work/in1"
trace --comm follow_target "$count"
equal "what is said first" "" "$(grep -n 'more, in process' "$work/trace.err" || true)"
wait_for "$work/held" held
echo >&11
wait_for "$work/held" waiting
end_trace
echo >&11
ended "$pid1"
exec 11>&-
equal "calls of children that were forked meanwhile" 1500 "$(final_sum Count)"

# --- a cgroup: wherever one can be made
for root in /sys/fs/cgroup /sys/fs/cgroup/unified /sys/fs/cgroup/pids /sys/fs/cgroup/systemd; do
	[ -e "$root/cgroup.procs" ] || continue
	into=$root/fay_select_$$.slice/web_$$.service
	mkdir -p "$into" 2>/dev/null && (echo $BASHPID >"$into/cgroup.procs") 2>/dev/null && break
	into=
done
if [ -n "$into" ]; then
	all "a unit of a cgroup" 3000 --cgroup "web_$$.service"
	all "a cgroup by a glob" 3000 --cgroup "web_*"
	all "a path without its first slash" 3000 --cgroup "fay_select_$$.slice/web_$$.service"
	all "a path of cgroups" 3000 --cgroup "/fay_select_$$.slice"
	rmdir "$into" "${into%/*}"
	into=
else
	echo "not run: no cgroup can be made here"
fi

# --- what is wrong
exits "nobody" 1 "$FAY" trace --user nobody --cmdline 'no such words' "$count"
contains "what nobody has" "$work/err" "no process has all of --user nobody --cmdline no such words"
exits "a user who is not there" 2 "$FAY" trace --user no-such-user "$count"
contains "which is said" "$work/err" "there is no user 'no-such-user'"
exits "no expression" 2 "$FAY" trace --cmdline '(' "$count"
contains "why" "$work/err" "is not a regular expression"
exits "with a command" 2 "$FAY" trace --user root "$count" -- true
exits "fay's own words and its parents'" 1 sh -c "'$FAY' trace --cmdline 'only[ ]here' '$count' # only here"
