# SPDX-License-Identifier: MIT
#
# Images whose probes change vector registers and MXCSR in every way that the verifier allows. Assembled once for each WHICH with the corpus's prologue: probe on
# `vec*!vec_function`, local[0]++ at the end.
	.include "prologue.s"
	.if WHICH == 1		# every xmm by legacy SSE; divides by zero, takes the root of -1, overflows, rounds
	.irp	n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15
	pcmpeqd	%xmm\n, %xmm\n
	.endr
	xorps	%xmm1, %xmm1
	movsd	ones(%rip), %xmm0
	divsd	%xmm1, %xmm0
	movsd	minus(%rip), %xmm2
	sqrtsd	%xmm2, %xmm3
	movsd	huge(%rip), %xmm4
	mulsd	%xmm4, %xmm4
	divsd	third(%rip), %xmm2
	cvttsd2si %xmm4, %rax
	.elseif WHICH == 2	# every ymm by AVX
	.irp	n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15
	vpcmpeqd %xmm\n, %xmm\n, %xmm\n
	.endr
	vmovupd	(%rdi), %ymm0
	vdivpd	%ymm0, %ymm0, %ymm1
	vzeroall
	.elseif WHICH == 3	# one register, spilled in aligned form
	sub	$24, %rsp
	cvtsi2sdq (%rdi), %xmm5
	xorps	%xmm5, %xmm5
	movaps	%xmm5, (%rsp)
	movaps	(%rsp), %xmm5
	movups	%xmm5, 16(%rsi)
	add	$24, %rsp
	.elseif WHICH == 4	# upper halves alone
	vzeroupper
	.elseif WHICH == 5	# two registers and a helper
	push	%rbx
	mov	%rsi, %rbx
	xorps	%xmm6, %xmm6
	xorps	%xmm7, %xmm7
	push	$7
	push	$9
	sub	$8, %rsp
	lea	8(%rsp), %rdx
	mov	%rsi, %rdi
	mov	$1, %esi
	sub	$8, %rsp
	EMIT
	add	$32, %rsp
	mov	%rbx, %rsi
	movups	%xmm6, 16(%rsi)
	pop	%rbx
	.endif
	incq	(%rsi)
	ret
	.section .rodata
	.balign	16
ones:	.double	1
minus:	.double	-1
huge:	.double	1e300
third:	.double	3
	.macro	STRINGS_HERE
	.section .fay.strings, "a"
s_empty: .asciz	""
s_vec:	.asciz	"*vectors-target!vec_function"
s_cell:	.asciz	"cell"
s_stream: .asciz "stream"
s_a:	.asciz	"a"
s_b:	.asciz	"b"
	.endm
	IMAGE	states=2, columns=3
	PROBE	s_vec
	STATE	s_cell, 1, 1, 0, 8, 0, 0, 1, 1, 8
	COLUMN	s_a, 2, 1, 0, 8
	STATE	s_stream, 3, 1, 0, 0, 1, 2, 0, 1, 16
	COLUMN	s_a, 2, 0, 0, 8
	COLUMN	s_b, 2, 0, 8, 8
	STRINGS_HERE
