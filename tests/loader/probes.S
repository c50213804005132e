/* SPDX-License-Identifier: MIT */
/* Probes for the loader's tests: position-independent bytes between NAME and NAME_end, facts about them in test_session.c. */
	.section .rodata
	.macro probe name
	.globl probe_\name, probe_\name\()_end
probe_\name:
	.endm
	.macro end name
probe_\name\()_end:
	.endm

/* local[0]++ */
probe count
	incq (%rsi)
	ret
end count

/* local[0]++ slowly, so that signals land inside; clobbers every caller-saved register but rsi. */
probe slow
	mov (%rsi), %rax
	mov $20, %ecx
1:	dec %ecx
	jnz 1b
	inc %rax
	mov %rax, (%rsi)
	xor %eax, %eax
	mov $-1, %rcx
	mov $-1, %rdx
	mov $-1, %rdi
	mov $-1, %r8
	mov $-1, %r9
	mov $-1, %r10
	mov $-1, %r11
	ret
end slow

/* local[0]++ and clobber rsi too: the trampoline must keep LOCAL elsewhere */
probe greedy
	incq (%rsi)
	incq (%rdx)
	xor %esi, %esi
	xor %edi, %edi
	xor %edx, %edx
	ret
end greedy

/* Copies the event's fields to local[1...16]; local[0]++ */
probe event
	xor %eax, %eax
1:	mov (%rdi,%rax,8), %rcx
	mov %rcx, 8(%rsi,%rax,8)
	inc %eax
	cmp $16, %eax
	jne 1b
	incq (%rsi)
	ret
end event

/* fay_emit(local, 0, event): slot 0 of the image lies 64 bytes before the code */
probe emit
	push %rsi
	mov %rdi, %rdx
	mov %rsi, %rdi
	xor %esi, %esi
	call *probe_emit-64(%rip)
	pop %rsi
	incq (%rsi)
	ret
end emit

	.section .note.GNU-stack, "", @progbits
