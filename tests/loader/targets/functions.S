/* SPDX-License-Identifier: MIT */
/*
 * Functions whose first instructions are of every kind that the patcher has to deal with. Each adds its number to the counter
 * that rdi points to (fn_call first calls another that does) and returns rdi.
 */
	.macro function name
	.globl \name
	.type \name, @function
	.balign 16
\name:
	.endm
	.macro end name
	.size \name, . - \name
	.endm

	.data
one:	.quad 1
	.text

function fn_plain
	push %rbp
	mov %rsp, %rbp
	addq $1, (%rdi)
	mov %rdi, %rax
	pop %rbp
	ret
end fn_plain

function fn_endbr
	endbr64
	addq $1, (%rdi)
	mov %rdi, %rax
	ret
end fn_endbr

function fn_riprel
	mov one(%rip), %rax
	add %rax, (%rdi)
	mov %rdi, %rax
	ret
end fn_riprel

function fn_call
	call fn_plain
	ret
end fn_call

function fn_callreg		/* a 3-byte call that ends at byte 10 */
	lea fn_plain(%rip), %r11
	call *%r11
	ret
end fn_callreg

function hops		/* an exit of four bytes; its jump is in a hole at +5, behind the entry's */
	push %rbx
	cmp %rsp, %rdi		/* below; not so of the flags after the call */
	nop
	.byte 0x0f, 0x83	/* jae */
	.long 2f - . - 4
	call fn_plain
	xor %ecx, %ecx
	pop %rbx
	ret
2:	xor %eax, %eax
	mov $1, %ecx
	pop %rbx
	ret
end hops

function fn_callearly		/* a call that ends at byte 4: refused */
	push %rbx
	call *%r11
	pop %rbx
	ret
end fn_callearly

function fn_jcc
	test %rdi, %rdi
	je 1f
	addq $1, (%rdi)
	mov %rdi, %rax
	ret
1:	xor %eax, %eax
	ret
end fn_jcc

function fn_tail
	jmp fn_plain
end fn_tail

function fn_tiny		/* 4 bytes and padding behind: patchable */
	mov %rdi, %rax
	ret
end fn_tiny
	.balign 16, 0xcc

function fn_short		/* 1 byte, the next function directly behind: refused */
	ret
end fn_short
	.globl fn_next
	.type fn_next, @function
fn_next:
	mov %rdi, %rax
	addq $1, (%rdi)
	ret
end fn_next

function fn_loopback		/* jumps back to its second instruction: refused */
	mov $3, %al
1:	dec %al
	jnz 1b
	addq $1, (%rdi)
	mov %rdi, %rax
	ret
end fn_loopback

function fn_loopentry		/* jumps back to its first instruction: refused */
	decq (%rdi)
	jg fn_loopentry
	mov %rdi, %rax
	ret
end fn_loopentry

function fn_behind		/* another function jumps behind its first instruction, from far away: refused */
	mov %rdi, %rax
	addq $1, (%rdi)
	ret
end fn_behind

function fn_behind_near		/* the same from near: refused */
	mov %rdi, %rax
	addq $1, (%rdi)
	ret
end fn_behind_near

function enters_near
	lea (%rdi), %rax
	.byte 0xeb, fn_behind_near + 3 - 1f
1:
end enters_near

function fn_beside		/* what looks like a jump behind its first instruction is a constant: traced */
	mov %rdi, %rax
	addq $1, (%rdi)
	ret
end fn_beside

function beside
	.byte 0xb8		/* mov $..., %eax */
	.byte 0xeb, fn_beside + 3 - 1f
1:	.byte 0, 0
	ret
end beside

	.skip 200, 0x90
function enters_far
	mov %rdi, %rax
	.byte 0xe9		/* jmp rel32, never rel8 */
	.long fn_behind + 3 - 1f
1:
end enters_far

/* Calls fn_spare with every register holding a known value; returns how many came back changed. */
	.macro check value, reg
	cmp $\value, \reg
	je 1f
	incq (%rsp)
1:
	.endm
function fn_spare		/* changes nothing */
	nop
	nop
	nop
	nop
	nop
	ret
end fn_spare

function check_registers
	push %rbx
	push %rbp
	push %r12
	push %r13
	push %r14
	push %r15
	push $0
	mov $0x1111, %eax
	mov $0x2222, %ecx
	mov $0x3333, %edx
	mov $0x4444, %r8d
	mov $0x5555, %r9d
	mov $0x6666, %r10d
	mov $0x7777, %r11d
	mov $0x8888, %ebx
	mov $0x9999, %ebp
	mov $0xaaaa, %r12d
	mov $0xbbbb, %r13d
	mov $0xcccc, %r14d
	mov $0xdddd, %r15d
	mov $0xeeee, %esi
	mov $0xffff, %edi
	call fn_spare
	check 0x1111, %rax
	check 0x2222, %rcx
	check 0x3333, %rdx
	check 0x4444, %r8
	check 0x5555, %r9
	check 0x6666, %r10
	check 0x7777, %r11
	check 0x8888, %rbx
	check 0x9999, %rbp
	check 0xaaaa, %r12
	check 0xbbbb, %r13
	check 0xcccc, %r14
	check 0xdddd, %r15
	check 0xeeee, %rsi
	check 0xffff, %rdi
	pop %rax
	pop %r15
	pop %r14
	pop %r13
	pop %r12
	pop %rbp
	pop %rbx
	ret
end check_registers

	.section .note.GNU-stack, "", @progbits
