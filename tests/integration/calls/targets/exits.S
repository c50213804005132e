/*
 * Functions whose exits must not be patched without care: what they jump to, return or leave in flags and red zone is told by no symbol. Each returns its first argument plus
 * one; those that jump to one of four cases, plus the second.
 */
#include "assembly.inc"
	.macro	begin_cases name label
	.p2align 4
	.globl	\name
	.type	\name, @function
\name:	cmp	$99, %esi
	mov	%rdi, %rax
	je	.L\label\()3
	and	$3, %esi
	.endm
	.macro	cases label
.L\label\()3:	inc	%rax
.L\label\()2:	inc	%rax
.L\label\()1:	inc	%rax
.L\label\()0:	ret
	.endm
	.text
/* returns CF */
	begin cf_callee
	cmp	$1000000, %rdi
	lea	1(%rdi), %rax
	cmp	%rax, %rdi
	nop
	ret
	end cf_callee
	begin cf_user
	call	cf_callee
	jae	1f
	lea	1(%rdi), %rax
	ret
1:	xor	%eax, %eax
	ret
	end cf_user
/* flags from an stc just before */
	begin stc_callee
	lea	(%rdi), %rax
	lea	(%rdi), %rax
	stc
	ret
	end stc_callee
	.p2align 4
	begin stc_user
	call	stc_callee
	adc	$0, %rax
	ret
	nop
	nop
	nop
	nop
	end stc_user
/* flags live into the next function by fall-through */
	begin with_carry
	nopl	0(%rax,%rax,1)
	stc
	jmp	carried
	end with_carry
	begin fall_carry
	nopl	0(%rax,%rax,1)
	nopl	0(%rax)
	nop
	nop
	nop
	nop
	stc
	end fall_carry
	.globl	carried
	.type	carried, @function
carried:
	mov	%rdi, %rax
	adc	$0, %rax
	nopl	0(%rax)
	ret
	end carried
/* red zone live into the next function */
	begin fall_zone
	mov	%rdi, -8(%rsp)
	movq	$1, -16(%rsp)
	nopl	0(%rax)
	end fall_zone
	.globl	zoned
	.type	zoned, @function
zoned:
	mov	-8(%rsp), %rax
	add	-16(%rsp), %rax
	ret
	end zoned
/* computed dispatch by 32-bit distances from a base that is not the table */
	begin base_table
	and	$3, %esi
	lea	.Ltab(%rip), %rdx
	movslq	(%rdx,%rsi,4), %rax
	lea	.Lbase(%rip), %rcx
	add	%rcx, %rax
	jmp	*%rax
.Lbase:	inc	%rdi
.L2:	inc	%rdi
.L1:	inc	%rdi
.L0:	mov	%rdi, %rax
	ret
	end base_table
	.section .rodata
	.p2align 2
.Ltab:	.long .L0-.Lbase, .L1-.Lbase, .L2-.Lbase, .Lbase-.Lbase
	.text
	.p2align 4
/* 16 bits */
	begin base_table16
	and	$3, %esi
	lea	.Ltab16(%rip), %rdx
	movzwl	(%rdx,%rsi,2), %eax
	lea	.Mbase(%rip), %rcx
	add	%rcx, %rax
	jmp	*%rax
.Mbase:	inc	%rdi
.M2:	inc	%rdi
.M1:	inc	%rdi
.M0:	mov	%rdi, %rax
	ret
	end base_table16
	.section .rodata
.Ltab16:	.word .M0-.Mbase, .M1-.Mbase, .M2-.Mbase, .Mbase-.Mbase
	.text
/* computed by multiplication: each case has 3 bytes */
	begin multiplied
	and	$3, %esi
	lea	(%rsi,%rsi,2), %rax
	lea	.Nend(%rip), %rcx
	sub	%rax, %rcx
	jmp	*%rcx
	inc	%rdi
	inc	%rdi
	inc	%rdi
.Nend:	mov	%rdi, %rax
	ret
	end multiplied
/* base is the start */
	begin multiplied2
	xor	$3, %esi
	and	$3, %esi
	lea	(%rsi,%rsi,2), %rax
	lea	.Obase(%rip), %rcx
	add	%rax, %rcx
	push	%rbx
	pop	%rbx
	push	%rbx
	jmp	*%rcx
.Obase:	inc	%rdi
	inc	%rdi; inc %rdi
	pop	%rbx
	mov	%rdi, %rax
	ret
	end multiplied2
/* table in .text in front of the code in the function */
	begin text_table
	jmp	1f
	.p2align 3
.Ptab:	.long .P0-.Ptab, .P1-.Ptab, .P2-.Ptab, .P3-.Ptab
1:	and	$3, %esi
	lea	.Ptab(%rip), %rdx
	movslq	(%rdx,%rsi,4), %rax
	add	%rdx, %rax
	jmp	*%rax
