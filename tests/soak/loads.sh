# What the ten programs of starts.sh do while exact.sh counts: NAME_load N, for the Nth time,
# returns when it is done. Sourced behind starts.sh.
inputs=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/inputs
# input FILE N: with N for @N@, and the folder of this run for @WORK@
input() { sed -e "s,@N@,$2,g" -e "s,@WORK@,$work,g" "$inputs/$1"; }

redis_load() {
	{
		input redis.txt "$1"
		seq -f 'HSET many%g field value%g' 50
		seq -f 'ZADD big %g member%g' 200
	} | redis-cli -p "$port"
}

postgres_load() {
	input postgres.sql "$1" >&9
	wait_for "$work/psql.out" "worked $1"
}

mariadb_load() {
	mariadb --no-defaults -S "$work/mysql.sock" -f <"$inputs/mariadb.sql"
}

nginx_load() {
	local at="http://127.0.0.1:$port" some=(-s -o "$work/got")
	seq 3000 >"$work/www/long"
	curl "${some[@]}" "$at/file" --next "${some[@]}" -r 5-90 "$at/long" --next "${some[@]}" -I \
		"$at/long" --next "${some[@]}" -d x=1 "$at/file" --next "${some[@]}" \
		-H "If-Modified-Since: Mon, 01 Jan 2035 00:00:00 GMT" "$at/long" --next \
		"${some[@]}" -H "X-Long: $(seq -s , 500)" "$at/none/%41?a=b"
	printf 'GET /file HTTP/1.0\r\n\r\n' | timeout 20 bash -c \
		'exec 3<>"/dev/tcp/127.0.0.1/$1"; cat >&3; cat <&3' - "$port"
	printf 'broken\r\n\r\n' | timeout 20 bash -c \
		'exec 3<>"/dev/tcp/127.0.0.1/$1"; cat >&3; cat <&3' - "$port"
}
apache_load() {
	mkdir -p "$work/www"
	seq 3000 >"$work/www/long"
	echo yes >"$work/www/file"
	port=$port nginx_load
}

memcached_load() {
	local i
	{
		for i in $(seq 40); do
			printf 'set k%d %d 0 5\r\nabcde\r\nget k%d k1 none\r\ngets k%d\r\n' $i \
				$i $i $i
		done
		printf 'set n 0 0 1\r\n5\r\nincr n 4\r\ndecr n 2\r\nappend k1 0 0 2\r\nxx\r\n'
		printf 'prepend k2 0 0 2\r\nyy\r\nreplace k3 0 0 1\r\nz\r\nadd k4 0 0 1\r\nz\r\n'
		printf 'touch k5 100\r\ngat 100 k5\r\ncas k6 0 0 1 7\r\nz\r\ndelete k7\r\n'
		printf 'mg k8 v t f\r\nms k9 2\r\nhi\r\nmd k9\r\nma n\r\nmn\r\nstats\r\n'
		printf 'stats items\r\n'
		printf 'stats slabs\r\nstats settings\r\nstats conns\r\nverbosity 1\r\nnonsense\r\n'
		printf 'get %s\r\nflush_all\r\nversion\r\nquit\r\n' "$(printf %0300d 1)"
	} >"$work/commands"
	timeout 60 bash -c 'exec 3<>"/dev/tcp/127.0.0.1/$1"; cat "$2" >&3; cat <&3' - "$port" \
		"$work/commands"
}

python_load() {
	input python.txt "$1" >&8
	wait_for "$work/run.out" "worked $1"
}

node_load() {
	input node.txt "$1" >&8
	wait_for "$work/run.out" "worked $1"
}

git_load() {
	printf '%s\n' HEAD 'HEAD^{tree}' HEAD~5 HEAD:README.md HEAD:docs 'HEAD^{/loader}' :/tests \
		'HEAD@{0}' main~3:CMakeLists.txt HEAD:./lib.sh HEAD^2 none 'HEAD:docs/testing.md' \
		"worked-$1" >&8
	wait_for "$work/run.out" "worked-$1 missing"
}

chromium_load() {
	local at tab page
	at=$(sed -n 's,.*ws://\(127[^/]*\)/.*,http://\1,p' "$work/run.out")
	page="data:text/html,<h1>$1</h1><script>document.title=$1</script>"
	tab=$(curl -s -X PUT "$at/json/new?$page" | jq -r .id)
	curl -s -o "$work/got" "$at/json/version" --next -s -o "$work/got" "$at/json/list" \
		--next -s -o "$work/got" "$at/none" --next -s -o "$work/got" "$at/json/protocol"
	rest 5
	curl -s "$at/json/close/$tab"
	rest 2
}
