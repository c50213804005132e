/* SPDX-License-Identifier: MIT */
/*
 * Runs one instruction with a whole machine state: void vector_run(struct frame *frame, const void *code). The code at `code` ends with a jump to vector_back.
 * struct frame (test_vector_cpu.c): 16 vector registers of 32 bytes at 0, 16 general registers at 512, flags at 640, MXCSR at 648; in and out alike.
 */
	.macro	each_vector op
	.irp	n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15
	\op	\n
	.endr
	.endm
	.macro	load n
	vmovups	32*\n(%rdi), %ymm\n
	.endm
	.macro	store n
	vmovups	%ymm\n, 32*\n(%rdi)
	.endm
	.data
frame:	.quad	0
entry:	.quad	0
saved:	.quad	0
mxcsr:	.quad	0
rdi_out: .quad	0
	.text
	.globl	vector_run
vector_run:
	push	%rbx
	push	%rbp
	push	%r12
	push	%r13
	push	%r14
	push	%r15
	mov	%rdi, frame(%rip)
	mov	%rsi, entry(%rip)
	mov	%rsp, saved(%rip)
	stmxcsr	mxcsr(%rip)
	ldmxcsr	648(%rdi)
	each_vector load
	pushq	640(%rdi)
	popfq
	mov	512+8*0(%rdi), %rax
	mov	512+8*1(%rdi), %rcx
	mov	512+8*2(%rdi), %rdx
	mov	512+8*3(%rdi), %rbx
	mov	512+8*5(%rdi), %rbp
	mov	512+8*6(%rdi), %rsi
	mov	512+8*8(%rdi), %r8
	mov	512+8*9(%rdi), %r9
	mov	512+8*10(%rdi), %r10
	mov	512+8*11(%rdi), %r11
	mov	512+8*12(%rdi), %r12
	mov	512+8*13(%rdi), %r13
	mov	512+8*14(%rdi), %r14
	mov	512+8*15(%rdi), %r15
	mov	512+8*7(%rdi), %rdi
	jmp	*entry(%rip)
	.globl	vector_back
vector_back:
	mov	%rdi, rdi_out(%rip)
	mov	frame(%rip), %rdi
	mov	%rax, 512+8*0(%rdi)
	mov	%rcx, 512+8*1(%rdi)
	mov	%rdx, 512+8*2(%rdi)
	mov	%rbx, 512+8*3(%rdi)
	mov	%rbp, 512+8*5(%rdi)
	mov	%rsi, 512+8*6(%rdi)
	mov	rdi_out(%rip), %rax
	mov	%rax, 512+8*7(%rdi)
	mov	%r8, 512+8*8(%rdi)
	mov	%r9, 512+8*9(%rdi)
	mov	%r10, 512+8*10(%rdi)
	mov	%r11, 512+8*11(%rdi)
	mov	%r12, 512+8*12(%rdi)
	mov	%r13, 512+8*13(%rdi)
	mov	%r14, 512+8*14(%rdi)
	mov	%r15, 512+8*15(%rdi)
	pushfq
	popq	640(%rdi)
	stmxcsr	648(%rdi)
	each_vector store
	ldmxcsr	mxcsr(%rip)
	vzeroupper
	mov	saved(%rip), %rsp
	pop	%r15
	pop	%r14
	pop	%r13
	pop	%r12
	pop	%rbp
	pop	%rbx
	ret
	.section .note.GNU-stack, "", @progbits
