#!/usr/bin/env bash
# RAM that the kernel does not use, and that no probe may read: a page as a balloon holds it, and a
# block of memory that is offline.
. "$(dirname "$0")/lib.sh"
cat >"$work/script" <<'IN'
. /inside.sh
# read_at ADDRESS COLUMN
read_at() {
	fay trace --json --probe /probes/reads.fay -- kernel_calls at "$1" 2>/tmp/said | value "$2"
}
direct=$(read_at 0x$(sed -n 's/ . page_offset_base$//p' /proc/kallsyms) named_value)
insmod /unused_pages.ko || check "unused_pages.ko" loaded no
for page in normal:1 offline:0; do
	check "a page that is ${page%:*}" ${page#*:} \
		"$(read_at "$(cat /sys/module/unused_pages/parameters/${page%:*})" named_read)"
done
rmmod unused_pages || check "unused_pages.ko unloads" 0 1

memory=/sys/devices/system/memory
block=$(for block in $memory/memory[0-9]*; do echo offline >$block/state && echo $block && break
	done 2>/dev/null)
[ -n "$block" ] || { check "a block of memory goes offline" one none; finish; }
inside=$((direct + 0x$(cat $block/phys_index) * 0x$(cat $memory/block_size_bytes) + 0x100000))
check "a block of memory that is offline" 0 "$(read_at $inside named_read)"
echo online >$block/state
check "the block, online" 1 "$(read_at $inside named_read)"
finish
IN
unused=$(module unused_pages) || fail "unused_pages.ko is not built"
# The kernel's own memory low, the blocks above without it.
inside "$work/script" --memory 1024 --append "movable_node" \
	--with "$BUILD/tests/vm/reads.fay:probes/reads.fay" --with "$unused:unused_pages.ko"
