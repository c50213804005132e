/* SPDX-License-Identifier: MIT */
/*
 * Start of the runtime blob: its header (struct fay_runtime_header), the configuration that the loader fills, and the two entries whose
 * calling convention is not C's.
 */
	.section .header, "a"
	.globl fay_runtime_start
fay_runtime_start:
	.quad 0x454d495459414621
	.long fay_config - fay_runtime_start
	.long fay_rt_slow - fay_runtime_start
	.long fay_rt_name_entry - fay_runtime_start
	.long fay_rt_flush - fay_runtime_start
	.long fay_rt_emit - fay_runtime_start
	.long fay_rt_try_read - fay_runtime_start
	.long fay_rt_begin_entry - fay_runtime_start
	.long fay_rt_end_entry - fay_runtime_start
	.long fay_rt_jump_entry - fay_runtime_start
	.long fay_rt_sweep_entry - fay_runtime_start
	.long fay_rt_busy_entry - fay_runtime_start
	.long fay_rt_modules_hook - fay_runtime_start
	.balign 64
	.globl fay_config
	.hidden fay_config
fay_config:
	.skip 576

	.text
/*
 * The thread has no entry at its home position of the thread table. In: rsi = key. Out: rsi = LOCAL, or 0 if no slot is left.
 * Every other register is kept: this is called with the traced program's values in them. The traced program may have misaligned
 * its stack; C wants it aligned.
 */
	.globl fay_rt_slow
	.type fay_rt_slow, @function
fay_rt_slow:
	push %rbp
	mov %rsp, %rbp
	push %rax
	push %rcx
	push %rdx
	push %rdi
	push %r8
	push %r9
	push %r10
	push %r11
	and $-16, %rsp
	mov %rsi, %rdi
	call fay_rt_acquire
	mov %rax, %rsi
	lea -64(%rbp), %rsp
	pop %r11
	pop %r10
	pop %r9
	pop %r8
	pop %rdi
	pop %rdx
	pop %rcx
	pop %rax
	pop %rbp
	ret

/* Saves the caller-saved registers and aligns the stack; rbp points to the saved rbp. */
	.macro enter_c
	push %rbp
	mov %rsp, %rbp
	push %rax
	push %rcx
	push %rdx
	push %rsi
	push %rdi
	push %r8
	push %r9
	push %r10
	push %r11
	and $-16, %rsp
	.endm
	.macro leave_c
	lea -72(%rbp), %rsp
	pop %r11
	pop %r10
	pop %r9
	pop %r8
	pop %rdi
	pop %rsi
	pop %rdx
	pop %rcx
	pop %rax
	pop %rbp
	.endm

/* rsi = LOCAL. */
	.globl fay_rt_name_entry
	.type fay_rt_name_entry, @function
fay_rt_name_entry:
	enter_c
	mov %rsi, %rdi
	call fay_rt_ask_name
	leave_c
	ret

/* rsi = LOCAL, rax = slot, rdx = struct fay_watched. Out: rdi = a free record. */
	.globl fay_rt_begin_entry
	.type fay_rt_begin_entry, @function
fay_rt_begin_entry:
	enter_c
	mov %rsi, %rdi
	mov %rax, %rsi
	call fay_rt_begin
	mov %rax, -40(%rbp)
	leave_c
	ret

/* rsi = LOCAL, rax = slot, rdi, rdx = the function's rax and rdx, xmm0 and rbp its own: struct
 * fay_returned lies on the stack. */
	.globl fay_rt_end_entry
	.type fay_rt_end_entry, @function
fay_rt_end_entry:
	enter_c
	lea -32(%rsp), %rsp
	mov %rdi, (%rsp)
	mov %rdx, 8(%rsp)
	movq %xmm0, 16(%rsp)
	mov (%rbp), %rdi
	mov %rdi, 24(%rsp)
	mov %rsi, %rdi
	mov %rax, %rsi
	mov %rsp, %rdx
	call fay_rt_end
	leave_c
	ret

/* rsi = LOCAL, rax = slot, rdi = where the jump leads; rbp is the program's. */
	.globl fay_rt_jump_entry
	.type fay_rt_jump_entry, @function
fay_rt_jump_entry:
	enter_c
	mov %rdi, %rdx
	mov %rsi, %rdi
	mov %rax, %rsi
	mov (%rbp), %rcx
	call fay_rt_jump
	leave_c
	ret

/* rsi = LOCAL, rax = where the stack pointer will be. */
	.globl fay_rt_sweep_entry
	.type fay_rt_sweep_entry, @function
fay_rt_sweep_entry:
	enter_c
	mov %rsi, %rdi
	mov %rax, %rsi
	call fay_rt_sweep
	leave_c
	ret

/* rsi = LOCAL. Out: zero flag set if the probe that marked the thread as busy was left. */
	.globl fay_rt_busy_entry
	.type fay_rt_busy_entry, @function
fay_rt_busy_entry:
	enter_c
	mov %rsi, %rdi
	lea 16(%rbp), %rsi
	call fay_rt_still_busy
	test %eax, %eax
	leave_c
	ret

/* Called first thing in the dynamic linker's function for debuggers, which has neither arguments nor a result. */
	.globl fay_rt_modules_hook
	.type fay_rt_modules_hook, @function
fay_rt_modules_hook:
	enter_c
	call fay_rt_modules
	leave_c
	ret

	.section .note.GNU-stack, "", @progbits
