#!/usr/bin/env bash
# kernel.sh in a kernel whose own code can be preempted anywhere, trampolines' beginnings and ends
# included.
FAY_VM_APPEND="preempt=full" exec "$(dirname "$0")/kernel.sh"
