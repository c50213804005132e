#!/usr/bin/env bash
# Arguments by name over machines: types come from the asking machine's file; a machine that runs
# another build of it refuses, since its structures lie otherwise.
# The asking side is outside of the nodes' process namespaces and sees their programs: the one of
# least number is where it takes the types from.
. "$(dirname "$0")/lib.sh"
command -v gcc >/dev/null || skip "gcc is not installed"
server 0 -js -sd "$work/store"
# build DIRECTORY ORDER [OPTIONS...]: a program whose structure has its members in that order
build() {
	mkdir -p "$1"
	cat >"$1/worker.c" <<-END
		#include <stdio.h>
		struct request { int $2; };
		__attribute__((noinline, noclone)) int handle(struct request *request, int size)
		{
			__asm__ volatile("" ::: "memory");
			return request->fd + size;
		}
		int main(void)
		{
			int count, done = 0;
			puts("did 0");
			fflush(stdout);
			while (scanf("%d", &count) == 1) {
				for (int i = 0; i < count; i++) {
					struct request request = { .fd = 3, .kind = i % 2 };
					handle(&request, 10);
				}
				printf("did %d\n", done += count);
				fflush(stdout);
			}
			return 0;
		}
	END
	gcc -g -O2 "${@:3}" -o "$1/worker" "$1/worker.c"
}
build same "fd, kind"
build other "kind, fd"
build none "fd, kind" -Wl,--build-id=none
for n in 1 2 3; do agent $n; done
begin() {
	for n in 1 2 3; do
		[ $n = 3 ] && TARGET=$work/other/worker || TARGET=$work/same/worker
		CALLS=$TARGET target $n
	done
}
begin
# process numbers began anew in between
while [ "${targets[3]}" -lt "${targets[1]}" ] && [ "${targets[3]}" -lt "${targets[2]}" ]; do
	for n in 1 2 3; do kill_target $n; done
	begin
done
query='from e in cluster.Function("worker!handle") group e by e.request->kind into g
	select new { kind = g.Key, n = g.Count(), size = g.Sum(x => x.size) }'
before=$(text_hash "${targets[3]}" worker)
ask --await 3 --comm worker "$query"
contains "the machine with another build says so" trace.err "node3 does not trace: process"
contains "why" trace.err \
	"runs another build of worker!handle than the one whose types the query uses"
equal "its program is untouched" "$before" "$(text_hash "${targets[3]}" worker)"
for n in 1 2 3; do calls $n 1000; done
until_rows 'map(.n) | add' 2000
end_ask
equal "groups by a named member" '[[0,1000,10000],[1,1000,10000]]' \
	"$(jq -sc '[.[] | select(.type == "row" and .final) | .values | [.kind, .n, .size]] |
		sort' trace.json)"
equal "finished, refused" "2 1" "$(coverage finished) $(coverage refused)"

# Arguments by name of calls that have ended.
ask --await 3 --comm worker \
	'from r in cluster.Return("worker!handle") where r.size == 10 group r by r.ReturnValue
		into g select new { value = g.Key, n = g.Count() }'
for n in 1 2 3; do calls $n 1000; done
until_rows 'map(.n) | add' 2000
end_ask
equal "results by a named argument" '[[13,2000]]' \
	"$(jq -sc '[.[] | select(.type == "row" and .final) | .values | [.value, .n]]' trace.json)"

# A query whose asking side goes away: who attaches needs the file as it was.
id=$("$FAY" trace --cluster "$URL" --key asker.key "${ASK_OPTIONS[@]}" --await 3 --detach \
	--every 100ms --comm worker "$query" 2>detach.err) || {
	cat detach.err >&2
	fail "detach"
}
for n in 1 2 3; do calls $n 1000; done
cp other/worker newer
mv same/worker older
mv newer same/worker
exits "attaching with another build" 2 "$FAY" attach "$id" --cluster "$URL" --key asker.key \
	"${ASK_OPTIONS[@]}"
# Where this runs below a root directory of its own, paths of programs in other mount namespaces are
# told as seen from without, and lead nowhere.
told=$(sed -n 's/.*the query.s names come from \(.*\) as it was when.*/\1/p' "$work/err")
if [ -e "$told" ]; then
	contains "why" "$work/err" \
		"same/worker as it was when the query was started, and this machine has another build"
	mv -f older same/worker
	"$FAY" attach "$id" --cluster "$URL" --key asker.key "${ASK_OPTIONS[@]}" --json \
		--stop >trace.json 2>trace.err || { cat trace.err >&2; fail "attach"; }
	equal "a detached query's groups by a named member" '[[0,1000,10000],[1,1000,10000]]' \
		"$(jq -sc '[.[] | select(.type == "row" and .final) | .values |
			[.kind, .n, .size]] | sort' trace.json)"
else
	contains "why" "$work/err" \
		"as it was when the query was started, and it cannot be read here"
	mv -f older same/worker
	echo "SKIPPED: attaching with the same build, which has another path here than the" \
		"program's process says"
fi

# Now the only one that runs is of the other build.
for n in 1 2; do kill_target $n; done
ask --await 3 --comm worker "$query"
calls 3 100
until_rows 'map(.n) | add' 100
end_ask
equal "asked by the other build's types" '[[0,50,500],[1,50,500]]' \
	"$(jq -sc '[.[] | select(.type == "row" and .final) | .values | [.kind, .n, .size]] |
		sort' trace.json)"

# None runs: the types are those of what would be run. A file that cannot be compared with other
# machines' is refused, as is what cannot be asked of a cluster.
kill_target 3
asks() {
	PATH=$work/$1:$PATH "$FAY" trace --cluster "$URL" --key asker.key "${ASK_OPTIONS[@]}" \
		--await 3 --for 1s --comm worker "${@:2}"
}
exits "a file without a build ID" 1 asks none "$query"
contains "why" "$work/err" "has no build ID"
exits "a name that is none" 2 asks same 'cluster.Function("worker!handle").Count(e => e.sizes == 1)'
contains "why" "$work/err" 'did you mean `size`?'
