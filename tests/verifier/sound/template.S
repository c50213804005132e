# SPDX-License-Identifier: MIT
#
# The image that the fuzzers put code into: 1024 bytes of `ret` to be overwritten, one call of each helper so that its slot
# exists, 32 bytes of constants, room for four jump tables of four entries. Assembled with -I corpus --defsym LOCAL=256 --defsym GLOBAL=64.
	.include "prologue.s"
	.fill	1024, 1, 0xc3
	FLUSH
	EMIT
	TRY_READ
	ret
	.section .rodata
	.byte	1, 2, 3, 4, 5, 6, 7, 0, 255, 128, 127, 64, 32, 16, 8, 63
	.byte	9, 9, 9, 9, 9, 9, 9, 9, 0, 0, 0, 0, 7, 6, 5, 4
	.fill	16, 4, 0
	TABLES
