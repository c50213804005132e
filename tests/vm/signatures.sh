#!/usr/bin/env bash
# Signed images only, as fay.ko itself asks for them: unsigned, by another key, of other bytes, cut
# off, none at all, by a key that was revoked or whose time is over; one key after another without a
# gap; and neither the demand nor a closed keyring can be taken back.
. "$(dirname "$0")/lib.sh"
for tool in openssl keyctl; do
	command -v $tool >/dev/null || { echo "SKIPPED: $tool is not installed"; exit 77; }
done
images=$BUILD/tests/vm/certified
sign() { # KEY IMAGE SIGNATURE
	openssl cms -sign -binary -noattr -nocerts -md sha256 -outform DER -in "$2" -out "$3" \
		-inkey "$work/$1.key" -signer "$work/$1.pem"
}
mkdir "$work/signed"
for key in vendor other; do
	openssl req -x509 -newkey rsa:2048 -nodes -keyout "$work/$key.key" -out "$work/$key.pem" \
		-subj "/CN=fay $key" -days 2 2>/dev/null
	openssl x509 -in "$work/$key.pem" -outform DER -out "$work/signed/$key.der"
	sign $key "$images/idle.fay" "$work/signed/$key.p7s"
done
sign vendor "$images/twice.fay" "$work/signed/bytes.p7s"
head -c 200 "$work/signed/vendor.p7s" >"$work/signed/cut.p7s"
(cat "$work/signed/vendor.p7s"; head -c 70000 /dev/zero) >"$work/signed/long.p7s"
echo "this is no signature" >"$work/signed/text.p7s"
: >"$work/signed/empty.p7s"
cat >"$work/script" <<'IN'
. /inside.sh
cp /probes/idle.fay /tmp/idle.fay
demand=/sys/module/fay/parameters/signatures
# try SIGNATURE: of the image; `traced`, or what fay says
try() {
	rm -f /tmp/idle.fay.p7s
	[ "$1" = none ] || cp "/signed/$1.p7s" /tmp/idle.fay.p7s
	if fay trace --probe /tmp/idle.fay -- kernel_calls getpgid 10 >/tmp/rows 2>/tmp/said; then
		echo traced
	else
		sed -n 's/.*its parameter `signatures`): //p' /tmp/said
	fi
}
add() { keyctl padd asymmetric "" %keyring:.fay <"/signed/$1.der"; }
NONE="this one has no signature, which would be in IMAGE.p7s; queries have none"
UNKNOWN='no key of the keyring `.fay` has made this one'"'s signature"
BYTES="the signature is of other bytes than this image's"
OVER="the time of the key that has made this one's signature is over"
REVOKED="the key that has made this one's signature was revoked"
OTHER="what is in IMAGE.p7s is not a PKCS #7 signature"
insmod /lib/modules/*/extra/fay.ko
check "nothing is asked for" traced "$(try none)"
check "nothing is looked at" traced "$(try text)"
echo 1 >$demand
check "the demand" Y "$(cat $demand)"
echo 0 >$demand 2>/tmp/said && check "the demand can be taken back" no yes
check "the demand, then" Y "$(cat $demand)"
check "no signature" "$NONE" "$(try none)"
check "no key yet" "$UNKNOWN" "$(try vendor)"
vendor=$(add vendor)
check "signed" traced "$(try vendor)"
check_has "calls" 10 "$(cat /tmp/rows)"
check "another's signature" "$UNKNOWN" "$(try other)"
check "a signature of another image" "$BYTES" "$(try bytes)"
check "a signature that is cut off" "$OTHER" "$(try cut)"
check "text" "$OTHER" "$(try text)"
check "an empty file" "$NONE" "$(try empty)"
check "too long" "$NONE" "$(try long)"
fay trace 'cluster.Function(kernel, "__x64_sys_getpgid").Count()' -- kernel_calls getpgid 1 \
	>/tmp/rows 2>/tmp/said
check "a query" 1 $?
check_has "a query, said" "$NONE" "$(cat /tmp/said)"

echo "-- one key after another"
other=$(add other)
check "the old key" traced "$(try vendor)"
check "the new key" traced "$(try other)"
keyctl unlink $vendor %keyring:.fay
check "the old key, taken out" "$UNKNOWN" "$(try vendor)"
check "the new key, then" traced "$(try other)"
keyctl clear %keyring:.fay
check "no key any more" "$UNKNOWN" "$(try other)"
keyctl new_session >/dev/null
other=$(keyctl padd asymmetric "" @s <"/signed/other.der")
keyctl timeout $other 15
keyctl link $other %keyring:.fay
check "a key that has time" traced "$(try other)"
sleep 15
check "a key whose time is over" "$OVER" "$(try other)"
other=$(add other)
vendor=$(keyctl padd asymmetric "" @s <"/signed/vendor.der")
keyctl link $vendor %keyring:.fay
check "a key before it is revoked" traced "$(try vendor)"
keyctl revoke $vendor
check "a key that was revoked" "$REVOKED" "$(try vendor)"
keyctl unlink $vendor %keyring:.fay
cp /signed/other.p7s /probes/idle.fay.p7s
kernel_ioctl 3000 >/tmp/answers || check "ioctls at random" 0 1
check "some of them make a session" 1 "$(grep -c '^done' /tmp/answers)"
check "others' signatures are refused" 1 "$(grep -c '^Bad message' /tmp/answers)"
check "signed, then" traced "$(try other)"
keyctl restrict_keyring %keyring:.fay
add vendor >/dev/null 2>&1 && check "a closed keyring" closed open
check "by a key from before" traced "$(try other)"
check "by a key that came too late" "$UNKNOWN" "$(try vendor)"
keyctl unlink $other %keyring:.fay
check "by a key that was taken out of a closed keyring" "$UNKNOWN" "$(try other)"
check "nothing is traced" 0 "$(grep -c . /sys/kernel/tracing/enabled_functions)"
rmmod fay || check "fay.ko unloads" 0 1
insmod /lib/modules/*/extra/fay.ko
check "the demand of a module that is loaded anew" N "$(cat $demand)"
rmmod fay
insmod /lib/modules/*/extra/fay.ko signatures=1
check "from the beginning" "$UNKNOWN" "$(try other)"
finish
IN
signed=()
for file in "$work"/signed/*; do signed+=(--with "$file:signed/$(basename "$file")"); done
inside "$work/script" --with "$(command -v keyctl)" "${signed[@]}" \
	--with "$images/idle.fay:probes/idle.fay"
