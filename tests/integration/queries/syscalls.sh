#!/usr/bin/env bash
# Arguments of system calls by name, flags and errors in words: row by row what strace prints, on
# several commands. The names beside those of the running kernel.
host=1
. "$(dirname "$0")/../lib.sh"
needs_bpf
command -v strace >/dev/null || skip "strace is not installed"
seq 3000 >"$work/lines"

# Of each call what is asked of fay, how a row is written in strace's form (jq), and what strace
# prints beyond that: addresses, contents, the process's own number (sed -E).
fields_of_openat='e.dfd, e.filename, e.flags, e.mode'
form_of_openat='openat(\(.dfd), \(.filename|tojson), \(.flags)'
form_of_openat+='\(if .flags | test("O_CREAT") then ", \(.mode)" else "" end))'
fields_of_newfstatat='e.dfd, e.filename, e.flag'
form_of_newfstatat='newfstatat(\(.dfd), \(.filename|tojson), BUFFER, \(.flag))'
less_of_newfstatat='s/, (\{.*\}|0x[0-9a-f]+), /, BUFFER, /'
fields_of_access='e.filename, e.mode'
form_of_access='access(\(.filename|tojson), \(.mode))'
fields_of_mmap='e.len, e.prot, e.flags, fd = e.fd'
form_of_mmap='mmap(\(.len), \(.prot), \(.flags), \(.fd))'
less_of_mmap='s/\([^,]*, /(/; s/, [^,]*\) = .*/) = ADDRESS/'
fields_of_mprotect='e.len, e.prot'
form_of_mprotect='mprotect(\(.len), \(.prot))'
less_of_mprotect='s/\([^,]*, /(/'
fields_of_read='e.fd, e.count'
form_of_read='read(\(.fd), \(.count))'
less_of_read='s/, .*, ([0-9]+\) = )/, \1/'
fields_of_lseek='e.fd, e.offset, e.whence'
form_of_lseek='lseek(\(.fd), \(.offset), \(.whence))'
fields_of_close='e.fd'
form_of_close='close(\(.fd))'
fields_of_unlink='e.pathname'
form_of_unlink='unlink(\(.pathname|tojson))'
fields_of_unlinkat='e.dfd, e.pathname, e.flag'
form_of_unlinkat='unlinkat(\(.dfd), \(.pathname|tojson), \(.flag))'
fields_of_mkdir='e.pathname, e.mode'
form_of_mkdir='mkdir(\(.pathname|tojson), \(.mode))'
fields_of_renameat2='e.olddfd, e.oldname, e.newdfd, e.newname, e.flags'
form_of_renameat2='renameat2(\(.olddfd), \(.oldname|tojson), \(.newdfd), '
form_of_renameat2+='\(.newname|tojson), \(.flags))'
# what a protocol is called depends on the family
fields_of_socket='e.family, e.type'
form_of_socket='socket(\(.family), \(.type))'
less_of_socket='s/, [^,]*\) = /) = /'
fields_of_kill='e.sig'
form_of_kill='kill(\(.sig))'
less_of_kill='s/\([0-9]+, /(/'

fields_of_execve='e.filename'
form_of_execve='execve(\(.filename|tojson))'
less_of_execve='1d; s/", .*\) = /") = /' # a command is traced from its first instruction
fields_of_ioctl='e.fd, e.cmd'
form_of_ioctl='ioctl(\(.fd), \(.cmd))'
less_of_ioctl='s/, [^,]*\) = /) = /'
fields_of_rt_sigreturn='e.tid'
form_of_rt_sigreturn='rt_sigreturn('
less_of_rt_sigreturn='s/\{.*\}\)//'

theirs_of() { # CALL COMMAND...
	local less=less_of_$1
	rm -f "$work"/strace.*
	strace -ff -s 4096 -e "trace=$1" -e signal=none -qqq -o "$work/strace" "${@:2}" \
		>/dev/null 2>&1 </dev/null || true
	# a file each process
	find "$work" -name 'strace.*' -printf '%f\n' | sort -t. -k2n | (cd "$work" && xargs cat) |
		sed -E 's/\) += /) = /; s/( = -1 E[A-Z]+) .*/\1/; '"${!less:-}"
}
ours_of() { # CALL COMMAND...
	local fields=fields_of_$1 form=form_of_$1 end="= ADDRESS"
	"$FAY" trace --follow --json -o "$work/trace" "from e in cluster.Syscall(\"$1\")
		select new { e.time, e.pid, ${!fields}, e.ReturnValue, e.Error }" -- "${@:2}" \
		>/dev/null 2>"$work/err" </dev/null || true
	grep -q '"type":"end"' "$work/trace" || { cat "$work/err" >&2; fail "$1 of ${*:2}"; }
	[ "$1" = mmap ] || end='= \(if .Error == 0 then .ReturnValue else "-1 \(.Error)" end)'
	jq -rs "map(select(.type == \"row\" and .final != false).values) | sort_by(.pid, .time)[] |
		\"${!form} $end\"" "$work/trace"
}
compare() { # CALL COMMAND...
	ours_of "$@" >"$work/ours"
	eval "${again:-}"
	theirs_of "$@" >"$work/theirs"
	eval "${again:-}"
	[ -s "$work/theirs" ] || fail "strace shows no $1 of ${*:2}"
	cmp -s "$work/ours" "$work/theirs" || {
		diff "$work/ours" "$work/theirs" >&2 || true
		fail "$1 of ${*:2}: other rows than strace's"
	}
	echo "ok: $1 of ${*:2}: $(wc -l <"$work/ours") rows"
}

