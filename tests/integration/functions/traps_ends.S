/* SPDX-License-Identifier: MIT */
/* Functions with an exit where no jump fits: a ret right behind a call. What is behind that is no
 * padding. */
#include "markers.inc"

	.macro end_behind_call name
	call ends_nothing
	ret
	end \name
	.space 16, 0xf4
	.endm

	.text
	function ends_nothing
	nop
	ret
	end ends_nothing

/* long ends_thunk(long): that of n */
	function ends_thunk
	jmp 1f
	end ends_thunk
	.space 16, 0xf4
	.globl ends_other
	.type ends_other, @function
ends_other:
1:	mov %rdi, %rax
	ret
	.size ends_other, . - ends_other

/* long ends_dead(long): n; nothing leads to its second half */
	function ends_dead
	mov %rdi, %rax
	ret
	xor %eax, %eax
	ret
	end ends_dead
	.space 16, 0xf4

/* long reads_data(void), which has data that look like that */
	function reads_data
	mov 1f(%rip), %eax
	ret
1:	xor %eax, %eax
	ret
	nop
	end reads_data
	.space 16, 0xf4

/* long ends_call(long, void (*)(long)): n, when that has returned */
	function ends_call
	push %rdi
	.cfi_adjust_cfa_offset 8
	call *%rsi
	pop %rax
	.cfi_adjust_cfa_offset -8
	end_behind_call ends_call

/* long ends_recursive(long n): calls itself n times */
	function ends_recursive
	mov %rdi, %rax
	test %rdi, %rdi
	jz 1f
	dec %rdi
	sub $8, %rsp
	.cfi_adjust_cfa_offset 8
	call ends_recursive
	add $8, %rsp
	.cfi_adjust_cfa_offset -8
1:	end_behind_call ends_recursive

/* long ends_o(long flags), ...: goes on in another function if the condition holds */
	.macro conditional condition
	function ends_\condition
	push %rdi
	.cfi_adjust_cfa_offset 8
	popf
	.cfi_adjust_cfa_offset -8
	j\condition ends_other
	mov %rdi, %rax
	end_behind_call ends_\condition
	.pushsection .data.rel.ro, "aw", @progbits
	.8byte ends_\condition
	.popsection
	.endm
	.pushsection .data.rel.ro, "aw", @progbits
	.globl ends_conditions
	.balign 8
ends_conditions:
	.popsection
	.irp condition, o, no, b, ae, e, ne, be, a, s, ns, p, np, l, ge, le, g
	conditional \condition
	.endr

/* long ends_somewhere(long n, long (*)(long)): that of n, if n is odd, by a jump that leads into
 * this function otherwise */
	function ends_somewhere
	lea 1f(%rip), %rax
	test $1, %dil
	cmovne %rsi, %rax
	jmp *%rax
	.space 16, 0xcc
1:	mov %rdi, %rax
	end_behind_call ends_somewhere

/* likewise, from a table of two */
	function ends_table
	lea 1f(%rip), %rax
	mov %rsi, -8(%rsp)
	mov %rax, -16(%rsp)
	mov %rdi, %rcx
	and $1, %ecx
	jmp *-16(%rsp, %rcx, 8)
	.space 16, 0xcc
1:	mov %rdi, %rax
	end_behind_call ends_table

/* long ends_entered(long), which long ends_enters(long) enters behind its first instruction */
	function ends_entered
	nop
1:	mov %rdi, %rax
	end_behind_call ends_entered
	function ends_enters
	inc %rdi
	jmp 1b
	end ends_enters

/* long ends_shared(long), which long ends_shares(long) enters where a jump would lie */
	function ends_shared
	nop
	nop
1:	mov %rdi, %rax
	nop
	nop
	ret
	end ends_shared
	.space 16, 0xf4
	function ends_shares
	lea 1(%rdi), %rax
	jmp 1b
	end ends_shares
	.section .note.GNU-stack, "", @progbits
