/* SPDX-License-Identifier: MIT */
/*
 * A function with a copy of an inlined one, as gcc 12 may write it: entered at one place, and at
 * another, which is a range without bytes and has a row of the line table. DWARF 5, by hand;
 * test_copies.c says which places count.
 */
	.file 1 "copied.c"
	.text
	.globl outer, first, second
	.type outer, @function
outer:
	.loc 1 10 1
	nop
first:	/* the range without bytes */
	.loc 1 2 19
	nop
	/* behind it, none of the copy's */
	.loc 1 2 19
	nop
	.loc 1 11 2
	nop
second:	/* the range with bytes, where the copy says that it is entered */
	.loc 1 3 5
	nop
second_end: /* nor is this one */
	.loc 1 2 19
	nop
	.loc 1 12 1
	ret
text_end:
	.size outer, . - outer

	.section .debug_abbrev, "", @progbits
.macro abbreviation number, tag, children, forms:vararg
	.uleb128 \number, \tag
	.byte \children
	.uleb128 \forms
	.byte 0, 0
.endm
abbreviations:
	/* unit: producer, name, stmt_list, low_pc, high_pc */
	abbreviation 1, 0x11, 1, 0x25, 0x08, 0x03, 0x08, 0x10, 0x17, 0x11, 0x01, 0x12, 0x06
	/* function that is inlined: name, decl_file, decl_line, decl_column, inline */
	abbreviation 2, 0x2e, 0, 0x03, 0x08, 0x3a, 0x0b, 0x3b, 0x0b, 0x39, 0x0b, 0x20, 0x0b
	/* function: name, low_pc, high_pc */
	abbreviation 3, 0x2e, 1, 0x03, 0x08, 0x11, 0x01, 0x12, 0x06
	/* copy: abstract_origin, entry_pc, ranges, call_line, call_column */
	abbreviation 4, 0x1d, 0, 0x31, 0x13, 0x52, 0x01, 0x55, 0x17, 0x58, 0x0b, 0x57, 0x0b
	.byte 0

	.section .debug_rnglists, "", @progbits
	.long ranges_end - ranges_begin
ranges_begin:
	.short 5
	.byte 8, 0
	.long 0
ranges:
	.byte 6 /* DW_RLE_start_end */
	.quad first, first
	.byte 6
	.quad second, second_end
	.byte 0
ranges_end:

	.section .debug_info, "", @progbits
unit:
	.long unit_end - unit_begin
unit_begin:
	.short 5
	.byte 1, 8
	.long abbreviations
	.uleb128 1
	.asciz "GNU C17 12.2.0 -g -O2"
	.asciz "copied.c"
	.long lines
	.quad outer
	.long text_end - outer
inner_entry:
	.uleb128 2
	.asciz "inner"
	.byte 1, 2, 19, 1
	.uleb128 3
	.asciz "outer"
	.quad outer
	.long text_end - outer
	.uleb128 4
	.long inner_entry - unit
	.quad second
	.long ranges
	.byte 10, 3
	.byte 0, 0
unit_end:

	.section .debug_line, "", @progbits
lines:
	.section .note.GNU-stack, "", @progbits
