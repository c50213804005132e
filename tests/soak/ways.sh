#!/usr/bin/env bash
# Which way each function of a program is traced, with all the modules that the program has loaded:
# by jumps, by traps in the kernel, or not at all. A line for calls as they begin, for calls counted
# as they end, and for how long they take; parts of functions and functions that never return are
# left out of the last two. Nothing is patched.
#
#   FAY=build/bin/fay tests/soak/ways.sh [PROGRAM...]
#   WHY=1 ...: behind each line why functions are refused, most frequent reason first
#   KEEP=DIRECTORY: the plans as JSON are left there
host=1
. "$(dirname "$0")/../integration/lib.sh"
bin=$(ls -d /usr/lib/postgresql/*/bin 2>/dev/null | tail -1)
programs="redis postgres mariadb nginx apache memcached python node git chromium"
has() { command -v "$1" >/dev/null || [ -x "$1" ]; }
# run COMMAND...: its pid in $pid
run() {
	"$@" <"$work/never" >"$work/run.out" 2>&1 &
	pid=$!
	own "$pid"
}

redis_() { has redis-server && start_redis && pid=$redis; }
postgres_() { [ -n "$bin" ] && start_postgres && pid=$backend; }
mariadb_() {
	has mariadbd || return 1
	mkdir "$work/mysql"
	mariadb-install-db --no-defaults --user=root --auth-root-authentication-method=normal \
		--datadir="$work/mysql" >"$work/install.out" 2>&1 || return 1
	run mariadbd --no-defaults --user=root --datadir="$work/mysql" --skip-networking \
		--socket="$work/mysql.sock"
	listening "$pid" test -S "$work/mysql.sock"
}
nginx_() {
	has nginx || return 1
	mkdir "$work/www"
	echo yes >"$work/www/file"
	start_nginx "master_process off;" /file
	pid=$nginx
}
apache_() {
	has apache2 || return 1
	local m=/usr/lib/apache2/modules
	port=$(random_port)
	cat >"$work/apache.conf" <<-END
		ServerName localhost
		Listen 127.0.0.1:$port
		PidFile $work/apache.pid
		ErrorLog $work/apache.log
		LoadModule mpm_event_module $m/mod_mpm_event.so
		LoadModule authz_core_module $m/mod_authz_core.so
		LoadModule deflate_module $m/mod_deflate.so
		DocumentRoot $work
		User nobody
		Group nogroup
	END
	run apache2 -X -f "$work/apache.conf"
	listening "$pid" curl -s -o "$work/got" "http://127.0.0.1:$port/"
}
memcached_() {
	has memcached || return 1
	port=$(random_port)
	run memcached -u nobody -l 127.0.0.1 -p "$port" -U 0
	listening "$pid" bash -c "exec 3<>/dev/tcp/127.0.0.1/$port" 2>/dev/null
}
python_() { has /usr/bin/python3 && run /usr/bin/python3 -ic "import ssl, json; print('up')" && is_up; }
node_() { has node && run node -e "setInterval(() => {}, 1000); console.log('up')" && is_up; }
git_() { has git && run git -C "$(dirname "$0")" cat-file --batch && rest 5; }
chromium_() {
	has /usr/lib/chromium/chromium || return 1
	HOME=$work run /usr/lib/chromium/chromium --headless --no-sandbox --disable-gpu \
		--user-data-dir="$work/chromium" --remote-debugging-port=0 about:blank
	wait_for "$work/run.out" "DevTools listening"
}
is_up() { wait_for "$work/run.out" up; }

# line PROGRAM WHAT QUERY [LEAVE-OUT]
line() {
	local plan=${KEEP:-$work}/$1.$2.json
	timeout 1200 "$FAY" explain --json -p "$pid" "$3" >"$plan" 2>"$work/explain.err" || {
		echo "$1 | $2 | $(tail -n 1 "$work/explain.err" | cut -c1-160)"
		return 0
	}
	jq -rs --arg p "$1" --arg w "$2" --arg out "${4:-nothing is so}" --arg why "${WHY:-}" '
		def count(f): map(select(f)) | length;
		map(select(.type != "not_traced" or (.reason | test($out) | not))) |
		count(.type == "point") as $jumps | count(.type == "not_traced" and .trap) as $traps |
		map(select(.type == "not_traced" and (.trap | not))) as $refused |
		($refused | length) as $no | ($jumps + $traps + $no) as $all |
		"\($p) | \($w) | \($jumps) | \($traps) | \($no) (\(1e5 * $no / ([$all, 1] | max) |
			round / 1e3) %)",
		(if $why == "" then empty else
			$refused | map(.reason | gsub("(at|to|of|from|in) [^ ;,]*[+][-0-9a-fx]+"; "\(.)";
				"") | gsub("[-+]?0x[0-9a-f]+|[+][0-9a-f]+"; "N") | gsub("[0-9]+"; "N")) |
			group_by(.) | sort_by(-length)[] | "    \(length) \(.[0])"
		end)' "$plan"
}

mkfifo "$work/never"
exec 8<>"$work/never"
chmod 755 "$work"
# __restore_rt, which unwinders know by its bytes, does not return either
apart="is not entered by a call|never returns|recognised by its bytes"
echo "program | asked for | jumps | traps | refused"
for name in ${*:-$programs}; do
	pid=
	"${name}_" || {
		echo "$name | not here"
		continue
	}
	line "$name" entries 'cluster.Function("*!*").Count()'
	line "$name" returns 'cluster.Return("*!*").Count()' "$apart"
	line "$name" durations 'cluster.Return("*!*").Max(r => r.Duration)' "$apart"
	signal_owned KILL "$pid"
done
