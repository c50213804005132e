#!/usr/bin/env bash
# Signed modules. First a kernel that does not know the certificate: it reads the signature, takes
# the module as an unsigned one, and, told to take signed modules only, says that the key is what is
# missing. Then one that knows it, since the machine's owner has put it into the EFI variable `db`,
# and accepts signed modules only.
. "$(dirname "$0")/lib.sh"
command -v openssl >/dev/null || { echo "SKIPPED: openssl is not installed"; exit 77; }
openssl req -x509 -newkey rsa:2048 -nodes -keyout "$work/key" -out "$work/crt" \
	-subj "/CN=fay test" -days 2 2>/dev/null
cat >"$work/script" <<'IN'
. /inside.sh
Q='cluster.Function(kernel, "__x64_sys_getpgid").Count(c => c.comm == "kernel_calls")'
count() { fay trace --json "$Q" -- kernel_calls getpgid 10 2>/tmp/said | value Count; }
# The trace's own view of it, while fay.ko is loaded: what the kernel logs about a module that it
# refuses.
log() { dmesg | grep -c "Loading of $1 is rejected"; }
export FAY_MODULE_KEY=/key FAY_MODULE_CERT=/crt
check "signed, by a key that nobody demands" 10 "$(count)"
check_has "natively" "native code" "$(cat /tmp/said)"
FAY_MODULE_CERT=/nothing count >/tmp/rows
check_has "a certificate that is not there" "certificate '/nothing'" "$(cat /tmp/said)"
echo 1 >/sys/module/module/parameters/sig_enforce
fay trace --probe /probes/pair.fay >/tmp/rows 2>/tmp/said
check "signatures are demanded" 1 $?
check_has "said" "does not know the certificate" "$(cat /tmp/said)"
check "the kernel found a signature by a key that it does not have" 1 \
	"$(log "module with unavailable key")"
unset FAY_MODULE_KEY
fay trace --probe /probes/pair.fay >/tmp/rows 2>/tmp/said
check_has "unsigned, said" "accepts signed modules only" "$(cat /tmp/said)"
finish
IN
inside "$work/script" --with "$work/key:key" --with "$work/crt:crt" \
	--with "$BUILD/tests/vm/pair.fay:probes/pair.fay" || exit $?

store=/usr/share/OVMF/OVMF_VARS.fd
[ -e "$store" ] || {
	echo "not tried: a kernel that knows the certificate; ovmf is not installed (scripts/deps" \
		"--test)"
	exit 0
}
openssl x509 -in "$work/crt" -outform DER -out "$work/der"
openssl req -x509 -newkey rsa:2048 -nodes -keyout "$work/other-key" -out "$work/other-crt" \
	-subj "/CN=somebody else" -days 2 2>/dev/null
"$here/guest/efi_db.py" "$store" "$work/der" "$work/variables"
"$kernel/headers/scripts/sign-file" sha256 "$work/key" "$work/crt" "$BUILD/kernel/fay.ko" \
	"$work/fay.ko"
cat >"$work/trusted" <<'IN'
. /inside.sh
Q='cluster.Function(kernel, "__x64_sys_getpgid").Count(c => c.comm == "kernel_calls")'
said() { cat /tmp/said; }
check "signatures are demanded" Y "$(cat /sys/module/module/parameters/sig_enforce)"
check_has "the certificate is known" "Loaded X.509 cert 'fay test" "$(dmesg)"
export FAY_MODULE_KEY=/key FAY_MODULE_CERT=/crt
check "signed" 10 "$(fay trace --json "$Q" -- kernel_calls getpgid 10 2>/tmp/said | value Count)"
check_has "natively" "native code through fay.ko" "$(said)"
check "an image" 0 "$(fay trace --probe /probes/pair.fay -- kernel_calls getpgid 10 >/tmp/rows 2>/tmp/said; echo $?)"
export FAY_MODULE_KEY=/other-key FAY_MODULE_CERT=/other-crt
check "another key" 1 "$(fay trace --probe /probes/pair.fay >/tmp/rows 2>/tmp/said; echo $?)"
check_has "another key, said" "does not know the certificate" "$(said)"
unset FAY_MODULE_KEY FAY_MODULE_CERT
check "unsigned" 1 "$(fay trace --probe /probes/pair.fay >/tmp/rows 2>/tmp/said; echo $?)"
check_has "unsigned, said" "accepts signed modules only" "$(said)"
finish
IN
inside "$work/trusted" --efi "$work/variables" --append module.sig_enforce=1 \
	--with "$work/fay.ko:lib/modules/$version/extra/fay.ko" --with "$work/key:key" \
	--with "$work/crt:crt" \
	--with "$work/other-key:other-key" --with "$work/other-crt:other-crt" \
	--with "$BUILD/tests/vm/pair.fay:probes/pair.fay"