.P3:	inc	%rdi
.P2:	inc	%rdi
.P1:	inc	%rdi
.P0:	mov	%rdi, %rax
	ret
	end text_table
/* alternative entry without type in the middle: called by another module or by an address in a register made elsewhere */
	begin outer
	nop
	nop
	mov	%rdi, %rax
	.globl	inner_alt
inner_alt:
	nop
	inc	%rax
	ret
	end outer
	begin calls_alt
	mov	%rdi, %rax
	lea	inner_alt(%rip), %rcx
	call	*%rcx
	add	$0, %rax
	ret
	nop
	nop
	nop
	end calls_alt
	begin outer_local
	nop
	nop
	mov	%rdi, %rax
.Lalt2:	nop
	inc	%rax
	ret
	end outer_local
	begin calls_alt2
	mov	%rdi, %rax
	lea	.Lalt2(%rip), %rcx
	call	*%rcx
	add	$0, %rax
	ret
	nop
	nop
	nop
	end calls_alt2
/* inner subroutine that returns in the midst */
	begin subroutine
	mov	%rdi, %rax
	call	.Qsub
	call	.Qsub
	dec	%rax
	nop
	nop
	ret
.Qsub:	inc	%rax
	nop
	nop
	ret
	end subroutine
/* inner subroutine that uses flags */
	begin subroutine_flags
	mov	%rdi, %rax
	call	.Rsub
	adc	$0, %rax
	nop
	nop
	ret
.Rsub:	nop
	nop
	nop
	stc
	ret
	end subroutine_flags
/* rep ret, bnd ret, ret imm */
	begin rep_ret
	lea	1(%rdi), %rax
	rep ret
	end rep_ret
	begin bnd_ret
	lea	1(%rdi), %rax
	bnd ret
	end bnd_ret
	begin ret_imm
	lea	1(%rdi), %rax
	ret	$8
	end ret_imm
	begin call_imm
	push	%rdi
	call	ret_imm
	nop
	nop
	nop
	nop
	ret
	end call_imm
	begin_cases own16 a			/* 16-bit distances from the function's own start */
	lea	.La(%rip), %rdx
	lea	own16(%rip), %rcx
	movzwl	(%rdx,%rsi,2), %esi
	add	%rcx, %rsi
	jmp	*%rsi
	cases a
	end own16
	.section .rodata
.La:	.word .La0-own16, .La1-own16, .La2-own16, .La3-own16
	.text
	begin_cases other32 b			/* 32-bit distances from another function's start (LuaJIT's lj_bc_ofs is from lj_vm_asm_begin) */
	lea	.Lb(%rip), %rdx
	movslq	(%rdx,%rsi,4), %rsi
	lea	own16(%rip), %rcx
	add	%rcx, %rsi
	jmp	*%rsi
	cases b
	end other32
	.section .rodata
	.p2align 2
.Lb:	.long .Lb0-own16, .Lb1-own16, .Lb2-own16, .Lb3-own16
	.text
	begin_cases times3 c			/* own start + 3 * i */
	lea	times3(%rip), %rcx
	xor	$3, %esi
	lea	(%rsi,%rsi,2), %rsi
	lea	.Lc3-times3(%rcx,%rsi), %rcx
	jmp	*%rcx
	cases c
	end times3
	begin_cases before4 d			/* the table begins behind the address that is mentioned */
	lea	.Ld-4(%rip), %rdx
	movslq	4(%rdx,%rsi,4), %rcx
	lea	4(%rdx,%rcx), %rcx
	jmp	*%rcx
	cases d
	end before4
	.section .rodata
	.p2align 2
	.long 0x7fffffff
.Ld:	.long .Ld0-.Ld, .Ld1-.Ld, .Ld2-.Ld, .Ld3-.Ld
	.text
	begin_cases rdisp e			/* distances read by an address that a register has, disp32 from a section's start */
	lea	.Lbasis(%rip), %rdx
	movslq	.Le-.Lbasis(%rdx,%rsi,4), %rcx
	add	%rdx, %rcx
	jmp	*%rcx
	cases e
	end rdisp
	.section .rodata
	.p2align 4
.Lbasis: .long 0x7fffffff, 0x7fffffff
.Le:	.long .Le0-.Lbasis, .Le1-.Lbasis, .Le2-.Lbasis, .Le3-.Lbasis
	.text
	begin_cases bypointer ff			/* a table found through a pointer in data; and an ordinary one */
	lea	.Lf1(%rip), %r8
	mov	.Lfp(%rip), %rdx
	cmp	$77, %esi
	je	7f
8:	movslq	(%rdx,%rsi,4), %rcx
	add	%rdx, %rcx
	jmp	*%rcx
7:	movslq	(%r8,%rsi,4), %rcx
	jmp	8b
	cases ff
	end bypointer
	.section .rodata
	.p2align 2
