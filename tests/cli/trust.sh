#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# trust.sh SOURCE_DIR FAY: signatures of images, the trust store, and that `fay trace --probe` asks it.
# Each way to be refused has its reason.
set -euo pipefail
source=$1 fay=$2
if [ -z "${FAY_ALONE:-}" ]; then
	FAY_ALONE=1 exec "$source/tests/alone" "$0" "$@"
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
failed=0
bad() { echo "trust: $1"; failed=1; }
run() { # EXIT-CODE ARGUMENT...
	local want=$1 code=0
	shift
	timeout 60 "$fay" "$@" >out 2>err </dev/null || code=$?
	[ "$code" = "$want" ] || bad "fay $*: exit code $code, not $want: $(cat err)"
}
check() { # EXIT-CODE WORDS [OPTION...]: of image.fay in the store
	local want=$1 words=$2
	shift 2
	run "$want" trust check image.fay --store store "$@"
	cat out err | grep -qF -- "$words" || bad "no '$words' in: $(cat out err)"
}
image() { # NAME SOURCE
	as -o o "$source/examples/images/$2"
	ld -shared -nostdlib -z now -z noexecstack --hash-style=gnu --build-id=none -o "$1" o
}
image image.fay count.S
image hostile.fay hostile.S
for name in ann bob eve; do run 0 cluster keygen $name; done
key() { cat "$1.pub"; }

check 0 'no signature is required'
run 0 trust add ann "$(key ann)" --store store
run 0 trust add bob "$(key bob)" --until 2999-12-31 --tracepoints 'libc!*,libm!*' --store store
check 0 'no signature is required'
run 0 trust require 1 --store store
check 1 '0 of 1 signatures'
run 0 sign image.fay --key eve.key
check 1 'an unknown signer'
run 0 sign image.fay --key ann.key
check 0 trusted
run 0 sign image.fay --key ann.key
[ "$(wc -l <image.fay.sig)" = 2 ] || bad 'a signature that was renewed is there twice'
run 0 trust list --store store
grep -q "^ann $(key ann)\$" out && grep -qF 'until 2999-12-31 tracepoints libc!*,libm!*' out ||
	bad "the list: $(cat out)"

# Co-signatures; in the one order that there is.
run 0 trust require 2 --store store
check 1 '1 of 2 signatures'
run 0 sign image.fay --key bob.key
check 0 trusted
cp image.fay.sig good
sort -r good >image.fay.sig
check 1 'signatures that are not in order'
{ head -1 good; head -1 good; } >image.fay.sig
check 1 'signatures that are not in order'

# Forged, cut, of another image or policy, by an unknown scheme.
damage() { # WORDS SED-SCRIPT
	sed "$2" good >image.fay.sig
	check 1 "$1"
}
flip='s/0$/1/;t;s/.$/0/'
# One of them is enough, even if the others are as many as it takes.
for line in 1 2 3; do
	damage 'the signature is not of this image, or forged' "$line{$flip}"
	[ "$(grep -c 'or forged' err)" = 1 ] || bad "one forged signature: $(cat err)"
done
damage 'a damaged signature' 's/.$//'
damage 'a damaged signature' 's/$/ /'
damage 'a damaged signature' 's/^\(fay-signature-1 \)./\1g/'
damage 'an unknown scheme' 's/^fay-signature-1/fay-signature-2/'
damage 'an unknown scheme' '1i\
'
for size in 1 20 100 $(($(stat -c %s good) - 1)); do
	head -c "$size" good >image.fay.sig
	check 1 'ends within a line'
done
head -1 good >image.fay.sig
check 1 'of 2 signatures'
for i in $(seq 17); do head -1 good; done >image.fay.sig
check 1 'not in order'
head -c 70000 /dev/zero | tr '\0' y >image.fay.sig
check 1 'too large'
mkdir folder && rm image.fay.sig && ln -s folder image.fay.sig
check 1 'not a regular file'
rm image.fay.sig
cp good image.fay.sig
cp image.fay whole
printf x >>image.fay
check 1 'the signature is not of this image, or forged'
cp whole image.fay
run 0 verify --certify image.fay image.fay
check 1 'the signature is not of this image, or forged'
cp whole image.fay
echo 'allow_rdtsc = no' >policy
check 1 'signed for another policy' --policy policy
for name in ann bob eve; do run 0 sign image.fay --key $name.key --policy policy; done
check 0 trusted --policy policy
check 1 'signed for another policy'
echo 'max_stack = 4096' >>policy
check 1 'signed for another policy' --policy policy
cp good image.fay.sig

