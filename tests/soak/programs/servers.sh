# Servers on 127.0.0.1, while clients check what they answer.

# On a port that is free for TCP just now
port() {
	for _ in $(seq 20); do port=$(random_port);
		(exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null || return 0; done
}
connects() { (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; }

program memcached C memcached
memcached_check() {
	local reply i
	exec 3<>"/dev/tcp/127.0.0.1/$port" || return 1
	for i in $(seq 200); do
		printf 'set key%d 0 0 %d\r\nvalue%d\r\nget key%d\r\nincr n 1\r\n' "$i" $((5 + \
			${#i})) "$i" "$i" >&3
		read -r reply <&3; [ "$reply" = $'STORED\r' ] || { echo "set: $reply"; return 1; }
		read -r reply <&3; [ "$reply" = "VALUE key$i 0 $((5 + ${#i}))"$'\r' ] || {
			echo "get: $reply"; return 1; }
		read -r reply <&3; [ "$reply" = "value$i"$'\r' ] || { echo "value: $reply";
			return 1; }
		read -r reply <&3; [ "$reply" = $'END\r' ] || return 1
		read -r reply <&3; [ "$reply" = $'NOT_FOUND\r' ] || return 1
	done
	exec 3>&-
}
memcached_() {
	port
	subject /usr/bin/memcached memcached libevent-2.1 libc
	server connects memcached_check /usr/bin/memcached -u nobody -l 127.0.0.1 -p "$port" -U 0 \
		-t 4
}

web_files() { mkdir "$work/www"; seq 20000 >"$work/www/file"; chmod -R a+rX "$work"; }
web_check() {
	local i
	for i in 1 2 3 4 5; do
		[ "$(curl -s -H "X-Try: $i" "http://127.0.0.1:$port/file" | sha256sum)" = \
			"$(sha256sum <"$work/www/file")" ] || { echo "the file differs"; return 1; }
	done
	[ "$(curl -s -o /dev/null -w '%{http_code}' "http://127.0.0.1:$port/none")" = 404 ] || {
		echo "not 404"; return 1; }
}
program lighttpd C lighttpd curl
lighttpd_() {
	port
	web_files
	printf \
		'server.document-root = "%s/www"\nserver.port = %s\nserver.bind = "127.0.0.1"\nserver.modules = ("mod_deflate")\n' \
		"$work" "$port" >"$work/conf"
	subject /usr/sbin/lighttpd
	server connects web_check /usr/sbin/lighttpd -D -f "$work/conf"
}
program apache2 C apache2-bin curl
apache2_() {
	port
	web_files
	m=/usr/lib/apache2/modules
	cat >"$work/conf" <<-END
		ServerName localhost
		Listen 127.0.0.1:$port
		PidFile $work/pid
		ErrorLog $work/error
		LoadModule mpm_event_module $m/mod_mpm_event.so
		LoadModule authz_core_module $m/mod_authz_core.so
		LoadModule deflate_module $m/mod_deflate.so
		DocumentRoot $work/www
		User nobody
		Group nogroup
	END
	subject /usr/sbin/apache2 apache2 libapr-1 libaprutil-1 libc
	server connects web_check /usr/sbin/apache2 -X -f "$work/conf"
}
program haproxy C haproxy curl python3-minimal
haproxy_() {
	port
	web_files
	local front=$port
	port
	(cd "$work/www" && exec python3 -m http.server --bind 127.0.0.1 "$port") >"$work/back.out" \
		2>&1 &
	own "$!"
	await "the server behind" connects
	cat >"$work/conf" <<-END
		global
		  nbthread 2
		defaults
		  mode http
		  timeout connect 60s
		  timeout client 60s
		  timeout server 60s
		frontend f
		  bind 127.0.0.1:$front
		  default_backend b
		backend b
		  server s 127.0.0.1:$port
	END
	port=$front
	subject /usr/sbin/haproxy
	server connects web_check /usr/sbin/haproxy -db -f "$work/conf"
}
program squid C++ squid curl python3-minimal
squid_check() {
	local i
	for i in 1 2 3; do
		[ \
			"$(curl -s -x "http://127.0.0.1:$port" "http://127.0.0.1:$back/file" |
			sha256sum)" = "$(sha256sum <"$work/www/file")" ] ||
			{ echo "the file differs"; return 1; }
	done
}
squid_() {
	port
	web_files
	back=$port
	(cd "$work/www" && exec python3 -m http.server --bind 127.0.0.1 "$back") >"$work/back.out" \
		2>&1 &
	own "$!"
	await "the server behind" connects
	port
	mkdir -m 777 "$work/var"
	cat >"$work/conf" <<-END
		http_port 127.0.0.1:$port
		http_access allow localhost
		cache_log $work/var/cache.log
		access_log none
		pid_filename $work/var/pid
		coredump_dir $work/var
		pinger_enable off
		shutdown_lifetime 1 second
		visible_hostname localhost
		cache deny all
		netdb_filename none
		icon_directory /usr/share/squid/icons
		error_directory /usr/share/squid/errors/en
		mime_table /usr/share/squid/mime.conf
	END
	subject /usr/sbin/squid
	server connects squid_check /usr/sbin/squid -N -f "$work/conf"
}

# names_are WANT: of name.test, by whatever DNS server is at the port
answers() { [ "$(dig +short +tries=1 +time=20 @127.0.0.1 -p "$port" "$1.soak.test" A 2>/dev/null)" \
	= "$2" ]; }
dns_ready() { answers one 10.1.2.3; }
dns_check() {
	local i
	for i in 1 2 3 4 5; do
		answers one 10.1.2.3 && answers two 10.4.5.6 || { echo "not the address";
			return 1; }
	done
}
program dnsmasq C dnsmasq-base bind9-dnsutils
dnsmasq_() {
	port
	subject /usr/sbin/dnsmasq
	server dns_ready dns_check /usr/sbin/dnsmasq -k -C /dev/null -p "$port" -a 127.0.0.1 -z -R \
		-h -u nobody -g nogroup --pid-file= --address=/one.soak.test/10.1.2.3 \
		--address=/two.soak.test/10.4.5.6
}
zone() {
	cat >"$work/zone" <<-'END'
		$ORIGIN soak.test.
		$TTL 60
		@ IN SOA ns root 1 60 60 60 60
		@ IN NS ns
		ns IN A 127.0.0.1
		one IN A 10.1.2.3
		two IN A 10.4.5.6
	END
}
program named C bind9 bind9-dnsutils
named_() {
	port
	zone
	cat >"$work/conf" <<-END
		options { directory "$work"; listen-on port $port { 127.0.0.1; }; listen-on-v6 { none; }; pid-file "$work/pid"; recursion no; session-keyfile "$work/key"; dnssec-validation no; };
		controls { };
		zone "soak.test" { type primary; file "$work/zone"; };
	END
	subject /usr/sbin/named named $(ldd /usr/sbin/named |
		sed -n 's,.*/\(lib\(dns\|isc\|ns\)-.*\)\.so .*,\1,p') libc
	server dns_ready dns_check /usr/sbin/named -f -c "$work/conf" -n 2
}
program unbound C unbound bind9-dnsutils
unbound_() {
	port
	cat >"$work/conf" <<-END
		server:
		 interface: 127.0.0.1
		 port: $port
		 do-daemonize: no
		 chroot: ""
		 username: ""
		 directory: "$work"
		 pidfile: "$work/pid"
		 use-syslog: no
		 num-threads: 2
		 module-config: "iterator"
		 local-zone: "soak.test." static
		 local-data: "one.soak.test. A 10.1.2.3"
		 local-data: "two.soak.test. A 10.4.5.6"
		remote-control:
		 control-enable: no
	END
	subject /usr/sbin/unbound
	server dns_ready dns_check /usr/sbin/unbound -d -c "$work/conf"
}
program slapd C slapd ldap-utils
slapd_ready() { ldapsearch -x -H "ldap://127.0.0.1:$port" -b "" -s base >/dev/null 2>&1; }
slapd_check() {
	local i
	for i in 1 2 3; do
		printf \
			'dn: cn=a%d,dc=test\nchangetype: add\nobjectClass: device\ncn: a%d\nserialNumber: %d\n\n' \
			$i $i $((i * 7)) | ldapmodify -x -H "ldap://127.0.0.1:$port" \
			-D cn=admin,dc=test -w x || return 1
		[ \
			"$(ldapsearch -x -LLL -H "ldap://127.0.0.1:$port" -b dc=test \
			"(&(serialNumber=$((i * 7)))(cn=a$i))" serialNumber |
			sed -n 's/serialNumber: //p')" = $((i * 7)) ] ||
			{ echo "not found"; return 1; }
		ldapdelete -x -H "ldap://127.0.0.1:$port" -D cn=admin,dc=test -w x \
			"cn=a$i,dc=test" || return 1
	done
}
slapd_() {
	port
	mkdir "$work/db"
	cat >"$work/conf" <<-END
		include /etc/ldap/schema/core.schema
		modulepath /usr/lib/ldap
		moduleload back_mdb
		pidfile $work/pid
		database mdb
		maxsize 10000000
		dbnosync
		suffix dc=test
		rootdn cn=admin,dc=test
		rootpw x
		directory $work/db
	END
	printf \
		'dn: dc=test\nobjectClass: dcObject\nobjectClass: organization\ndc: test\no: test\n' \
		| slapadd -f "$work/conf" >/dev/null 2>&1
	subject /usr/sbin/slapd
	server slapd_ready slapd_check /usr/sbin/slapd -d 0 -f "$work/conf" -h \
		"ldap://127.0.0.1:$port"
}
program mosquitto C mosquitto mosquitto-clients
mosquitto_check() {
	local i
	for i in 1 2 3; do
		mosquitto_pub -h 127.0.0.1 -p "$port" -q 1 -r -t "t/$i" -m "message $i" || return 1
		[ "$(mosquitto_sub -h 127.0.0.1 -p "$port" -q 1 -C 1 -W 60 -t "t/$i")" = \
			"message $i" ] || { echo "not the message"; return 1; }
	done
}
mosquitto_() {
	port
	printf 'listener %s 127.0.0.1\nallow_anonymous true\nuser root\n' "$port" >"$work/conf"
	subject /usr/sbin/mosquitto
	server connects mosquitto_check /usr/sbin/mosquitto -c "$work/conf"
}
