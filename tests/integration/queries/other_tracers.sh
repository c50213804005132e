#!/usr/bin/env bash
# The commands of docs/internals/other-tracers.md that are Fay's: those that need no server are run,
# the others are planned.
host=1
. "$(dirname "$0")/../lib.sh"
page=$(realpath "$(dirname "$0")/../../../docs/internals/other-tracers.md")
needs_bpf
PATH=$(dirname "$FAY"):$PATH
cd "$work"
# the last column's
awk -F' \\| ' '/^\| .* \| .* \| .* \|$/ { print $3 }' "$page" |
	grep -oE '`(fay|babeltrace2)[^`]*`' | tr -d '`' >commands
[ "$(awk '/^\|/' "$page" | grep -c '`fay ')" -ge 25 ] || fail "fewer than 25 features"
while read -r command; do
	code=0
	case $command in
	"fay top") continue ;; # tests/cli/interactive.sh
	"fay serve "*) continue ;; # tests/cli/dashboard.sh
	*'"shop!'*) ! command -v shop >/dev/null || fail "there is a program shop"
		command='fay explain '"'${command#*\'}" ;;
	*--comm* | *--cgroup*) command=$(sed -E 's/^fay trace/fay explain/
		s/ --(comm|cgroup|cluster|for) [^ ]+//g' <<<"$command") ;;
	esac
	eval "$command" >out 2>err </dev/null || code=$?
	[ $code = 0 ] || { cat err >&2; fail "exit code $code: $command"; }
	case $command in *" -o "* | *--save* | *--ctf*) : ;; *)
		[ -s out ] || { cat err >&2; fail "nothing: $command"; } ;; esac
	echo "ok: $command"
done <commands
