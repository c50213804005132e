#!/usr/bin/env bash
# Who may ask, what a signer may ask for, which machines count, what goes over the network; and the
# audit log.
. "$(dirname "$0")/lib.sh"
command -v openssl >/dev/null || skip "openssl is not installed"
TARGET=$CALLS

# Certificates of an authority of our own.
make_certificate() { # NAME SUBJECT-ALTERNATIVE-NAME
	openssl req -new -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes \
		-keyout "$1.pem.key" -out "$1.csr" -subj "/CN=$1" 2>/dev/null
	openssl x509 -req -in "$1.csr" -CA ca.pem -CAkey ca.pem.key -CAcreateserial -days 2 \
		-out "$1.pem" -extfile <(echo "subjectAltName=$2") 2>/dev/null
}
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout ca.pem.key \
	-out ca.pem -days 2 -subj /CN=test 2>/dev/null
make_certificate server "IP:$subnet.1"
server 0 --tls --tlscert server.pem --tlskey server.pem.key --user fay --pass secret

# Plain, or without credentials: refused before anything is sent.
exits "a plain connection" 1 "$FAY" cluster status --cluster "nats://fay:secret@$subnet.1:4000" \
	--key asker.key
contains "why" "$work/err" "has no TLS"
exits "no credentials" 1 "$FAY" cluster status --cluster "tls://$subnet.1:4000" --ca ca.pem \
	--key asker.key
contains "why" "$work/err" "no credentials"
exits "an agent without TLS" 1 "$FAYD" --url "nats://fay:secret@$subnet.1:4000" --key asker.key \
	--signers signers
exits "a wrong password" 1 "$FAY" cluster status --cluster "tls://fay:wrong@$subnet.1:4000" \
	--ca ca.pem --key asker.key
exits "an unknown authority" 1 "$FAY" cluster status --cluster "tls://fay:secret@$subnet.1:4000" \
	--key asker.key
exits "no key" 2 "$FAY" cluster status --cluster "tls://fay:secret@$subnet.1:4000" --ca ca.pem
chmod 644 asker.key
exits "a key that all can read" 2 "$FAY" cluster status \
	--cluster "tls://fay:secret@$subnet.1:4000" --ca ca.pem --key asker.key
chmod 600 asker.key

# With TLS and a password all goes as in the other tests; node 3 has a stranger's key.
NODE_OPTIONS=(--ca ca.pem)
ASK_OPTIONS=(--ca ca.pem)
URL=tls://fay:secret@$subnet.1:4000
for key in vendor stranger; do "$FAY" cluster keygen $key >/dev/null 2>&1; done
cat >vendor.policy <<'END'
tracepoints = libc!*
max_instructions = 2000
END
echo "signer vendor $(cat vendor.pub) $work/vendor.policy" >>signers
for n in 1 2 3; do agent $n; target $n; done
for n in 1 2; do echo "machine node$n $(cat node$n.pub)"; done >machines
ask --await 2 --machines machines --comm cluster_target \
	'cluster.Function("cluster_target!counted").Count()'
for n in 1 2 3; do calls $n 1000; done
until_rows '.[0].Count' 2000
until_more unknown 0
end_ask
equal "total over TLS, of the known machines" 2000 "$(total Count)"
equal "machines asked" 2 "$(coverage asked)"
equal "the audit log's lines" 1 "$(wc -l <audit1)"
equal "who, what, outcome" \
	'["ops","cluster.Function(\"cluster_target!counted\").Count()",["cluster_target"],"accepted"]' \
	"$(jq -c '[.signer, .text, .processes, .outcome]' audit1)"
equal "a hash of the image" 64 "$(jq -r .image_sha256 audit1 | tr -d '\n' | wc -c)"