# What a signer may speak for, and how long; revocation; new keys before the old ones go.
run 0 trust require 1 --store store
run 0 trust revoke bob --store store
check 0 trusted
run 0 trust require 2 --store store
check 1 'bob: the key is revoked'
run 2 trust add bob2 "$(key bob)" --store store
run 0 cluster keygen new
run 0 trust add new "$(key new)" --store store
run 0 sign image.fay --key new.key
check 0 trusted
run 0 trust revoke "$(key ann)" --store store
check 1 'ann: the key is revoked'
run 0 trust add late "$(key eve)" --until 2020-02-29 --store store
check 1 'late: trusted no longer than 2020-02-29'
rm -r store
run 0 trust add ann "$(key ann)" --tracepoints 'libc!write,libm!*' --store store
run 0 trust require 1 --store store
check 1 'ann: not trusted to trace libc!read'

# Stores that are not believed: changed by others, damaged, links.
fresh() {
	rm -rf store
	run 0 trust add ann "$(key ann)" --store store
	run 0 trust require 1 --store store
}
fresh
check 0 trusted
chmod g+w store && check 1 'is not believed'
fresh
chmod o+w . && check 1 'is not believed'
chmod +t . && check 0 trusted
chmod o-w,-t .
fresh
chmod o+w store/signers && check 1 'is not believed'
fresh
touch store/revoked && chmod 666 store/revoked && check 1 'is not believed'
fresh
mv store/signers elsewhere && ln -s "$work/elsewhere" store/signers && check 1 "cannot open 'signers'"
fresh
: >store/require && check 1 'is empty'
fresh
printf '1\n0\n' >store/require && check 1 'not understood, or there twice'
for line in 'x' '-1' '17' '1x'; do
	fresh
	echo "$line" >store/require && check 1 'require:1: not understood'
done
fresh
printf 'bob %s until=2020-13-01\n' "$(key bob)" >>store/signers && check 1 'signers:2: not understood'
fresh
head -c 40 store/signers >cut && cp cut store/signers && check 1 'ends within a line'
fresh
printf 'zz\n' >store/revoked && check 1 'revoked:1: not understood'
if [ "$(id -u)" = 0 ]; then
	fresh
	chown 1 store/signers && check 1 'is not believed'
fi
fresh

# Wrong uses. What the verifier refuses no signature helps.
run 2 trust add ann "$(key bob)" --store store
run 2 trust add bob nothing --store store
run 2 trust add 'two words' "$(key bob)" --store store
run 2 trust add bob "$(key bob)" --until tomorrow --store store
run 2 trust revoke nobody --store store
run 2 trust require many --store store
run 2 trust
run 2 sign image.fay
run 2 sign missing.fay --key ann.key
chmod 644 ann.key && run 2 sign image.fay --key ann.key && chmod 600 ann.key
run 0 sign hostile.fay --key ann.key
run 1 trust check hostile.fay --store store
grep -q 'refused by the verifier (MEM-BOUNDS)' err || bad "a hostile image: $(cat err)"
run 0 sign --help
run 0 trust --help

# fay trace asks the machine's store, and no other.
[ "$(id -u)" = 0 ] && cp -a /etc etc 2>/dev/null && mount --bind etc /etc || {
	echo "trust: skipped: no /etc of one's own to be had"
	[ $failed = 0 ] && exit 77
	exit $failed
}
export FAY_BUDGET=none
rm -rf /etc/fay
trace() { # EXIT-CODE WORDS
	run "$1" trace --probe image.fay -- cat /dev/null
	[ -z "$2" ] || grep -qF -- "$2" err || bad "fay trace: no '$2' in: $(cat err)"
}
rm image.fay.sig
trace 0 ''
mkdir /etc/fay
run 0 trust add ann "$(key ann)"
trace 0 ''
run 0 trust require 1
trace 1 '0 of 1 signatures that are required'
run 1 trace --dry-run --probe image.fay -p $$
run 0 sign image.fay --key ann.key
trace 0 ''
sed "$flip" image.fay.sig >other && cp other image.fay.sig
trace 1 'or forged'
run 0 sign image.fay --key ann.key
chmod 777 /etc/fay/trust
trace 1 'is not believed'
chmod 755 /etc/fay/trust
run 0 trust revoke ann
trace 1 'ann: the key is revoked'
run 0 trace 'cluster.Function("libc!read").Count()' -- cat /dev/null # a query is nobody's image
run 0 trust require 0
trace 0 ''
exit $failed
