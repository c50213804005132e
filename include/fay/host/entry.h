/* SPDX-License-Identifier: MIT */
/*
 * For the source of an extension, in C: FAY_EXTENSION once, FAY_ENTRY for each function that the
 * host may call. docs/internals/host-interface.md has the commands that make an image of it.
 */
#ifndef FAY_ENTRY_H
#define FAY_ENTRY_H

#include <stdint.h>

/* `entries` functions, and `local_size` bytes of local state, a multiple of 8; both in digits. */
#define FAY_EXTENSION(entries, local_size)                                                         \
	__asm__(".pushsection .fay.image, \"a\", @progbits\n"                                      \
		".ascii \"FAYPROBE\"\n"                                                            \
		".long 1, 0, " #local_size ", 0, " #entries ", 0, 0, 0, 0, 0, 0, 0, 0, 0\n"        \
		".popsection\n"                                                                    \
		".pushsection .fay.interface, \"a\", @progbits\n"                                  \
		".zero 32\n" /* the interface's hash: by fay verify --certify */                   \
		".popsection\n")

/* The function may not be static, and is seen within the image only. */
#define FAY_ENTRY(function)                                                                        \
	__asm__(".hidden " #function "\n"                                                          \
		".pushsection .fay.strings, \"a\", @progbits\n"                                    \
		".Lfay_name_" #function ": .asciz \"" #function "\"\n"                             \
		".popsection\n"                                                                    \
		".pushsection .fay.probes, \"a\", @progbits\n"                                     \
		".long .Lfay_name_" #function " - ., 11\n"                                         \
		".long " #function " - ., 0\n"                                                     \
		".quad 0, 0\n"                                                                     \
		".popsection\n")

#endif
