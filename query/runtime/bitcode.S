/* SPDX-License-Identifier: MIT */
/*
 * The bitcode of sketches.c, reads.c, compute.c, stacks.c, texts.c and texts_bpf.c; FAY_SKETCHES_BC
 * and so on are the files that the build made of them.
 */
	.section .rodata
	.balign 16
	.globl fay_query_sketches
fay_query_sketches:
	.incbin FAY_SKETCHES_BC
	.globl fay_query_sketches_end
fay_query_sketches_end:
	.balign 16
	.globl fay_query_reads
fay_query_reads:
	.incbin FAY_READS_BC
	.globl fay_query_reads_end
fay_query_reads_end:
	.balign 16
	.globl fay_query_computing
fay_query_computing:
	.incbin FAY_COMPUTE_BC
	.globl fay_query_computing_end
fay_query_computing_end:
	.balign 16
	.globl fay_query_stacks
fay_query_stacks:
	.incbin FAY_STACKS_BC
	.globl fay_query_stacks_end
fay_query_stacks_end:
	.balign 16
	.globl fay_query_texts
fay_query_texts:
	.incbin FAY_TEXTS_BC
	.globl fay_query_texts_end
fay_query_texts_end:
	.balign 16
	.globl fay_query_texts_bpf
fay_query_texts_bpf:
	.incbin FAY_TEXTS_BPF_BC
	.globl fay_query_texts_bpf_end
fay_query_texts_bpf_end:
	.section .note.GNU-stack, "", @progbits
