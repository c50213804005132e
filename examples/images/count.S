# SPDX-License-Identifier: MIT
#
# A whole probe image written by hand: the worked example of docs/probe-image.md. It counts calls of read in the C library, sums the bytes
# that were asked for, and sends one row for each request of a mebibyte or more.
#
#	as -o count.o count.S
#	ld -shared -nostdlib -z now -z noexecstack --hash-style=gnu --build-id=none -o count.fay count.o
#	fay verify count.fay

	.text
	.globl	probe_read
	.hidden	probe_read			# without this the symbol could be preempted
	.type	probe_read, @function
probe_read:					# rdi: event, rsi: LOCAL, rdx: GLOBAL
	mov	16(%rdi), %rax			# event->arg[2]: bytes asked for
	incq	(%rsi)				# requests.count++
	add	%rax, 8(%rsi)			# requests.bytes += arg[2]
	cmp	threshold(%rip), %rax
	jb	1f
	sub	$24, %rsp			# 24 + 8 for the return address: aligned to 16 again
	mov	%rax, (%rsp)			# row of `large`: bytes
	mov	%rsi, %rdi			# fay_emit(local, 1, row)
	mov	$1, %esi
	mov	%rsp, %rdx
	call	*fay_emit@GOTPCREL(%rip)
	add	$24, %rsp
1:	ret
	.size	probe_read, . - probe_read

	.section .rodata, "a"
	.balign	8
threshold:
	.quad	1048576

	.section .fay.image, "a"		# struct fay_image_header
	.balign	8
	.ascii	"FAYPROBE"
	.long	1, 0				# version, flags
	.long	16, 0				# local_size, global_size
	.long	1, 2, 3				# probes, states, columns
	.zero	28				# reserved

	.section .fay.probes, "a"		# struct fay_image_probe
	.balign	8
	.long	pattern - .			# relative to this field
	.long	1				# entry
	.long	probe_read - ., 0
	.quad	0, 0				# parameter, reserved

	.section .fay.state, "a"		# struct fay_image_state
	.balign	8
	.long	requests - .			# 0: a cell in LOCAL
	.short	1, 1				# cell, local
	.long	0, 16, 0			# offset, size, first column
	.short	0, 2				# key columns, value columns
	.long	1, 16				# rows, row_size
	.zero	16
	.long	large - .			# 1: a stream
	.short	3, 1				# stream, local
	.long	0, 0, 2				# no storage; first column
	.short	1, 0
	.long	1, 8
	.zero	16

	.section .fay.columns, "a"		# struct fay_image_column
	.balign	8
	.long	count - .
	.short	2, 1				# unsigned, merged by counting
	.long	0, 8				# offset, size
	.quad	0, 0
	.long	bytes - .
	.short	2, 2				# unsigned, summed
	.long	8, 8
	.quad	0, 0
	.long	bytes - .			# of the stream's rows
	.short	2, 0				# not merged
	.long	0, 8
	.quad	0, 0

	.section .fay.strings, "a"
pattern: .asciz	"libc!read"
requests: .asciz "requests"
large:	.asciz	"large"
count:	.asciz	"count"
bytes:	.asciz	"bytes"
