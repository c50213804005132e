#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# log.sh SOURCE_DIR FAY: the log that the trust store asks for. What is traced is in it before it is
# traced, by several at once, on a full disk, behind a writer that died; what somebody does to the
# log is found, with its place, and by who would write into it.
set -euo pipefail
source=$1 fay=$2
if [ -z "${FAY_ALONE:-}" ]; then
	FAY_ALONE=1 exec "$source/tests/alone" "$0" "$@"
fi
work=$(mktemp -d)
trap 'umount "$work/small" 2>/dev/null || true; rm -rf "$work"' EXIT
cd "$work"
failed=0
bad() { echo "log: $1"; failed=1; }
run() { # EXIT-CODE ARGUMENT...
	local want=$1 code=0
	shift
	timeout 60 "$fay" "$@" >out 2>err </dev/null || code=$?
	[ "$code" = "$want" ] || bad "fay $*: exit code $code, not $want: $(cat err)"
}
says() { grep -qF -- "$1" out err || bad "no '$1' in: $(cat out err)"; }
[ "$(id -u)" = 0 ] && cp -a /etc etc 2>/dev/null && mount --bind etc /etc || {
	echo "log: skipped: no /etc of one's own to be had"
	exit 77
}
rm -rf /etc/fay
mkdir /etc/fay logs
export FAY_BUDGET=none
for name in count hostile; do
	as -o o "$source/examples/images/$name.S"
	ld -shared -nostdlib -z now -z noexecstack --hash-style=gnu --build-id=none -o $name.fay o
done
trace() { # EXIT-CODE [IMAGE]
	run "$1" trace --probe "${2:-count.fay}" -- cat /dev/null
}
log=$work/logs/fay.log

# Off, until it is asked for.
run 2 log show
says 'asks for no log'
for wrong in relative.log / "$work/" $'/a\nb'; do run 2 trust log "$wrong"; done
run 0 trust log "$log"
run 0 trust list
says "log $log"
[ ! -e "$log" ] || bad 'there is a log before anything was traced'

# Verdicts, and installs.
trace 0
run 0 log show
[ "$(cut -d' ' -f1,3-5 out)" = $'1 user 0 accepted\n2 user 0 install' ] || bad "entries: $(cat out)"
sha=$(sha256sum count.fay | cut -c1-12)
[ "$(grep -c "$sha" out)" = 2 ] || bad "the image's hash: $(cat out)"
says 'probe count.fay'
grep -qE 'install .* process [0-9]+ cat$' out || bad "no process: $(cat out)"
trace 1 hostile.fay
says 'refused by the verifier'
run 0 trace 'cluster.Function("libc!read").Count()' -- cat /dev/null
run 0 cluster keygen ann
run 0 trust add ann "$(cat ann.pub)"
run 0 trust require 1
trace 1
run 0 sign count.fay --key ann.key
trace 0
run 0 log show --json
[ "$(jq -r .event out | tr '\n' ' ')" = \
	'accepted install refused accepted install refused accepted install ' ] ||
	bad "events: $(cat out)"
jq -se '.[2].text | contains("hostile.fay: ") and contains("MEM-BOUNDS")' out >/dev/null &&
	jq -se '.[3].text == "query cluster.Function(\"libc!read\").Count()"' out >/dev/null &&
	jq -se '.[5].text | contains("0 of 1 signatures")' out >/dev/null &&
	jq -se '.[6].text == "probe count.fay, signed by ann"' out >/dev/null || bad "texts: $(cat out)"
jq -se --arg sha "$(sha256sum hostile.fay | cut -d' ' -f1)" '.[2].image_sha256 == $sha' out \
	>/dev/null || bad "the refused image: $(cat out)"
run 0 trust require 0
run 0 log verify
says 'whole: 8 entries'
head8=$(sed -n 's/^head //p' out)
[ "${head8%%:*}" = 8 ] || bad "the head: $(cat out)"

# Several at once.
for i in 1 2 3 4; do
	"$fay" trace --probe count.fay -- cat /dev/null >/dev/null 2>"err$i" </dev/null &
done
wait
run 0 log verify --head "$head8"
says 'whole: 16 entries'

# What somebody did to it is found, at its place; a copy is verified as well as the log itself.
mkdir copy
damaged() { # WORDS COMMAND...: of a copy
	cp "$log" "$log.head" copy/
	(cd copy && "${@:2}")
	run 1 log verify copy/fay.log
	says "$1"
}
cp "$log" "$log.head" copy/
run 0 log verify copy/fay.log
damaged 'line 4: does not follow from line 3: one of the two was edited' \
	sed -i '3s/hostile/count/' fay.log
