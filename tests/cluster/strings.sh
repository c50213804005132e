#!/usr/bin/env bash
# Long strings over machines: one group for one string wherever it is, its text once from each.
. "$(dirname "$0")/lib.sh"
command -v gcc >/dev/null || skip "gcc is not installed"
server 0
cat >worker.c <<-'END'
	#include <stdio.h>
	#include <string.h>
	static const char *volatile last;
	__attribute__((noinline, noclone)) void said(const char *text)
	{
		last = text;
	}
	int main(void)
	{
		int count, done = 0;
		char text[4096];
		puts("did 0");
		fflush(stdout);
		while (scanf("%d", &count) == 1) {
			for (int i = 0; i < count; i++) {
				memset(text, 'x', sizeof(text));
				snprintf(text + i % 5 * 900, 400, "the end of string %d", i % 5);
				said(text);
			}
			printf("did %d\n", done += count);
			fflush(stdout);
		}
		return 0;
	}
END
gcc -O2 -o worker worker.c
for n in 1 2 3; do agent $n; done
for n in 1 2 3; do TARGET=$work/worker CALLS=$work/worker target $n; done
ask --await 3 --comm worker 'from e in cluster.Function("worker!said")
	where e.Arg(0).Text.Contains("the end of string")
	group e by e.Arg(0).Text into g orderby g.Key.Length
	select new { text = g.Key, n = g.Count() }'
for n in 1 2 3; do calls $n 1000; done
until_rows 'map(.n) | add' 3000
end_ask
equal "groups" "$(for i in 0 1 2 3 4; do
	echo "$(printf "%$((i * 900))s" "" | tr ' ' x)the end of string $i 600"
done)" "$(jq -r 'select(.type == "row" and .final) | .values | "\(.text) \(.n)"' trace.json)"
