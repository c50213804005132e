#!/usr/bin/env bash
# docs/cluster.md, "From nothing to three machines": the lines as they stand there, typed on three
# machines that have what `cmake --install` makes, with TLS and a password. Machines differ from
# real ones in that their scp is a copy and their service is started by the unit's command line, not
# by systemd.
. "$(dirname "$0")/lib.sh"
for needed in redis-server openssl cmake; do
	command -v $needed >/dev/null || skip "$needed is not installed"
done
page=$(dirname "$0")/../../docs/cluster.md
machines=(- hub node1 node2)
cmake --install "$(dirname "$FAY")/.." --prefix "$work/usr" >install.log || {
	cat install.log >&2
	fail "cmake --install"
}

# Each machine has /etc and /var/log of its own, and finds the others by their names.
mkdir bin
cat >bin/scp <<END
#!/bin/sh -e
# scp FILES... root@MACHINE:PATH
for last; do :; done
to=\${last#*@}
while [ \$# -gt 1 ]; do cp "\$1" "$work/etc-\${to%%:*}/\${to#*:/etc/}"; shift; done
END
chmod +x bin/scp
for n in 1 2 3; do echo "$subnet.$((10 + n)) ${machines[n]}"; done >hosts
for n in 1 2 3; do
	node $n
	cp -a /etc "etc-${machines[n]}" 2>/dev/null || true # not what only others' users may read
	rm -rf "etc-${machines[n]}/fay"
	cat hosts >>"etc-${machines[n]}/hosts"
	echo "hosts: files" >"etc-${machines[n]}/nsswitch.conf"
	mkdir "log$n"
	rm -f keys$n
	mkfifo keys$n
	exec {typed[n]}<>keys$n
	within $n unshare --mount --uts sh \
		-c "mount --bind '$work/etc-${machines[n]}' /etc && mount --bind '$work/log$n' /var/log && hostname ${machines[n]} &&
		PATH=$work/bin:$work/usr/bin:\$PATH exec bash" <keys$n >screen$n 2>&1
	within $n redis-server --port 7000 --bind 127.0.0.1 --save "" --appendonly no \
		--dir "$work" >"redis$n.log"
	wait_for "redis$n.log" "Ready to accept connections"
done
commands=0
# types N LINE: into the shell of machine N, which must be done with it in time
types() {
	commands=$((commands + 1))
	printf '%s\necho "done %s: $?"\n' "$2" $commands >&"${typed[$1]}"
	tries grep -q "^done $commands:" screen$1 || true
	! grep -q "^done $commands: 0" screen$1 || return 0
	cat screen$1 >&2
	fail "on ${machines[$1]}: $2"
}
# Lines of the page from a heading or a paragraph on, up to the next: "hub COMMAND" or "each
# COMMAND"
lines_after() {
	sed -n "/^$1/,\$p" "$page" |
		awk '/^    (hub|each)#/ && !over {seen = 1; sub(/^    /, ""); sub(/# */, " ");
			print; next} seen {over = 1}'
}

lines_after "## From nothing to three machines" >ten
equal "lines" 10 "$(wc -l <ten)"
while read -r where command; do
	for n in $([ "$where" = each ] && echo 1 2 3 || echo 1); do
		types $n "$command"
		# what stays in the background is up before anybody has typed the next
		case $command in
		*nats-server*" &") wait_for etc-hub/fay/nats.log "Server is ready" ;;
		*fayd*" &") wait_for screen$n "has joined" ;;
		esac
	done
done <ten
contains "the documented query traces all three" screen1 "tracing 3 processes on 3 machines of 3"
contains "and ends well" screen1 "3 machines queried, 3 finished, 0 refused, 0 late, 0 lost"
grep -Eq '^ *[0-9]+ +[0-9]+' screen1 || { cat screen1 >&2; fail "no table was shown"; }
for n in 1 2 3; do
	equal "the audit log of ${machines[n]}" '["ops","accepted"]' \
		"$(jq -c '[.signer, .outcome]' "log$n/fay.audit")"
done
equal "what others can read of the keys and passwords" "" \
	"$(find etc-hub/fay etc-node1/fay -perm /044 -type f ! -name '*.pub' ! -name '*.pem' \
	! -name '*.log' ! -name signers)"

lines_after "Which machines are there" >shown
equal "lines" 2 "$(wc -l <shown)"
read -r _ command < <(grep status shown)
types 1 "$command >status"
equal "machines in status" "hub node1 node2" \
	"$(awk 'NR > 1 {print $1}' etc-hub/fay/status | sort | xargs)"
read -r _ command < <(grep top shown)
types 1 "$command >top & top=\$!; until [ \$(grep -c '^node2 ' top) -ge 2 ]; do sleep 0.1; done; kill -INT \$top; wait \$top"
echo "ok: top shows all machines again and again"

# The service: the unit's own command line, after the agent that was started by hand was asked to
# end.
types 2 'kill $!; wait $!'
unit=$work/usr/lib/systemd/system/fayd.service
types 2 "$(sed -n 's/^ExecStart=//p' "$unit") 2>service.log &"
types 2 'until grep -q "has joined" service.log; do sleep 0.05; done'
types 1 'fay cluster status --cluster cluster.conf --await 3 >status'

# Wrong turns: the password for others to read, in either file; a server that is not ours.
types 1 'chmod 640 cluster.conf; fay cluster status --cluster cluster.conf; [ $? = 2 ]; chmod 600 cluster.conf'
contains "why" screen1 \
	"cluster.conf:1: a password in a file that users other than its owner can read (chmod 600 cluster.conf)"
types 3 'chmod 644 fayd.conf; fayd --config fayd.conf; [ $? = 2 ]; chmod 600 fayd.conf'
contains "why" screen3 "fayd.conf:1: a password in a file that users other than its owner can read"
types 1 'fay cluster status --cluster nowhere.conf; [ $? = 2 ]'
contains "why" screen1 "cannot open 'nowhere.conf'"
types 1 'sed s/@hub/@node1/ cluster.conf >wrong.conf; fay cluster status --cluster wrong.conf; [ $? = 1 ]'
contains "why, without the password" screen1 "cannot connect to NATS at node1:4222"
