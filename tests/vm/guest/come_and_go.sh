# Inside the machine: come_and_go NUMBER: so many sessions attached and detached, eight at a time,
# at functions of their own, which are called meanwhile.
come_and_go() {
	local functions="__x64_sys_getpgid __x64_sys_close __x64_sys_access vfs_read vfs_open vfs_statx __x64_sys_brk mmput" \
		function begun load
	kernel_sessions cycles /probes/pair.fay 16 kernel!vfs_read >/dev/null # caches are warm
	memory_mark
	begun=$(cut -d. -f1 /proc/uptime)
	while :; do
		kernel_calls getpgid 50 sleep 1 badclose 50 sleep 1 access 50 sleep 1 read 50
		sleep 0.1
	done &
	load=$!
	for function in $functions; do
		(kernel_sessions cycles /probes/pair.fay $(($1 / 8)) kernel!$function
			echo $? >/tmp/cycles.$function) &
	done
	for function in $functions; do
		while [ ! -s /tmp/cycles.$function ]; do sleep 1; done
		check "cycles at $function" 0 "$(cat /tmp/cycles.$function)"
	done
	kill $load
	wait $load 2>/dev/null
	echo "   $1 cycles in $(($(cut -d. -f1 /proc/uptime) - begun)) s of the machine's"
	memory_check "cycles"
}
