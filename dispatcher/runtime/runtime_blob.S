/* SPDX-License-Identifier: MIT */
/* The runtime blob as data of libfay_dispatcher; FAY_RUNTIME_BIN is the file that the build made of it. */
	.section .rodata
	.balign 64
	.globl fay_runtime_blob
fay_runtime_blob:
	.incbin FAY_RUNTIME_BIN
	.globl fay_runtime_blob_end
fay_runtime_blob_end:
	.section .note.GNU-stack, "", @progbits
