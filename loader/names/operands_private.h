/* SPDX-License-Identifier: MIT */
/* The argument strings of USDT notes, as GNU as writes operands: "8@%rax -4@12(%rsp,%rbx,4) 4@$7
 * 8@16+counters(%rip)". Pure functions of text. */
#ifndef FAY_LOADER_OPERANDS_H
#define FAY_LOADER_OPERANDS_H

#include <stddef.h>

#include "dispatcher/user/trampoline.h"

#define FAY_MARKER_MAX_ARGUMENTS 12u /* sys/sdt.h has as many */

struct fay_parsed_operand {
	struct fay_operand operand;
	/* its address is to be added to operand.value; NULL none. In the text, not
	 * NUL-terminated */
	const char *symbol;
	size_t symbol_length;
	const char *problem; /* why it cannot be used, to follow "argument n "; NULL */
};

/* Returns how many arguments the text has; all of them, up to the maximum, are in `parsed`. Text
 * behind the maximum is not looked at. */
unsigned fay_operands_parse(const char *text, size_t length,
			    struct fay_parsed_operand parsed[FAY_MARKER_MAX_ARGUMENTS]);

#endif
