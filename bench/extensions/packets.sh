#!/usr/bin/env bash
# What a packet costs a filter by UDP port, over one capture of 20,000 made-up packets in memory:
# native code, the same as an extension, and libpcap's program, interpreted.
#   bench/extensions/packets.sh [ROUNDS]     default 201; needs libpcap-dev
# Ours looks behind VLAN tags and IPv6 extension headers, libpcap's does not: it is the lesser job.
set -euo pipefail
cd "$(dirname "$0")/../.."
build=${BUILD:-$PWD/build}
packets=examples/hosts/packets
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
options="-O2 -fPIC -ffreestanding -fno-plt -fno-jump-tables -fno-stack-protector
	-fcf-protection=none -fno-asynchronous-unwind-tables -fno-optimize-sibling-calls
	-mno-red-zone -fno-unroll-loops -fno-ivopts"
gcc $options -fvisibility=hidden -Iinclude -c -o "$work/ports.o" $packets/ports.c
ld -shared -nostdlib -z now -z noexecstack --hash-style=gnu --build-id=none -o "$work/ports.so" \
	"$work/ports.o"
"$build/bin/fay" verify --interface $packets/packets.host --certify "$work/ports.fay" \
	"$work/ports.so" >&2
sed '/^FAY_/d' $packets/ports.c | # which hide its functions
	gcc -O2 -fPIC -shared -Iinclude -I$packets -o "$work/native.so" -x c -
$packets/capture.py 20000 >"$work/capture.pcap"
gcc -O2 -Iinclude -o "$work/packets" bench/extensions/packets.c \
	-L"$build/extension" -l:libfay_extension.a -lpcap -ldl
"$work/packets" $packets/packets.host "$work/ports.fay" "$work/native.so" "$work/capture.pcap" \
	"${1:-201}"
