/* SPDX-License-Identifier: MIT */
/* The module that traps_target loads: no jump fits over its functions. */
#include "../functions/markers.inc"

	.text
nothing:
	ret

/* long traps_later(long): the number after it; 4 bytes */
	function traps_later
	.byte 0x48, 0xff, 0xc7		/* inc %rdi */
	ret
	end traps_later
	.globl traps_behind_later
	.type traps_behind_later, @function
traps_behind_later:
	mov $1, %eax
	ret
	.size traps_behind_later, . - traps_behind_later

/* long traps_called(long): the same number, by a ret right behind a call */
	function traps_called
	mov %rdi, %rax
	sub $8, %rsp
	.cfi_adjust_cfa_offset 8
	call nothing
	add $8, %rsp
	.cfi_adjust_cfa_offset -8
	call nothing
	ret
	end traps_called
	.space 16, 0xf4
	.section .note.GNU-stack, "", @progbits
