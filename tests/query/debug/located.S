/* SPDX-License-Identifier: MIT */
/*
 * Debug information (DWARF 5) written by hand: what compilers write of variables' places, what they
 * seldom do, and what means nothing. test_locate.c says what each is.
 */

#define OP_deref 0x06
#define OP_const1u 0x08
#define OP_const2s 0x0b
#define OP_const8u 0x0e
#define OP_dup 0x12
#define OP_drop 0x13
#define OP_over 0x14
#define OP_swap 0x16
#define OP_abs 0x19
#define OP_and 0x1a
#define OP_minus 0x1c
#define OP_div 0x1b
#define OP_mul 0x1e
#define OP_neg 0x1f
#define OP_not 0x20
#define OP_or 0x21
#define OP_plus 0x22
#define OP_plus_uconst 0x23
#define OP_shl 0x24
#define OP_shr 0x25
#define OP_shra 0x26
#define OP_xor 0x27
#define OP_bra(distance) 0x28, distance, 0
#define OP_eq 0x29
#define OP_ge 0x2a
#define OP_gt 0x2b
#define OP_le 0x2c
#define OP_lt 0x2d
#define OP_ne 0x2e
#define OP_skip(distance) 0x2f, distance, 0
#define BACK 0xf0, 0xff
#define OP_lit(number) 0x30 + number
#define OP_reg(number) 0x50 + number
#define OP_breg(number) 0x70 + number /* offset */
#define OP_regx 0x90
#define OP_fbreg 0x91
#define OP_bregx 0x92
#define OP_piece 0x93
#define OP_deref_size 0x94
#define OP_nop 0x96
#define OP_call_frame_cfa 0x9c
#define OP_implicit_value 0x9e
#define OP_stack_value 0x9f
#define OP_entry_value(number) 0xa3, 1, OP_reg(number)
#define OP_regval_type 0xa5
#define OP_convert 0xa8
#define OP_GNU_regval_type 0xf5
#define OP_GNU_convert 0xf7
#define INT int_type - unit
#define LONG long_type - unit
#define UNSIGNED unsigned_type - unit
#define REAL wide_type - unit
/* numbers of DW_OP_breg's offsets, LEB128 */
#define MINUS(number) 0x80 - number
#define OP_all_bits 0x10, 0xff, 0xff, 0xff, 0xff, 0x0f, OP_and
#define IN_OBJECT(address) 0x03, address, 0, 0, 0, 0, 0, 0, 0

	.text
	.globl located, by_register, by_sum, by_itself, by_two, by_cell, without
located:
	.cfi_startproc
	push %rbx
	.cfi_adjust_cfa_offset 8
	pop %rbx
	.cfi_adjust_cfa_offset -8
	ret
	.cfi_endproc
located_end:
by_register: ret
by_sum: ret
by_itself: ret
by_two: ret
by_cell: ret
without: ret
text_end:

	.section .debug_abbrev, "", @progbits
.macro abbreviation number, tag, children, forms:vararg
	.uleb128 \number, \tag
	.byte \children
	.uleb128 \forms
	.byte 0, 0
.endm
abbreviations:
	abbreviation 1, 0x11, 1, 0x11, 0x01, 0x12, 0x06	     /* unit: low_pc, high_pc */
	abbreviation 2, 0x2e, 1, 0x03, 0x08, 0x11, 0x01, 0x12, 0x0b, 0x40, 0x18 /* frame base */
	abbreviation 3, 0x34, 0, 0x03, 0x08, 0x49, 0x13, 0x02, 0x18 /* variable: location */
	abbreviation 4, 0x24, 0, 0x03, 0x08, 0x0b, 0x0b, 0x3e, 0x0b /* base type: size, encoding */
	abbreviation 5, 0x13, 0, 0x0b, 0x0b		     /* structure: size */
	abbreviation 6, 0x0f, 0, 0x0b, 0x0b		     /* pointer: size */
	abbreviation 7, 0x10, 0, 0x0b, 0x0b		     /* reference: size */
	abbreviation 8, 0x16, 0, 0x49, 0x13		     /* typedef: type */
	abbreviation 9, 0x04, 0, 0x0b, 0x0b		     /* enumeration: size */
	abbreviation 10, 0x34, 0, 0x03, 0x08, 0x49, 0x13, 0x1c, 0x0d /* constant: sdata */
	abbreviation 11, 0x34, 0, 0x03, 0x08, 0x49, 0x13, 0x1c, 0x0a /* constant: block */
	abbreviation 12, 0x2e, 1, 0x03, 0x08, 0x11, 0x01, 0x12, 0x0b /* without frame base */
	abbreviation 13, 0x34, 0, 0x03, 0x08		     /* variable of which nothing is said */
	abbreviation 14, 0x34, 0, 0x03, 0x08, 0x49, 0x13, 0x02, 0x17 /* variable: list of places */
	.byte 0

	.section .debug_info, "", @progbits