.Lf1:	.long .Lff3-.Lf1
	.long 0x7fffffff
.Lf2:	.long .Lff0-.Lf2, .Lff1-.Lf2, .Lff2-.Lf2, .Lff3-.Lf2
	.section .data.rel.ro,"aw"
	.p2align 3
.Lfp:	.quad .Lf2
	.text
	begin_cases xlat g			/* 8 bits */
	lea	.Lg(%rip), %rdx
	movzbl	(%rdx,%rsi), %esi
	lea	xlat(%rip), %rcx
	lea	(%rcx,%rsi), %rcx
	jmp	*%rcx
	cases g
	end xlat
	.section .rodata
.Lg:	.byte .Lg0-xlat, .Lg1-xlat, .Lg2-xlat, .Lg3-xlat
	.text
	begin_cases pushed h			/* by push and ret */
	lea	.Lh(%rip), %rdx
	movslq	(%rdx,%rsi,4), %rcx
	lea	pushed(%rip), %rdx
	add	%rdx, %rcx
	push	%rcx
	ret
	cases h
	end pushed
	.section .rodata
	.p2align 2
.Lh:	.long .Lh0-pushed, .Lh1-pushed, .Lh2-pushed, .Lh3-pushed
	.text
	.text
	/* an interpreter's labels in a table of another function */
	begin dispatcher
	mov	%rdi, %rax
	and	$1, %esi
	lea	.Lother(%rip), %rdx
	movslq	(%rdx,%rsi,4), %rcx
	add	%rdx, %rcx
	call	*%rcx
	nop
	nop
	nop
	nop
	ret
	end dispatcher
	.section .rodata
	.p2align 2
.Lother: .long .Lx0-.Lother, .Lx1-.Lother
	.text
	begin workers
	nop
	nop
.Lx1:	inc	%rax
.Lx0:	inc	%rax
	ret
	end workers
	.byte 0x55		/* no padding */
	/* likewise, by 16-bit distances from the function's start */
	begin dispatcher16
	mov	%rdi, %rax
	and	$1, %esi
	lea	.Lother16(%rip), %rdx
	movzwl	(%rdx,%rsi,2), %esi
	lea	workers16(%rip), %rcx
	add	%rcx, %rsi
	call	*%rsi
	nop
	nop
	nop
	nop
	ret
	end dispatcher16
	.section .rodata
	.p2align 2
.Lother16: .word .Ly0-workers16, .Ly1-workers16
	.text
	begin workers16
	nop
	nop
.Ly1:	inc	%rax
.Ly0:	inc	%rax
	ret
	end workers16
	.byte 0x55
	begin carry_callee	/* a value, and its carry in CF: as bignum code in assembly has it */
	mov	%rdi, %rax
	mov	$-1, %rcx
	nop
	add	$1, %rcx
	ret
	end carry_callee
	begin carry_user
	call	carry_callee
	adc	$0, %rax
	nop
	nop
	nop
	ret
	end carry_user
	begin dec_callee
	mov	$1, %ecx
	nopl	0(%rax)
	lea	1(%rdi), %rax
	dec	%ecx
	ret
	end dec_callee
	begin dec_user
	call	dec_callee
	jz	1f
	xor	%eax, %eax
1:	nop
	nop
	nop
	nop
	ret
	end dec_user
/* leaves by a jump, and is entered again inside */
	begin passes_on
	push	%rbx
	mov	%rdi, %rbx
	lea	1f(%rip), %r10
	jmp	takes_over
1:	lea	1(%rbx), %rax
	pop	%rbx
	ret
	end passes_on
	begin takes_over
	lea	3(%rdi), %rax
	jmp	*%r10
	end takes_over
/* without a size: what is behind it is another's */
	.globl	unsized
	.type	unsized, @function
unsized: lea	1(%rdi), %rax
	nopl	0(%rax)
	ret
.Linner: lea	1(%rdi), %rax
	nopl	0(%rax)
	ret
	begin uses_inner
	nopl	0(%rax)
	jmp	*.Lword(%rip)
	end uses_inner
	begin joined
	cmp	$99, %esi
	mov	%rdi, %rax
	je	.Lj3
	and	$3, %esi
	lea	.Lj(%rip), %rdx
	lea	carry_user(%rip), %rcx
	movslq	(%rdx,%rsi,4), %rsi
	add	%rcx, %rsi
	cmp	$77, %rdi
	je	8f
	nop
8:	jmp	*%rsi
.Lj3:	inc	%rax
.Lj2:	inc	%rax
.Lj1:	inc	%rax
.Lj0:	ret
	end joined
	.section .rodata
	.p2align 2
.Lj:	.long .Lj0-carry_user, .Lj1-carry_user, .Lj2-carry_user, .Lj3-carry_user
	.text
	.data
	.p2align 3
.Lword:	.quad	.Linner
	.section .note.GNU-stack, "", @progbits
