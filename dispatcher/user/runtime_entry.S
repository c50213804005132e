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
	.long fay_rt_leave_entry - fay_runtime_start
	.long fay_rt_full_entry - fay_runtime_start
	.long fay_rt_find_object_hook - fay_runtime_start
	.long fay_rt_find_fde_hook - fay_runtime_start
	.long fay_rt_longjmp_hook - fay_runtime_start
	.long fay_rt_busy_entry - fay_runtime_start
	.long fay_rt_modules_hook - fay_runtime_start
	.balign 64
	.globl fay_config
	.hidden fay_config
fay_config:
	.skip 512

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

/* rsi = LOCAL or 0, rax = fay_call.slot. Out: rax = return address, rdi = cycles. */
	.globl fay_rt_leave_entry
	.type fay_rt_leave_entry, @function
fay_rt_leave_entry:
	enter_c
	mov %rsi, %rdi
	mov %rax, %rsi
	lea -40(%rbp), %rdx
	call fay_rt_leave
	mov %rax, -8(%rbp)
	leave_c
	ret

/* rsi = LOCAL. Out: rdi = the thread's entry; zero flag set if there is no room. */
	.globl fay_rt_full_entry
	.type fay_rt_full_entry, @function
fay_rt_full_entry:
	enter_c
	mov %rsi, %rdi
	lea 16(%rbp), %rsi
	call fay_rt_full
	test %rax, %rax
	mov %rax, -40(%rbp)
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

/*
 * Called first thing in _dl_find_object(rdi = address, rsi = result) of the program's libc. If the address is one of ours, answers in
 * its place: returns 0 to its caller. The program's vector registers hold nothing at this point that the ABI keeps.
 */
	.globl fay_rt_find_object_hook
	.type fay_rt_find_object_hook, @function
fay_rt_find_object_hook:
	enter_c
	call fay_rt_find_object
	test %eax, %eax
	leave_c
	jnz 1f
	ret
1:	lea 8(%rsp), %rsp
	xor %eax, %eax
	ret

/* Likewise _Unwind_Find_FDE(rdi = address, rsi = bases), which returns the FDE. */
	.globl fay_rt_find_fde_hook
	.type fay_rt_find_fde_hook, @function
fay_rt_find_fde_hook:
	enter_c
	call fay_rt_find_fde
	test %rax, %rax
	jz 1f
	mov %rax, -8(%rbp)
	leave_c
	lea 8(%rsp), %rsp
	ret
1:	leave_c
	ret

/* Called first thing in longjmp(rdi = jmp_buf). */
	.globl fay_rt_longjmp_hook
	.type fay_rt_longjmp_hook, @function
fay_rt_longjmp_hook:
	enter_c
	lea 16(%rbp), %rsi
	call fay_rt_longjmp
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
