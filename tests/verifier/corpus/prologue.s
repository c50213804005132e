# SPDX-License-Identifier: MIT
#
# Goes before every snippet of the corpus (run_corpus.c). The snippet itself is the body of the function `probe`; the tables
# of the image come after it, from the macro TABLES, unless the snippet's header says tables=own.
#
# The image: LOCAL and GLOBAL bytes of state (header attributes local= and global=), one entry probe on "libc!read", and
#   state 0  cell, local, one count at offset 0
#   state 1  stream, rows of two keys of 8 bytes
#   state 2  table, local, at offset 64, 4 rows of tag, key, count; only if LOCAL is at least 256
	.macro	IMAGE magic="FAYPROBE", version=1, flags=0, local=LOCAL, global=GLOBAL, probes=1, states=STATES, columns=COLUMNS, reserved=0
	.section .fay.image, "a"
	.ascii	"\magic"
	.long	\version, \flags, \local, \global, \probes, \states, \columns, \reserved, 0, 0, 0, 0, 0, 0
	.endm
	.macro	PROBE pattern=s_read, kind=1, code=probe, reserved0=0, parameter=0, reserved1=0
	.section .fay.probes, "a"
	.long	\pattern - ., \kind, \code - ., \reserved0
	.quad	\parameter, \reserved1
	.endm
	.macro	STATE name, kind, scope, offset, size, first, keys, values, rows, row_size, reserved=0
	.section .fay.state, "a"
	.long	\name - .
	.short	\kind, \scope
	.long	\offset, \size, \first
	.short	\keys, \values
	.long	\rows, \row_size, \reserved, 0, 0, 0
	.endm
	.macro	COLUMN name, type, merge, offset, size, param0=0, param1=0
	.section .fay.columns, "a"
	.long	\name - .
	.short	\type, \merge
	.long	\offset, \size
	.quad	\param0, \param1
	.endm
	.macro	STRINGS
	.section .fay.strings, "a"
s_empty: .asciz	""
s_read:	.asciz	"libc!read"
s_cell:	.asciz	"cell"
s_stream: .asciz "stream"
s_table: .asciz	"table"
s_a:	.asciz	"a"
s_b:	.asciz	"b"
	.endm
	.macro	TABLES
	IMAGE
	PROBE
	STATE	s_cell, 1, 1, 0, 8, 0, 0, 1, 1, 8
	COLUMN	s_a, 2, 1, 0, 8
	STATE	s_stream, 3, 1, 0, 0, 1, 2, 0, 1, 16
	COLUMN	s_a, 2, 0, 0, 8
	COLUMN	s_b, 2, 0, 8, 8
	.if LOCAL >= 256
	STATE	s_table, 2, 1, 64, 112, 3, 1, 1, 4, 24
	COLUMN	s_a, 2, 0, 8, 8
	COLUMN	s_b, 2, 1, 16, 8
	.endif
	STRINGS
	.endm
	.if LOCAL >= 256
	.set	STATES, 3
	.set	COLUMNS, 5
	.else
	.set	STATES, 2
	.set	COLUMNS, 3
	.endif
	.macro	FLUSH
	call	*fay_flush@GOTPCREL(%rip)
	.endm
	.macro	EMIT
	call	*fay_emit@GOTPCREL(%rip)
	.endm
	.macro	TRY_READ
	call	*fay_try_read@GOTPCREL(%rip)
	.endm
	.text
	.globl	probe
	.hidden	probe
	.type	probe, @function
probe:
