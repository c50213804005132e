# SPDX-License-Identifier: MIT
#
# A probe image with an off-by-one, as a vendor might ship it: 16 counters, the index is checked with "above 16" instead of
# "above or equal". Index 16 passes the check and the increment hits the eight bytes behind the thread's state.
#
#	as -o hostile.o hostile.S
#	ld -shared -nostdlib -z now -z noexecstack --build-id=none -o hostile.fay hostile.o
#	fay verify hostile.fay

	.text
	.globl	probe_read
	.hidden	probe_read
	.type	probe_read, @function
probe_read:
	mov	16(%rdi), %rax			# event->arg[2]
	shr	$10, %rax
	cmp	$16, %rax
	ja	1f				# should be jae
	incq	(%rsi,%rax,8)			# local[arg2 / 1024]++
1:	ret
	.size	probe_read, . - probe_read

	.section .fay.image, "a"
	.ascii	"FAYPROBE"
	.long	1, 0				# version, flags
	.long	128, 0				# local_size, global_size
	.long	1, 1, 1				# probes, states, columns
	.zero	28

	.section .fay.probes, "a"
	.long	pattern - ., 1, probe_read - ., 0	# entry probe
	.quad	0, 0

	.section .fay.state, "a"
	.long	name - .
	.short	1, 1				# cell, thread-local
	.long	0, 128, 0			# offset, size, first column
	.short	0, 1				# keys, values
	.long	1, 128				# rows, row_size
	.zero	16

	.section .fay.columns, "a"
	.long	name - .
	.short	1, 7				# int64, linear histogram
	.long	0, 128				# offset, size
	.quad	0, 1				# from 0 in steps of 1

	.section .fay.strings, "a"
pattern: .asciz	"libc!read"
name:	.asciz	"kilobytes"
