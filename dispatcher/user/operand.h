/* SPDX-License-Identifier: MIT */
/* Where a marker's argument is when the marker is reached: what the loader read in its note, as the
 * trampoline generator needs it. */
#ifndef FAY_DISPATCHER_OPERAND_H
#define FAY_DISPATCHER_OPERAND_H

#include <stdbool.h>
#include <stdint.h>

#define FAY_OPERAND_NO_REGISTER 0xffu

enum fay_operand_form {
	FAY_OPERAND_CONSTANT = 1, /* `value` */
	FAY_OPERAND_REGISTER,     /* base; its second byte if high_byte */
	FAY_OPERAND_MEMORY,       /* value + base + index * scale */
};

struct fay_operand {
	uint8_t form; /* enum fay_operand_form */
	uint8_t size; /* bytes: 1, 2, 4 or 8 */
	/* registers by their numbers, or FAY_OPERAND_NO_REGISTER; 1, 2, 4 or 8 */
	uint8_t base, index, scale;
	bool is_signed;
	bool high_byte; /* ah, ch, dh, bh */
	bool readable;  /* MEMORY without registers that the loader saw mapped: needs no care */
	int64_t value;
};

#endif