# A signer's policy holds on the agent, which verifies by itself.
asks_as() {
	"$FAY" trace --cluster "$URL" "${ASK_OPTIONS[@]}" --key "$1.key" --await 3 --for 1s \
		--comm cluster_target "${@:2}"
}
exits "a signer's tracepoints" 1 asks_as vendor 'cluster.Function("cluster_target!counted").Count()'
contains "the rule is named" "$work/err" "POL-TRACEPOINT"
exits "a stranger" 1 asks_as stranger 'cluster.Function("cluster_target!counted").Count()'
contains "why" "$work/err" "not among this machine's signers"
equal "each is in the audit log" '["accepted","vendor",""]' \
	"$(jq -sc '[.[0].outcome, .[1].signer, .[2].signer]' audit1)"
exits "what the signer may" 0 asks_as vendor 'cluster.Function("libc!write").Count()'

# The server's password is changed: who has the old one ends and says so, as does who asks; the
# programs are let go of. With the new one all goes on.
"$FAYD" --url "$URL" --ca ca.pem --key node3.key --signers signers --name host 2>host.log &
host=$!
own "$host"
wait_for host.log "has joined"
before=$(text_hash "${targets[1]}")
ask --await 2 --machines machines --comm cluster_target \
	'cluster.Function("cluster_target!counted").Count()'
patched 1 "$before"
signal_owned KILL "${servers[0]}"
ended "${servers[0]}" || true
server 0 --tls --tlscert server.pem --tlskey server.pem.key --user fay --pass other
code=0
ended "$host" || code=$?
equal "the exit code of an agent that is refused" 1 $code
for log in host.log fayd{1,2,3}.log; do wait_for $log "fayd: NATS has ended the connection: "; done
contains "why" host.log "uthorization"
tries eval '[ "$(text_hash "${targets[1]}")" = "$before" ]' || true
equal "the program's code behind that" "$before" "$(text_hash "${targets[1]}")"
code=0
ended "$tracer" || code=$?
equal "the exit code of who asks" 1 $code
contains "why" trace.err "NATS has ended the connection: "
URL=tls://fay:other@$subnet.1:4000
for n in 1 2 3; do agent $n; done
ask --await 2 --machines machines --comm cluster_target \
	'cluster.Function("cluster_target!counted").Count()'
calls 1 1000
until_rows '.[0].Count' 1000
end_ask

# Signed images: each machine asks its own trust store, and an agent wants signatures of queries,
# too.
cat >probe.c <<'C'
#include <fay/probe.h>

FAY_COUNT(calls);

FAY_ENTRY("cluster_target!counted")
{
	fay_count(&calls);
}
C
"$FAY" cc probe.c -o probe.fay || fail "fay cc"
for key in old new; do "$FAY" cluster keygen $key >/dev/null 2>&1; done
trust() { # ARGUMENT...: on all machines
	for n in 1 2 3; do "$FAY" trust "$@" --store "etc$n/fay/trust" || fail "fay trust $*"; done
}
for n in 1 2 3; do
	cp -a /etc "etc$n" 2>/dev/null || true
	rm -rf "etc$n/fay"
	mkdir "etc$n/fay"
	nsenter -t "${holders[n]}" --mount mount --bind "$work/etc$n" /etc
done
trust add old "$(cat old.pub)" --tracepoints 'cluster_target!*'
trust require 1
probe() { asks_as asker --probe probe.fay; }
count() { asks_as asker 'cluster.Function("cluster_target!counted").Count()'; }
exits "an image that nobody has signed" 1 probe
contains "why" "$work/err" "0 of 1 signatures that are required"
exits "a query of one whom the store does not know" 1 count
contains "why" "$work/err" "who asks is an unknown signer"
"$FAY" sign probe.fay --key old.key || fail "fay sign"

