/* 10,000 functions of eight shapes, f10000 to f19999, and a table of them. Each returns its argument plus one. */
	.altmacro
	.text
	.type	helper, @function
helper:
	lea	1(%rdi), %rax
	ret
	.size	helper, . - helper

	.macro	function number
	.p2align 4
	.globl	f\number
	.type	f\number, @function
f\number:
	.if	\number % 8 == 0
	mov	%rdi, %rax
	add	$1, %rax
	.elseif	\number % 8 == 1
	endbr64
	push	%rbp
	mov	%rsp, %rbp
	lea	1(%rdi), %rax
	pop	%rbp
	.elseif	\number % 8 == 2 /* rip-relative */
	mov	one(%rip), %rax
	add	%rdi, %rax
	.elseif	\number % 8 == 3 /* a short branch among the displaced instructions */
	test	%rdi, %rdi
	jne	1f
	mov	$1, %eax
	ret
1:	lea	1(%rdi), %rax
	.elseif	\number % 8 == 4 /* a call behind the displaced instructions */
	sub	$8, %rsp
	mov	%rdi, %rcx
	call	helper
	add	$8, %rsp
	.elseif	\number % 8 == 5 /* a tail call, five bytes in all */
	.byte	0xe9
	.long	helper - . - 4
	.elseif	\number % 8 == 6 /* a loop whose target is the first byte behind the jump */
	mov	$3, %eax
1:	dec	%eax
	jne	1b
	lea	1(%rdi), %rax
	.else			/* a call as the first instruction */
	call	helper
	lea	0(%rax), %rax
	.endif
	.if	\number % 8 != 5
	ret
	.endif
	.size	f\number, . - f\number
	.endm

	.macro	entry number
	.quad	f\number
	.endm

	.set	i, 10000
	.rept	10000
	function %i
	.set	i, i + 1
	.endr
	.p2align 4		/* padding for the last one, too */

	.data
one:	.quad	1
	.globl	functions
functions:
	.set	i, 10000
	.rept	10000
	entry	%i
	.set	i, i + 1
	.endr
	.section .note.GNU-stack, "", @progbits
