#!/usr/bin/env bash
# Programs of our own with libbpf, as a peer in cost.sh: tests/vm/peers/libbpf.sh OUTPUT writes
# OUTPUT/libbpf_peer and OUTPUT/libbpf_peer.bpf.o. Needs libbpf-dev and clang-19 (scripts/deps).
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
[ -e /usr/include/bpf/libbpf.h ] || {
	echo "tests/vm/peers/libbpf.sh: libbpf-dev is not installed (scripts/deps)" >&2
	exit 77
}
mkdir -p "$1"
clang-19 -O2 -g -target bpf -D__TARGET_ARCH_x86 -I"/usr/include/$(uname -m)-linux-gnu" \
	-c "$here/libbpf_peer.bpf.c" -o "$1/libbpf_peer.bpf.o"
cc -O2 "$here/libbpf_peer.c" -lbpf -o "$1/libbpf_peer"
