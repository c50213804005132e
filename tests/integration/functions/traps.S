/* SPDX-License-Identifier: MIT */
/* Places where no jump fits. What is behind a short function is other code, not padding. */
#include "markers.inc"

	.text
/* void traps_nothing(void): 2 bytes */
	function traps_nothing
	nop
	ret
	end traps_nothing
	.globl traps_behind
	.type traps_behind, @function
traps_behind:
	mov $1, %eax
	ret
	.size traps_behind, . - traps_behind

/* long traps_next(long): the number after it; 4 bytes */
	function traps_next
	.byte 0x48, 0xff, 0xc7		/* inc %rdi */
	ret
	end traps_next
	.globl traps_nearby
	.type traps_nearby, @function
traps_nearby:
	lea 1(%rdi), %rax
	nop
	ret
	.size traps_nearby, . - traps_nearby

/* long traps_inside(long): a loop of three rounds into the first five bytes */
	function traps_inside
	xor %eax, %eax
1:	inc %eax
	cmp $3, %eax
	jne 1b
	lea 1(%rdi), %rax
	ret
	end traps_inside

/* long traps_again(long): a loop of as many rounds back to the first instruction, without room */
	function traps_again
	dec %rdi
	jg traps_again
	mov %rdi, %rax
	ret
	end traps_again

/* long traps_switch(long, const char *): a marker behind an indirect jump */
	function traps_switch
	lea 1f(%rip), %rax
	jmp *%rax
	.space 16, 0xcc
1:	push %rdi
	.cfi_adjust_cfa_offset 8
	marker switch, "-8@%rdi 8@%rsi 8@(%rsp) 4@$7 1@%dil 8@forms_counter(%rip)"
	pop %rax
	.cfi_adjust_cfa_offset -8
	ret
	end traps_switch

/* long traps_asked(long): likewise, for who looks at the semaphore */
	function traps_asked
	lea 1f(%rip), %rax
	jmp *%rax
	.space 16, 0xcc
1:	mov %rdi, %rax
	cmpw $0, traps_semaphore(%rip)
	je 2f
	marker asked, "8@%rdi", traps_semaphore
2:	ret
	end traps_asked

/* long traps_close(long): a marker where a jump over the function's start lies */
	function traps_close
	marker close, "8@%rdi"
	lea 1f(%rip), %rax
	jmp *%rax
	.space 16, 0xcc
1:	mov %rdi, %rax
	ret
	end traps_close

	.data
	.globl forms_counter
	.type forms_counter, @object
	.balign 8
forms_counter:
	.quad 1000000007
	.size forms_counter, 8
	.section .probes, "aw", @progbits
	.globl traps_semaphore
	.type traps_semaphore, @object
	.balign 2
traps_semaphore:
	.2byte 0
	.size traps_semaphore, 2
	.section .note.GNU-stack, "", @progbits