.macro function name, base:vararg
	.uleb128 2
	.asciz "\name"
	.quad \name
	.byte 1
	.uleb128 2f - 1f
1:	.byte \base
2:
.endm
.macro at_end
	.byte 0
.endm
.macro variable name, type, place:vararg
	.uleb128 3
	.asciz "\name"
	.long \type - unit
	.uleb128 2f - 1f
1:	.byte \place
2:
.endm
.macro constant name, type, value
	.uleb128 10
	.asciz "\name"
	.long \type - unit
	.sleb128 \value
.endm
.macro block name, type, bytes:vararg
	.uleb128 11
	.asciz "\name"
	.long \type - unit
	.byte 2f - 1f
1:	.byte \bytes
2:
.endm
.macro list name, place
	.uleb128 14
	.asciz "\name"
	.long int_type - unit
	.long \place
.endm
unit:
	.long unit_end - unit_begin
unit_begin:
	.short 5
	.byte 1, 8
	.long abbreviations
	.uleb128 1
	.quad located
	.long text_end - located
char_type:
	.uleb128 4
	.asciz "char"
	.byte 1, 6
short_type:
	.uleb128 4
	.asciz "short"
	.byte 2, 5
int_type:
	.uleb128 4
	.asciz "int"
	.byte 4, 5
long_type:
	.uleb128 4
	.asciz "long"
	.byte 8, 5
wide_type:
	.uleb128 4
	.asciz "long double"
	.byte 16, 4
unsigned_type:
	.uleb128 4
	.asciz ""
	.byte 4, 7
structure_type:
	.uleb128 5
	.byte 4
pointer_type:
	.uleb128 6
	.byte 8
reference_type:
	.uleb128 7
	.byte 8
enumeration_type:
	.uleb128 9
	.byte 2
named_type:
	.uleb128 8
	.long short_type - unit
circle_type:
	.uleb128 8
	.long other_type - unit
