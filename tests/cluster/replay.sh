#!/usr/bin/env bash
# A recorded query that is sent again does nothing, also after more strangers' queries than an agent
# remembers; these do not fill the audit log.
. "$(dirname "$0")/lib.sh"
TARGET=$CALLS
server 0
agent 1
target 1
"$FAY" cluster keygen stranger >/dev/null 2>&1
mkfifo said
"$REPLAY" "$URL" stranger.key 2000 <said >replay.out &
replay=$!
own "$replay"
exec 30>said
wait_for replay.out listening

once() {
	ask --await 1 --comm cluster_target 'cluster.Function("cluster_target!counted").Count()'
	calls 1 1000
	until_rows '.[0].Count' 1000
	end_ask
}
once
wait_for replay.out heard
echo >&30
ended "$replay" || fail "the eavesdropper's exit code is $?"
once # behind all of them
equal "queries that were started" 2 "$(jq -s 'map(select(.outcome == "accepted")) | length' audit1)"
strangers=$(jq -s 'map(select(.signer == "")) | length' audit1)
[ "$strangers" -ge 1 ] && [ "$strangers" -lt 200 ] || fail "$strangers lines of strangers"
echo "ok: 2000 strangers' queries, less than 200 lines of them"
