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
	.long fay_rt_comm - fay_runtime_start
	.long fay_rt_flush - fay_runtime_start
	.long fay_rt_emit - fay_runtime_start
	.long fay_rt_try_read - fay_runtime_start
	.balign 64
	.globl fay_config
	.hidden fay_config
fay_config:
	.skip 128

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

/* prctl(PR_GET_NAME, rdi): 16 bytes, NUL padded by the kernel. Clobbers rax rcx r11 rdi. */
	.globl fay_rt_comm
	.type fay_rt_comm, @function
fay_rt_comm:
	push %rsi
	mov %rdi, %rsi
	mov $16, %edi
	mov $157, %eax
	syscall
	pop %rsi
	ret

	.section .note.GNU-stack, "", @progbits
