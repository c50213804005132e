/* Tables of distances whose address is in a register before the jump (exits_target.c). Each adds its
 * second argument, up to 3, to the first. */
#include "assembly.inc"
	.text
/* a loop's table, whose address is set behind another table's jump */
	.macro	hoisted name t spoil:vararg
	begin	\name
	and	$3, %esi; lea .L\t\()1(%rip), %rdx
	movslq	(%rdx,%rsi,4), %rax; add %rdx, %rax; jmp *%rax
.L\t\()a:	nop
.L\t\()b:	lea	.L\t\()2(%rip), %r8
	test	%esi, %esi; je .L\t\()f
.L\t\()c:	mov	%esi, %ecx; and $1, %ecx
	movslq	(%r8,%rcx,4), %rax; add %r8, %rax; jmp *%rax
.L\t\()d:	\spoil
.L\t\()e:	inc	%rdi
	dec	%esi; jne .L\t\()c
.L\t\()f:	lea	(%rdi), %rax; nop; nop; ret
	end	\name
	.section .rodata; .p2align 2
.L\t\()1:	.long .L\t\()a-.L\t\()1, .L\t\()b-.L\t\()1, .L\t\()a-.L\t\()1, .L\t\()b-.L\t\()1, 0x7fffffff
.L\t\()2:	.long .L\t\()d-.L\t\()2, .L\t\()e-.L\t\()2, 0x7fffffff
	.text
	.endm
	hoisted loop_table lt nop
	hoisted spoilt_table st cmovs %r9, %r8
/* A case directly behind a call: the jump to it that comes before r12 is set counts, too. */
	begin	behind_call
	push	%r12
	cmp	$3, %esi
	je	.Lbc_three
	lea	.Lbc_1(%rip), %rdx
	movslq	(%rdx,%rsi,4), %rax; add %rdx, %rax; jmp *%rax
.Lbc_a:	lea	.Lbc_2(%rip), %r12
.Lbc_c:	test	%esi, %esi
	je	.Lbc_f
	cmp	$77, %esi
	je	.Lbc_z
	ja	.Lbc_y
	mov	%esi, %ecx; and $1, %ecx
	movslq	(%r12,%rcx,4), %rax; add %r12, %rax; jmp *%rax
.Lbc_z:	call	carried
.Lbc_d:	inc	%rdi
	dec	%esi
	jmp	.Lbc_c
.Lbc_y:	call	carried
.Lbc_e:	inc	%rdi
	dec	%esi
	jmp	.Lbc_c
.Lbc_three:
	add	$3, %rdi
.Lbc_f:	mov	%rdi, %rax
	pop	%r12
	nop
	ret
	end	behind_call
	.section .rodata; .p2align 2
.Lbc_1:	.long .Lbc_a-.Lbc_1, .Lbc_a-.Lbc_1, .Lbc_a-.Lbc_1, .Lbc_d-.Lbc_1, 0x7fffffff
.Lbc_2:	.long .Lbc_e-.Lbc_2, .Lbc_d-.Lbc_2, 0x7fffffff
	.text
/* Distances from a label, which two other ways jump to as it is. The last word is never read. */
	.macro	distances name t last spoil:vararg
	begin	\name
	and	$3, %esi; cmp $3, %esi; je .L\t\()three
	lea	.L\t\()1(%rip), %rdx; lea .L\t\()l(%rip), %rcx
	movslq	(%rdx,%rsi,4), %rax; add %rcx, %rax
.L\t\()i: jmp	*%rax
.L\t\()three:
	lea	.L\t\()l(%rip), %rax
	test	%edi, %edi; je .L\t\()j
	lea	.L\t\()l(%rip), %rax
	cmp	%rax, %rax
	\spoil
.L\t\()j: jmp	*%rax
.L\t\()l:	inc	%rdi
.L\t\()c:	inc	%rdi
.L\t\()b:	inc	%rdi
.L\t\()a:	lea	(%rdi), %rax; nop; nop; ret
	end	\name
	.section .rodata; .p2align 2
.L\t\()1:	.long .L\t\()a-.L\t\()l, .L\t\()b-.L\t\()l, .L\t\()c-.L\t\()l
	.long	.L\t\()\last-.L\t\()l, 0x7fffffff
	.text
	.endm
	distances label_table xt l nop
	distances label_spoilt xs l cmovs %r9, %rax
	distances label_itself xi i nop
/* Jumps to functions by rbp, behind flags, where trampolines have another rbp. */
	.irp	name, indexed, based
	begin	by_\name
	push	%rbp
	lea	.Lwords(%rip), %r10
	mov	%esi, %ebp
	call	\name
	pop	%rbp
	ret
	end	by_\name
	.endr
	begin	indexed
	nopl	0(%rax)
	test	%edi, %edi
	jmp	*(%r10,%rbp,8)
	end	indexed
	begin	based
	lea	-8(%r10,%rbp,8), %rbp
	test	%edi, %edi
	jmp	*8(%rbp)
	end	based
	.irp n, 0, 1, 2, 3
	begin	adds_\n
	lea	\n(%rdi), %rax
	nopl	0(%rax)
	ret
	end	adds_\n
	.endr
	.section .data.rel.ro, "aw"
	.p2align 3
.Lwords: .quad adds_0, adds_1, adds_2, adds_3
	.section .note.GNU-stack, "", @progbits
