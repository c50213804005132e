/* Functions that are hard to patch, in assembly so that their bytes are what they are meant to be. Each returns its argument plus one. */
#include "assembly.inc"

	.text
	begin	short_padded		/* 4 bytes, and padding up to 16 */
	.byte	0x8d, 0x47, 0x01	/* lea 1(%rdi), %eax */
	ret
	end	short_padded
	.p2align 4, 0xcc

	begin	short_crowded		/* 4 bytes, and another function behind them */
	.byte	0x8d, 0x47, 0x01
	ret
	end	short_crowded
	.globl	crowding
	.type	crowding, @function
crowding:
	lea	1(%rdi), %rax
	nop
	ret
	end	crowding

	begin	with_endbr		/* the jump goes behind the landing pad */
	endbr64
	lea	1(%rdi), %rax
	push	%rax
	pop	%rax
	ret
	end	with_endbr

	begin	tail_call		/* five bytes in all */
	.byte	0xe9
	.long	leaf - . - 4
	end	tail_call

	begin	leaf
	lea	1(%rdi), %rax
	nop
	ret
	end	leaf

	begin	red_zone		/* keeps its result below rsp while it calls nothing */
	mov	%rdi, -8(%rsp)
	incq	-8(%rsp)
	mov	-8(%rsp), %rax
	ret
	end	red_zone

	begin	loop_back_far		/* jumps back to its first instruction, with 32 bits: no call */
	lea	1(%rdi), %rax
	nopl	0(%rax,%rax,1)
	nopl	0(%rax,%rax,1)
	nopl	0(%rax,%rax,1)
	nopl	0(%rax,%rax,1)
	cmp	%rdi, %rax
	jne	1f
	.byte	0xe9
	.long	loop_back_far - . - 4
1:	dec	%rsi
	.byte	0x0f, 0x8f		/* jg */
	.long	loop_back_far - . - 4
	ret
	end	loop_back_far

	begin	loop_back_end		/* a short jump back ends the function, with padding behind it (Go's stack check) */
	dec	%rsi
	js	1f
	lea	1(%rdi), %rax
	.nops	8
	jmp	2f
1:	lea	1(%rdi), %rax
	ret
2:	.byte	0xeb
	.byte	loop_back_end - . - 1
	end	loop_back_end
	.p2align 4, 0xcc

	begin	loop_inside		/* a loop's target within the first five bytes */
	xor	%eax, %eax
1:	inc	%eax
	cmp	$3, %eax
	jne	1b
	lea	1(%rdi), %rax
	ret
	end	loop_inside

	begin	loop_behind		/* a loop's target right behind them */
	mov	$3, %eax
1:	dec	%eax
	jne	1b
	lea	1(%rdi), %rax
	ret
	end	loop_behind

	begin	indirect		/* begins with an indirect call, as a retpoline's caller does */
	push	%rbx
	mov	leaf_address(%rip), %rbx
	call	*%rbx
	pop	%rbx
	ret
	end	indirect

	begin	retpoline		/* the thunk that compilers call instead of jumping to *%rax: never returns to behind its own call */
	call	2f
1:	pause
	lfence
	jmp	1b
2:	mov	%rax, (%rsp)
	ret
	end	retpoline

	begin	by_retpoline
	mov	leaf_address(%rip), %rax
	call	retpoline
	nop
	ret
	end	by_retpoline

	begin	plt_entry		/* as in .plt.sec: a landing pad, and a jump through a table behind it */
	endbr64
	.byte	0xf2			/* bnd */
	jmp	*leaf_address(%rip)
	nopl	0(%rax,%rax,1)
	end	plt_entry

	begin	entered_inside		/* another function jumps behind its first instruction */
	mov	%rdi, %rax
	add	$1, %rax
	ret
	end	entered_inside
	begin	enters
	mov	%rdi, %rax
	jmp	entered_inside + 3
	end	enters

	begin	ffi_call_unix64		/* returns from another place than where its return address was, as libffi's does */
	mov	(%rsp), %rdx
	lea	1(%rdi), %rax
	sub	$56, %rsp
	mov	%rdx, (%rsp)
	ret
	end	ffi_call_unix64
	begin	moving
	push	%rbp
	mov	%rsp, %rbp
	call	ffi_call_unix64
	leave
	ret
	end	moving

#ifdef FIXED_ADDRESSES
	begin	distance		/* a distance as large as an address within leaf: no way in */
	.byte	0x48, 0x8b, 0x05	/* mov leaf + 1(%rip), %rax */
	.long	leaf + 1
	ret
	end	distance
	begin	mentioned		/* an address within is a number elsewhere: perhaps a way in */
	lea	1(%rdi), %rax
	nop
	ret
	end	mentioned
	begin	mentions
	mov	$mentioned + 1, %eax
	ret
	end	mentions
	begin	indexed			/* likewise, as what an index is added to */
	lea	1(%rdi), %rax
	nop
	ret
	end	indexed
	begin	indexes
	lea	indexed + 1(,%rdi,8), %rax
	ret
	end	indexes
#endif

	.data
leaf_address:
	.quad	leaf
	.section .note.GNU-stack, "", @progbits