printf '#!/bin/sh\nexec /bin/true\n' >"$work/script"
chmod +x "$work/script"
for command in 'cat /etc/hostname /no/such/file' 'ls -l /etc/apt' 'grep -r no.such.words /etc/apt' \
	"sort $work/lines" "wc -l $work/lines" 'getent passwd root' 'id -u' 'date +%Y' \
	"sed -n 1p $work/lines" "od -c $work/lines" 'df /' 'find /etc/apt -name no' \
	'sh -c "cat /etc/hostname | sort; ls /no"'; do
	eval "compare openat $command"
done
for command in 'cat /etc/hostname' 'ls /etc/apt' 'getent passwd root'; do
	for call in mmap mprotect access close newfstatat read; do
		compare $call $command
	done
done
# an execve that succeeded ends in another program, and rt_sigreturn with that's registers
compare execve sh -c '/bin/true; /no/such; exec /bin/echo yes'
compare execve bash -c "$work/script; :"
compare rt_sigreturn sh -c 'trap : USR1; kill -USR1 $$; kill -USR1 $$'
compare ioctl perl -e 'print -t STDIN'
compare socket getent hosts localhost
compare lseek tail -n 1 "$work/lines"
compare kill sh -c 'trap : USR1; kill -USR1 $$; kill -0 $$'
# what the command makes is taken away for the next
again='rm -rf "$work"/made*; touch "$work/old"'
eval "$again"
compare openat cp "$work/lines" "$work/made"
compare openat touch "$work/made"
compare openat tee "$work/made" "$work/made2"
compare mkdir mkdir -m 750 "$work/made" /no/such/folder
compare renameat2 mv "$work/old" "$work/made"
compare unlinkat rm "$work/old" /no/such/file
compare unlink sh -c "for i in 1 2; do unlink $work/old; done"

# --- several calls at once, conditions, what is wrong
ask() { # QUERY: the one value
	"$FAY" trace --follow --json -o "$work/trace" "$1" -- cat /etc/hostname /no/such/file \
		>/dev/null 2>"$work/err" || true
	jq -r 'select(.type == "row" and .final != false).values[]' "$work/trace"
}
equal "a path of whichever call opens it" 1 "$(ask 'cluster.Syscall("open*").Count(e =>
	e.filename == "/no/such/file" && e.Error == "ENOENT")')"
equal "one flag of several" "$(theirs_of openat cat /etc/hostname /no/such/file |
	grep -c O_CLOEXEC)" "$(ask 'cluster.Syscall("openat").Count(e =>
	(e.flags & "O_CLOEXEC") != 0)')"
equal "flags as they are shown" "$(theirs_of openat cat /etc/hostname /no/such/file |
	grep -c 'O_RDONLY|O_CLOEXEC')" "$(ask 'cluster.Syscall("openat").Count(e =>
	e.flags == "O_RDONLY|O_CLOEXEC")')"

# --- what another argument decides
"$FAY" trace --follow --json -o "$work/trace" 'from e in cluster.Syscall("fcntl")
	where e.arg == "FD_CLOEXEC" && e.cmd == "F_SETFD" group e by new { e.arg, e.cmd } into g
	select new { g.Key, n = g.Count() }' -- sh -c ': </dev/null; : </dev/null' \
	2>"$work/err"
equal "fcntl's argument by its command" "F_SETFD FD_CLOEXEC $(strace -f -e trace=fcntl sh -c '
	: </dev/null; : </dev/null' 2>&1 | grep -c 'F_SETFD, FD_CLOEXEC')" \
	"$(jq -r 'select(.type == "row" and .final).values | "\(.cmd) \(.arg) \(.n)"' "$work/trace")"

# --- of a process that is chosen by its command line
sleep 1.2345 &
own $!
"$FAY" trace --json -o "$work/trace" --cmdline '^sleep 1[.]2345$' \
	'cluster.Syscall("exit_group").Count(e => e.error_code == 0)' 2>"$work/err"
equal "a process that is chosen by its command line" 1 \
	"$(jq 'select(.type == "row" and .final).values.Count' "$work/trace")"

# --- the running kernel's names
"$FAY" list --syscalls >"$work/list"
tracefs=/sys/kernel/tracing/events/syscalls
[ -r $tracefs/sys_enter_openat/format ] || { echo "not compared: no tracefs"; exit; }
compared=0
while IFS='(' read -r number_and_name arguments; do
	name=${number_and_name##* }
	case $name in stat | fstat | lstat | uname) event=new$name ;; umount2) event=umount ;;
	sendfile) event=sendfile64 ;; *) event=$name ;; esac
	[ -r $tracefs/sys_enter_$event/format ] || continue
	theirs=$(sed -n '/__syscall_nr/,$s/.*field:.*[ *]\([a-z_0-9]*\);\toffset.*/\1/p' \
		$tracefs/sys_enter_$event/format | tail -n +2 | xargs)
	ours=$(tr , '\n' <<<"${arguments%)}" | sed 's/.*[ *]//' | xargs)
	[ "$theirs" = "$ours" ] || fail "$name: the kernel has the arguments '$theirs', not '$ours'"
	compared=$((compared + 1))
done <"$work/list"
[ $compared -ge 300 ] || fail "only $compared system calls have signatures"
echo "ok: $compared signatures are the kernel's"