# Another key takes the old one's place, machine by machine, while a query runs, and others begin.
ask --await 3 --comm cluster_target --probe probe.fay
calls 1 100
until_rows 'map(.calls) | max' 100
all_trace() { # NAME
	exits "$1" 0 probe
	contains "on all machines" "$work/err" "on 3 machines of 3"
}
cp probe.fay.sig old.sig
for n in 1 2 3; do "$FAY" trust add new "$(cat new.pub)" --store "etc$n/fay/trust"; done
"$FAY" sign probe.fay --key new.key || fail "fay sign"
"$FAY" trust revoke old --store etc1/fay/trust
all_trace "the old key is revoked on one machine"
"$FAY" trust revoke old --store etc2/fay/trust
"$FAY" trust revoke old --store etc3/fay/trust
all_trace "on all"
for n in 1 2 3; do calls $n 1000; done
until_rows 'map(.calls) | max' 3100
end_ask
cp probe.fay.sig both.sig
cp old.sig probe.fay.sig
exits "the old key alone" 1 probe
contains "why" "$work/err" "old: the key is revoked"
sed 's/0$/1/;t;s/.$/0/' both.sig >probe.fay.sig
exits "a forged signature" 1 probe
contains "why" "$work/err" "or forged"
cp both.sig probe.fay.sig

# Who asks counts, once, if the store has the key, within its scope; each START is in the log.
trust add ops "$(cat asker.pub)" --tracepoints 'cluster_target!*'
for n in 1 2 3; do "$FAY" trust log "$work/log$n" --store "etc$n/fay/trust"; done
exits "a query of one whom the store knows" 0 count
exits "beyond the scope" 1 asks_as asker 'cluster.Function("libc!write").Count()'
contains "why" "$work/err" "ops: not trusted to trace libc!write"
trust require 2
exits "one signer of two" 1 count
all_trace "who asks, and a vendor"
"$FAY" sign probe.fay --key asker.key || fail "fay sign"
"$FAY" sign probe.fay --key new.key || fail "fay sign"
trust require 3
exits "who asks has signed the image, too" 1 probe
contains "counted once" "$work/err" "2 of 3 signatures that are required"
equal "the log" 'accepted install refused refused accepted install refused' \
	"$("$FAY" log show --json log2 | jq -r .event | paste -sd' ')"
equal "who asked, and who signed" ' for ops, signed by new, ops' \
	"$("$FAY" log show --json log2 | jq -r 'select(.number == 5).text | sub("^[^ ]*"; "")')"
for n in 1 2 3; do exits "the log of machine $n is whole" 0 "$FAY" log verify log$n; done
trust require 0
truncate -s -20 log1
exits "a log that was cut" 0 probe
contains "why it is not traced there" "$work/err" "which the trust store asks for"
contains "the others are" "$work/err" "on 2 machines of 3"
for n in 1 2 3; do nsenter -t "${holders[n]}" --mount umount /etc; done

# Wrong turns.
exits "no such program" 1 "$FAY" trace --cluster "$URL" "${ASK_OPTIONS[@]}" --key asker.key \
	--await 3 --comm nothing 'cluster.Function("libc!write").Count()'
contains "why" "$work/err" "no such process"
exits "a command" 2 "$FAY" trace --cluster "$URL" --key asker.key \
	'cluster.Function("libc!write").Count()' -- true
contains "why" "$work/err" "not with a command"
exits "threads" 2 "$FAY" trace --cluster "$URL" --key asker.key --comm x --tid $$ \
	'cluster.Function("libc!write").Count()'
exits "no processes named" 2 "$FAY" trace --cluster "$URL" --key asker.key \
	'cluster.Function("libc!write").Count()'
exits "nobody there" 1 "$FAY" trace --cluster nats://127.0.0.1:1 --key asker.key --comm x \
	'cluster.Function("libc!write").Count()'
contains "where" "$work/err" "cannot connect to NATS at nats://127.0.0.1:1"
echo nonsense >broken
exits "a broken signers file" 2 "$FAYD" --url "$URL" --ca ca.pem --key node1.key --signers broken
contains "its line" "$work/err" "broken:1"
