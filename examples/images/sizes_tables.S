# SPDX-License-Identifier: MIT
# The tables of sizes.f90: one probe on libc!read, one cell of two values. What is not described is the probe's own memory.
	.section .fay.image, "a"
	.ascii	"FAYPROBE"
	.long	1, 0, 2200, 0, 1, 1, 2, 0, 0, 0, 0, 0, 0, 0
	.section .fay.probes, "a"
	.hidden	probe
	.long	pattern - ., 1, probe - ., 0
	.quad	0, 0
	.section .fay.state, "a"
	.long	name - .
	.short	1, 1
	.long	0, 16, 0
	.short	0, 2
	.long	1, 16, 0, 0, 0, 0
	.section .fay.columns, "a"
	.long	calls - .
	.short	2, 1
	.long	0, 8
	.quad	0, 0
	.long	largest - .
	.short	2, 4
	.long	8, 8
	.quad	0, 0
	.section .fay.strings, "a"
pattern: .asciz	"libc!read"
name:	.asciz	"sizes"
calls:	.asciz	"calls"
largest: .asciz	"largest"
