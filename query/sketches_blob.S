/* SPDX-License-Identifier: MIT */
/* The bitcode of sketches.c; FAY_SKETCHES_BC is the file that the build made of it. */
	.section .rodata
	.balign 16
	.globl fay_query_sketches
fay_query_sketches:
	.incbin FAY_SKETCHES_BC
	.globl fay_query_sketches_end
fay_query_sketches_end:
	.section .note.GNU-stack, "", @progbits
