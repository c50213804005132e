/* SPDX-License-Identifier: MIT */
/* USDT notes written by hand: each form of an operand, and places that cannot be patched. */
#include "markers.inc"

	.text
/* long forms_registers(long, long): the sum */
	function forms_registers
	mov %rdi, %rax
	marker registers, "8@%rdi -4@%edi 1@%dil -1@%sil -2@%si 1@%ah"
	lea (%rdi, %rsi), %rax
	ret
	end forms_registers

/* long forms_memory(const long *, long index): the word there */
	function forms_memory
	push %rsi
	.cfi_adjust_cfa_offset 8
	marker memory, "8@(%rsp) 8@8(%rdi) -4@(%rdi,%rsi,8) -2@4(%rdi,%rsi,8) 8@forms_counter(%rip) 4@8+forms_counter(%rip)"
	mov (%rdi, %rsi, 8), %rax
	add $8, %rsp
	.cfi_adjust_cfa_offset -8
	ret
	end forms_memory

/* long forms_constants(const void *, long): the second; the first may point anywhere */
	function forms_constants
	marker constants, "8@16(%rdi) 8@$-7 -4@$0x80000000 2@$65537 8f@%xmm0 8@%fs:0"
	lea 0(%rsi), %rax
	nop
	ret
	end forms_constants

/* The place behind the marker is also jumped to, from another function. */
	function forms_joined
	xor %eax, %eax
	marker joined, ""
forms_join:
	lea 1(%rax), %rax
	ret
	end forms_joined
	function forms_jumper
	mov $41, %eax
	jmp forms_join
	.space 256, 0xcc
	end forms_jumper

/* Too short, and other code follows at once. */
	function forms_short
	marker short, "8@%rdi"
	mov %edi, %eax
	ret
	end forms_short
	.globl forms_next
	.type forms_next, @function
forms_next:
	ret
	.size forms_next, 1

	.data
	.globl forms_counter
	.type forms_counter, @object
	.balign 8
forms_counter:
	.quad 1000000007, 99
	.size forms_counter, 16
	.section .note.GNU-stack, "", @progbits