other_type:
	.uleb128 8
	.long circle_type - unit

	.uleb128 2
	.asciz "located"
	.quad located
	.byte located_end - located
	.uleb128 1
	.byte OP_call_frame_cfa
	/* registers */
	variable in_rax, int_type, OP_reg(0)
	variable in_rdx, char_type, OP_reg(1)
	variable in_rcx, short_type, OP_reg(2)
	variable in_rbx, long_type, OP_reg(3)
	variable in_rsi, int_type, OP_reg(4)
	variable in_rdi, int_type, OP_reg(5)
	variable in_rbp, long_type, OP_regx, 6
	variable in_r15, char_type, OP_regx, 15
	variable in_rip, int_type, OP_reg(16)
	variable in_xmm0, int_type, OP_reg(17)
	/* memory */
	variable at_rsp, int_type, OP_breg(7), 8
	variable below_r9, short_type, OP_bregx, 9, MINUS(8)
	variable in_frame, int_type, OP_fbreg, MINUS(20)
	variable in_object, int_type, IN_OBJECT(64)
	variable indexed, char_type, OP_breg(0), 1, OP_breg(1), 2, OP_plus
	variable indexed_rsp, int_type, OP_breg(0), 0, OP_breg(7), 16, OP_plus
	variable twice_rsp, int_type, OP_breg(7), 0, OP_breg(7), 0, OP_plus
	variable three, int_type, OP_breg(0), 0, OP_breg(1), 0, OP_plus, OP_breg(2), 0, OP_plus
	variable object_indexed, int_type, IN_OBJECT(64), OP_breg(5), 4, OP_plus
	variable two_objects, int_type, IN_OBJECT(64), IN_OBJECT(8), OP_plus
	variable added, int_type, OP_breg(0), 0, OP_plus_uconst, 12
	variable taken, int_type, OP_breg(0), 0, OP_const1u, 12, OP_minus
	variable taken_register, int_type, OP_lit(5), OP_breg(0), 0, OP_minus
	variable behind, int_type, OP_breg(0), 0, OP_deref
	variable behind_and_on, int_type, OP_breg(0), 0, OP_deref, OP_plus_uconst, 4
	variable behind_twice, int_type, OP_breg(0), 0, OP_deref, OP_deref
	/* values */
	variable five, int_type, OP_lit(5), OP_stack_value
	variable product, int_type, OP_lit(5), OP_lit(6), OP_mul, OP_stack_value
	variable masked_number, int_type, OP_lit(13), OP_lit(6), OP_and, OP_stack_value
	variable minus_two, long_type, OP_const2s, 0xfe, 0xff, OP_stack_value
	variable sum, int_type, OP_breg(3), 1, OP_breg(4), 2, OP_plus, OP_nop, OP_stack_value
	variable masked, int_type, OP_breg(3), 0, OP_all_bits, OP_stack_value
	variable masked_oddly, int_type, OP_breg(3), 0, OP_lit(7), OP_and, OP_stack_value
	variable masked_by_register, int_type, OP_lit(7), OP_breg(3), 0, OP_and, OP_stack_value
	variable times_register, int_type, OP_breg(3), 0, OP_lit(7), OP_mul, OP_stack_value
	variable either, int_type, OP_lit(3), OP_lit(7), OP_or, OP_stack_value
	variable read, long_type, OP_breg(3), 8, OP_deref, OP_stack_value
	variable read_short, int_type, OP_breg(3), 8, OP_deref_size, 2, OP_stack_value
	variable read_three, int_type, OP_breg(3), 8, OP_deref_size, 3, OP_stack_value
	variable converted, int_type, OP_regval_type, 3, 1, OP_convert, 0, OP_stack_value
	variable converted_gnu, int_type, OP_GNU_regval_type, 3, 1, OP_GNU_convert, 0, OP_stack_value
	variable implicit, int_type, OP_implicit_value, 4, 1, 2, 3, 4
	variable implicit_none, int_type, OP_implicit_value, 0
	variable implicit_nine, int_type, OP_implicit_value, 9, 1, 2, 3, 4, 5, 6, 7, 8, 9
	constant minus_three, int_type, -3
	block in_block, int_type, 1, 2
	block in_long_block, int_type, 1, 2, 3, 4, 5, 6, 7, 8, 9
	/* what means nothing */
	variable pieces, long_type, OP_reg(0), OP_piece, 4, OP_reg(1), OP_piece, 4
	variable plus_alone, int_type, OP_lit(5), OP_plus
	variable deref_alone, int_type, OP_deref
	variable stacked, int_type, OP_lit(1), OP_lit(1), OP_lit(1), OP_lit(1), OP_lit(1), OP_lit(1), \
		OP_lit(1), OP_lit(1), OP_lit(1), OP_lit(1), OP_lit(1), OP_lit(1), OP_lit(1), \
		OP_lit(1), OP_lit(1), OP_lit(1), OP_lit(1)
	variable after_value, int_type, OP_lit(5), OP_stack_value, OP_lit(6)
	variable nothing, int_type, OP_nop
	variable cut, int_type, OP_plus_uconst
	variable unknown, int_type, 0xfe
	.uleb128 3 /* optimised out */
	.asciz "optimised_out"
	.long int_type - unit
	.uleb128 0
	.uleb128 13
	.asciz "unsaid"
	list in_list, places
	list in_view, views
	list elsewhere, others
	list cut_list, cut_places
	list nowhere, 0xffff
	/* types */
	variable structure, structure_type, OP_breg(7), 8
	variable wide, wide_type, OP_breg(7), 8
	variable pointer, pointer_type, OP_breg(7), 8
	variable reference, reference_type, OP_breg(7), 8
	variable enumeration, enumeration_type, OP_breg(7), 8
	variable named, named_type, OP_breg(7), 8
	variable circle, circle_type, OP_breg(7), 8
	/* values that are computed */
	variable numbers, long_type, OP_breg(0), 0, OP_neg, OP_not, OP_lit(5), OP_xor, OP_abs, \
		OP_stack_value
	variable shifts, long_type, OP_breg(0), 0, OP_neg, OP_lit(8), OP_shl, OP_lit(4), OP_shra, \
		OP_lit(3), OP_shr, OP_stack_value
	variable quotient, long_type, OP_breg(0), 0, OP_neg, OP_lit(7), OP_div, OP_stack_value
	variable relations, long_type, OP_breg(0), 0, OP_breg(3), 0, OP_lt, OP_breg(0), 0, \
		OP_breg(3), 0, OP_ge, OP_lit(1), OP_shl, OP_or, OP_stack_value
	variable equals, long_type, OP_breg(0), 0, OP_dup, OP_eq, OP_breg(3), 0, OP_breg(0), 0, \
		OP_gt, OP_plus, OP_lit(9), OP_lit(8), OP_ne, OP_plus, OP_stack_value
	variable arranged, long_type, OP_lit(9), OP_lit(4), OP_over, OP_swap, OP_minus, OP_minus, \
		OP_lit(1), OP_drop, OP_stack_value
	variable smaller, long_type, OP_breg(0), 0, OP_breg(3), 0, OP_over, OP_over, OP_le, \
		OP_bra(1), OP_swap, OP_drop, OP_stack_value
	variable skipped, long_type, OP_lit(1), OP_skip(2), OP_lit(2), OP_plus, OP_stack_value
	variable narrow, long_type, OP_breg(3), 0, OP_lit(31), OP_shl, OP_convert, INT, OP_lit(0), \
		OP_convert, INT, OP_plus, OP_stack_value
	variable narrow_unsigned, long_type, OP_breg(0), 0, OP_neg, OP_convert, UNSIGNED, \
		OP_lit(4), OP_convert, UNSIGNED, OP_shr, OP_stack_value
	variable masks, long_type, OP_breg(3), 1, OP_const1u, 255, OP_and, OP_breg(0), 0, OP_neg, \
		0x0a, 0xff, 0xff, OP_and, OP_breg(0), 1, OP_neg, 0x0c, 0xff, 0xff, 0xff, 0xff, \
		OP_and, OP_plus, OP_plus, OP_stack_value
	variable long_number, long_type, OP_const8u, 1, 2, 3, 4, 5, 6, 7, 0x88, OP_breg(0), 0, \
		OP_xor, OP_stack_value
	variable given, long_type, OP_entry_value(5), OP_stack_value
	variable given_more, int_type, OP_entry_value(9), OP_breg(3), 0, OP_plus, OP_stack_value
	variable given_elsewhere, int_type, OP_entry_value(3), OP_stack_value
	variable given_cell, int_type, 0xa3, 3, OP_breg(5), 0, OP_deref, OP_stack_value
	variable given_nothing, int_type, 0xa3, 0, OP_stack_value
	variable real, long_type, OP_breg(0), 0, OP_convert, REAL, OP_stack_value
	variable backward, long_type, OP_lit(1), 0x28, BACK, OP_lit(1), OP_stack_value
	variable beyond, long_type, OP_lit(1), OP_lit(1), OP_bra(90), OP_stack_value
	variable within, long_type, OP_breg(0), 0, OP_lit(0), OP_bra(1), OP_plus_uconst, 6, \
		OP_stack_value
	at_end

	function by_register, OP_reg(6)
	variable of_register, int_type, OP_fbreg, 16
	at_end
	function by_sum, OP_breg(6), MINUS(16)
	variable of_sum, int_type, OP_fbreg, 4
	at_end
	function by_itself, OP_fbreg, 8
	variable of_itself, int_type, OP_fbreg, 8
	at_end
	function by_two, OP_lit(1), OP_lit(2)
	variable of_two, int_type, OP_fbreg, 8
	at_end
	function by_cell, OP_breg(6), 0, OP_deref
	variable of_cell, int_type, OP_fbreg, 8
	at_end
	.uleb128 12
	.asciz "without"
	.quad without
	.byte 1
	variable of_none, int_type, OP_fbreg, 8
	at_end
	at_end
unit_end:

	.section .debug_loclists, "", @progbits
	.long places_end - places_begin
places_begin:
	.short 5
	.byte 8, 0
	.long 0
places: /* from the unit's beginning: 4 is an offset pair */
	.byte 4, 0, 1, 1, OP_reg(2)
	.byte 4, 1, 9, 1, OP_reg(3)
	.byte 0
views:
	.byte 4, 1, 9, 1, OP_reg(3)
	.byte 4, 0, 0, 1, OP_reg(12)
	.byte 0
others:
	.byte 4, 1, 9, 1, OP_reg(3)
	.byte 0
cut_places:
	.byte 4, 0, 1, 100, OP_reg(2)
places_end:
	.section .note.GNU-stack, "", @progbits
