#!/usr/bin/env bash
# Signed modules: the kernel reads the signature. It does not know the certificate (a key that it trusts is Debian's own), so it takes the module as an unsigned one, and, told to take
# signed modules only, says that the key is what is missing.
. "$(dirname "$0")/lib.sh"
command -v openssl >/dev/null || { echo "SKIPPED: openssl is not installed"; exit 77; }
openssl req -x509 -newkey rsa:2048 -nodes -keyout "$work/key" -out "$work/crt" -subj "/CN=fay test" -days 2 2>/dev/null
cat >"$work/script" <<'IN'
. /inside.sh
Q='cluster.Function(kernel, "__x64_sys_getpgid").Count(c => c.comm == "kernel_calls")'
count() { fay trace --json "$Q" -- kernel_calls getpgid 10 2>/tmp/said | value Count; }
# The trace's own view of it, while fay.ko is loaded: what the kernel logs about a module that it refuses.
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
check "the kernel found a signature by a key that it does not have" 1 "$(log "module with unavailable key")"
unset FAY_MODULE_KEY
fay trace --probe /probes/pair.fay >/tmp/rows 2>/tmp/said
check_has "unsigned, said" "takes signed modules only" "$(cat /tmp/said)"
finish
IN
inside "$work/script" --with "$work/key:key" --with "$work/crt:crt" --with "$BUILD/tests/vm/pair.fay:probes/pair.fay"
