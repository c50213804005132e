# The ten programs that tests/soak/ways.sh and exact.sh look at: NAME_ starts one, its pid into
# $pid; it fails where the program is not installed. Sourced behind lib.sh of the integration tests.
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
postgres_() { [ -n "$bin" ] && start_postgres 2>"$work/psql.err" && pid=$backend; }
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
python_() {
	has /usr/bin/python3 && run /usr/bin/python3 -ic "import ssl, json; print('up')" && is_up
}
# evaluates the lines that it reads
node_() {
	has node && run node -e 'require("readline").createInterface({ input: process.stdin })
		.on("line", line => (0, eval)(line)); console.log("up")' && is_up
}
git_() { has git && run git -C "$(dirname "$0")" cat-file --batch && rest 5; }
chromium_() {
	has /usr/lib/chromium/chromium || return 1
	HOME=$work run /usr/lib/chromium/chromium --headless --no-sandbox --disable-gpu \
		--user-data-dir="$work/chromium" --remote-debugging-port=0 about:blank
	wait_for "$work/run.out" "DevTools listening"
}
is_up() { wait_for "$work/run.out" up; }

mkfifo "$work/never" # what run's programs read
exec 8<>"$work/never"
chmod 755 "$work"
