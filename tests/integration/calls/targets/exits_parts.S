/* Functions with cold parts that only the unwind table knows, once the program is stripped, and what
 * looks like them (exits_target.c). Each adds its second argument, up to 3, to the first. */
#include "assembly.inc"
	.macro	cold name		/* without a symbol in the stripped file, not aligned */
	.section .text.unlikely, "ax", @progbits
	.p2align 4; nop
\name:
	.cfi_startproc
	.endm
	.macro	endcold
	.cfi_endproc
	.text
	.endm
	/* 32 bits, as to another section */
	.macro	jump to
	.byte	0xe9; .long \to - . - 4
	.endm
	.text
/* Comes back; two exits, of which the second is reached from the part alone. */
	begin	split
	test	%esi, %esi
	jne	cold_split
	lea	(%rdi), %rax; nop; nop; ret
split_back:
	lea	(%rdi,%rsi), %rax; nop; ret
	end	split
	cold	cold_split
	nop
	jump	split_back
	endcold
/* Does not come back: a block, and a window. */
	begin	split_off
	cmp	$2, %esi
	je	cold_off
	ja	cold_off2
	lea	(%rdi,%rsi), %rax; nop; ret
	end	split_off
	cold	cold_off
	lea	2(%rdi), %rax; ret
cold_off2:
	lea	3(%rdi), %rax; nop; nop; ret
	endcold
/* These are functions: called; with their address in data, and in an instruction; jumped to by two,
 * of which one is so near that its jump is short. */
	begin	split_called
	cmp	$2, %esi
	je	cold_called
	ja	1f
	lea	(%rdi,%rsi), %rax; nop; ret
1:	call	cold_called
	inc	%rax; nop; nop; nop; ret
	end	split_called
	cold	cold_called
	lea	2(%rdi), %rax; nop; ret
	endcold
	begin	split_data
	cmp	$2, %esi
	je	cold_data
	ja	1f
	lea	(%rdi,%rsi), %rax; nop; ret
1:	call	*data_address(%rip)
	inc	%rax; nop; nop; nop; ret
	end	split_data
	cold	cold_data
	lea	2(%rdi), %rax; nop; ret
	endcold
	begin	split_lea
	cmp	$2, %esi
	je	cold_lea
	ja	1f
	lea	(%rdi,%rsi), %rax; nop; ret
1:	lea	cold_lea(%rip), %rax
	call	*%rax
	inc	%rax; nop; nop; nop; ret
	end	split_lea
	cold	cold_lea
	lea	2(%rdi), %rax; nop; ret
	endcold
	begin	split_mov
	cmp	$2, %esi
	je	cold_mov
	ja	1f
	lea	(%rdi,%rsi), %rax; nop; ret
1:	mov	$cold_mov, %eax
	call	*%rax
	inc	%rax; nop; nop; nop; ret
	end	split_mov
	cold	cold_mov
	lea	2(%rdi), %rax; nop; ret
	endcold
	begin	split_one
	cmp	$2, %esi
	jae	cold_two
	lea	(%rdi,%rsi), %rax; nop; ret
	end	split_one
	begin	split_other
	cmp	$2, %esi
	jae	cold_two
	lea	(%rdi,%rsi), %rax; nop; ret
	end	split_other
	cold	cold_two
	lea	(%rdi,%rsi), %rax; nop; ret
	endcold
	begin	split_near
	cmp	$2, %esi
	jae	cold_near
	lea	(%rdi,%rsi), %rax; nop; ret
	end	split_near
	cold	cold_near
	lea	(%rdi,%rsi), %rax; nop; ret
	.cfi_endproc
	.globl	near
	.type	near, @function
near:
	lea	1(%rdi), %rdi
	dec	%rsi
	jmp	cold_near
	end	near
	.text
	begin	split_nearer
	cmp	$2, %esi
	jae	near
	lea	(%rdi,%rsi), %rax; nop; ret
	end	split_nearer
/* Two tables of labels are read at different places, for one jump. */
	.macro	labels name t second:vararg
	begin	\name
	mov	%esi, %ecx; and $1, %ecx
	shr	%esi; and $1, %esi
	mov	.L\t\()1(,%rcx,8), %rax
	jmp	.L\t\()go
.L\t\()b:	inc	%rdi
.L\t\()a:	\second
.L\t\()go:
	jmp	*%rax
.L\t\()d:	add	$2, %rdi
.L\t\()c:	lea	(%rdi), %rax; nop; nop; ret
	end	\name
	.section .rodata; .p2align 3
.L\t\()1:	.quad .L\t\()a, .L\t\()b, 0
.L\t\()2:	.quad .L\t\()c, .L\t\()d, 0
	.text
	.endm
	labels	labels_two l2 mov .Ll22(,%rsi,8), %rax
/* What it reads is not said; the pointer changes; the table's first word leads elsewhere. */
	.macro	by_register
	mov	$.Llw2, %edx; mov (%rdx,%rsi,8), %rax
	.endm
	.macro	changed
	mov	.Lls2(,%rsi,8), %rax; lea -1(%rax), %rax; inc %rax
	.endm
	.macro	behind_other
	inc	%esi; mov other_labels(,%rsi,8), %rax
	.endm
	labels	labels_word lw by_register
	labels	labels_sum ls changed
	labels	labels_other lo behind_other
	.section .rodata; .p2align 3
other_labels:
	.quad	numbered, .Lloc, .Llod
	.text
/* A number in an instruction is like a jump into the first bytes; jumps behind prefixes are jumps. */
	.macro	entered name by
	begin	\name
	mov	%rdi, %rax
	add	%rsi, %rax
	ret
	end	\name
	.globl	\name\()_by		/* no padding in between */
	.type	\name\()_by, @function
\name\()_by:
	mov	%rdi, %rax
	\by	\name
	end	\name\()_by
	.endm
	.macro	number to
	.byte	0x48, 0x81, 0xe9; .long \to + 3 - . - 4	/* sub $number, %rcx */
	add	%rsi, %rax; ret
	.endm
	.macro	plain to
	.byte	0xe9; .long \to + 3 - . - 4
	.endm
	.macro	bnd to
	.byte	0xf2, 0xe9; .long \to + 3 - . - 4
	.endm
	.macro	hint to
	clc
	.byte	0x3e, 0x0f, 0x83; .long \to + 3 - . - 4	/* jnc */
	.endm
	.macro	bnd_short to
	.byte	0xf2, 0xeb, \to + 3 - . - 1
	.endm
	entered	numbered number
	entered	jumped plain
	entered	jumped_bnd bnd
	entered	jumped_hint hint
	entered	jumped_short bnd_short
	.data
	.globl	data_address
data_address:
	.quad	cold_data
	.section .note.GNU-stack, "", @progbits