damaged 'line 1: the first entry does not begin' sed -i '1s/\(fay-log-1 1 \)0/\11/' fay.log
damaged 'entry 16 is not what FILE.head has: edited' sed -i '$s/cat$/dog/' fay.log
damaged 'line 5: entry 6 where entry 5 was due' sed -i 5d fay.log
damaged 'line 1: entry 2 where entry 1 was due' sed -i 1d fay.log
damaged 'line 6: entry 7 where entry 6 was due' sed -i '6{h;d};7{G}' fay.log
[ "$(grep -c ^line out)" = 3 ] || bad "two lines changed places: $(cat out)"
damaged 'line 9: entry 8 where entry 9 was due' sed -i '8p' fay.log
damaged 'ends with entry 13, and FILE.head has entry 16' sed -i '14,$d' fay.log
damaged 'line 16: ends within a line' truncate -s -10 fay.log
damaged 'line 8: does not follow from line 7' sed -i '6a nothing' fay.log
damaged 'line 6: longer than any entry' sed -i "6s/\$/$(printf '%05000d' 0)/" fay.log
damaged 'line 17: is no entry' sed -i '$a nothing' fay.log
damaged "fay.log.head' is damaged" sed -i 's/^0/1x/' fay.log.head
damaged 'entries may be missing at the end' rm fay.log.head
run 0 log verify copy/fay.log --head "$head8"
run 1 log verify copy/fay.log --head "9${head8#8}"
says 'entry 9 is not what --head has'
run 1 log verify copy/fay.log --head "99${head8#8}"
says 'ends with entry 16, and --head has entry 99'
printf 'fay-log-1 17 %064d \e[31m 0 \e[31m %064d %064d \e[31m\n' 0 0 0 >>copy/fay.log
run 1 log show copy/fay.log
[ "$(wc -l <out)" = 17 ] || bad "not all entries: $(cat out)"
! grep -q $'\e' out || bad 'a terminal would obey the log'
run 2 log verify missing
run 2 log verify --head 8 copy/fay.log
run 2 log
run 2 log verify --json
run 0 log --help

# A writer that died: within a line, and before FILE.head. Nothing that it wrote is lost.
printf 'fay-log-1 17 0123' >>"$log"
run 1 log verify
says 'line 17: ends within a line'
cp "$log.head" older
trace 0
run 0 log verify --head "$head8"
says 'whole: 18 entries'
says '1 of which only a part was written'
cp older "$log.head"
trace 0
run 0 log verify --head "$head8"
says 'whole: 20 entries'

# Nothing is traced whose entry cannot be written.
refused() { # WORDS
	trace 1
	says "$1"
	run 1 trace 'cluster.Function("libc!read").Count()' -- cat /dev/null
	says 'which the trust store asks for, cannot be written'
}
cp "$log" "$log.head" copy/
sed -i '20d' "$log"
refused 'it was cut'
cp copy/fay.log "$log"
echo >"$log.head"
refused 'is damaged'
rm "$log.head"
refused 'move the log away'
cp copy/fay.log.head "$log.head"
chmod o+w "$log" && refused 'is not believed' && chmod o-w "$log"
chmod o+w logs && refused 'its directory is not believed' && chmod o-w logs
mv "$log" elsewhere && ln -s "$work/elsewhere" "$log" && refused 'cannot open'
rm "$log" && mv elsewhere "$log"
run 0 trust log "$work/nowhere/fay.log"
refused 'its directory: No such file'
: >/etc/fay/trust/log
trace 1
says "'log' is empty"
run 0 trust log "$log"
trace 0
run 0 log verify
says 'whole: 22 entries'

# A full disk: the entry of what is not traced is there in part; with room again, all goes on.
mkdir small
mount -t tmpfs -o size=8k,mode=755 none small
run 0 trust log "$work/small/fay.log"
long=$(printf './%.0s' $(seq 420))count.fay
for i in 1 2 3 4; do
	code=0
	"$fay" trace --probe "$long" -- cat /dev/null >out 2>err </dev/null || code=$?
	[ $code = 0 ] || break
done
[ "$code" = 1 ] || bad "a full disk: exit code $code"
says 'No space left on device'
run 1 log verify
says 'ends within a line: cut, or not all was written'
mount -o remount,size=1m small
trace 0
run 0 log verify
says '1 of which only a part was written'
# No room for the first entry: there is a log all the same, without one.
umount small
mount -t tmpfs -o size=4k,mode=755 none small
trace 1
says 'No space left on device'
mount -o remount,size=1m small
trace 0
run 0 log verify
says 'whole: 2 entries'
run 0 trust log none
trace 0
[ $failed = 0 ] &&
	echo 'log: verdicts and installs are logged, or not traced; damage is told by place'
exit $failed
