/* SPDX-License-Identifier: MIT */
/*
 * void call(void (*entry)(void), const uint64_t arguments[6], void *stack, uint64_t results[7]):
 * calls the entry on the stack that ends there; results are rax, rbx, rbp, r12 to r15, which were
 * 1 to 6 before.
 */
	.globl	call
	.type	call, @function
call:	push	%rbx
	push	%rbp
	push	%r12
	push	%r13
	push	%r14
	push	%r15
	mov	%rsp, %rax
	mov	%rdx, %rsp
	push	%rax
	push	%rcx
	mov	%rdi, %rax
	mov	%rsi, %r10
	mov	(%r10), %rdi
	mov	8(%r10), %rsi
	mov	16(%r10), %rdx
	mov	24(%r10), %rcx
	mov	32(%r10), %r8
	mov	40(%r10), %r9
	mov	$1, %ebx
	mov	$2, %ebp
	mov	$3, %r12d
	mov	$4, %r13d
	mov	$5, %r14d
	mov	$6, %r15d
	call	*%rax
	pop	%rcx
	mov	%rax, (%rcx)
	mov	%rbx, 8(%rcx)
	mov	%rbp, 16(%rcx)
	mov	%r12, 24(%rcx)
	mov	%r13, 32(%rcx)
	mov	%r14, 40(%rcx)
	mov	%r15, 48(%rcx)
	pop	%rsp
	pop	%r15
	pop	%r14
	pop	%r13
	pop	%r12
	pop	%rbp
	pop	%rbx
	ret
	.size	call, . - call
	.section .note.GNU-stack, "", @progbits
