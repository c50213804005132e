/* SPDX-License-Identifier: MIT */
/* A whole probe: frame, inputs, statements, the functions that it calls, damage. See near_code.h.
 * */
#include "near_code.h"

void near_statement(struct code *c)
{
	switch (near_below(c, 35)) {
	case 27:
	case 28: near_idiom_remainder(c); break;
	case 29:
	case 30: near_idiom_partial(c); break;
	case 31: near_idiom_rounds(c); break;
	case 32: near_idiom_search(c); break;
	case 33: near_idiom_nest(c); break;
	case 34: near_idiom_string(c); break;
	case 25:
	case 26: near_idiom_fill(c); break;
	case 20:
	case 21: near_idiom_pointers(c); break;
	case 22: near_idiom_bits(c); break;
	case 23: near_idiom_call(c); break;
	case 24: near_idiom_push(c); break;
	case 16:
	case 17:
	case 18: near_idiom_vector(c); break;
	case 19: near_idiom_switch(c); break;
	case 0:
	case 1:
	case 2: near_idiom_index(c); break;
	case 3:
	case 4: near_idiom_loop(c); break;
	case 5:
	case 6: near_idiom_stack(c); break;
	case 7:
	case 8: near_idiom_branch(c); break;
	case 9: near_idiom_helper(c); break;
	case 10:
	case 11: near_idiom_memory(c); break;
	case 12: near_load_event(c, near_scratch(c)); break;
	default: near_random_instruction(c);
	}
}

/* The functions that calls want: two at most, each with a frame of its own of 8 bytes. */
static void functions(struct code *c)
{
	unsigned starts[2] = { 0, 0 }, count = 0;

	c->within = true;
	c->frame = 16;
	for (unsigned i = 0; i < c->call_count; i++) {
		unsigned which = count && near_rarely(c, 2) ? (unsigned)near_below(c, count)
							    : count,
			 at = c->calls[i], to;

		if (which == 2)
			which = 1;
		if (which == count) {
			starts[count++] = c->size;
			near_op_ri(c, 64, 5, SP, 8);
			near_block(c, 3);
			if (!near_rarely(c, 60))
				near_op_ri(c, 64, 0, SP, 8);
			near_byte(c, 0xc3);
		}
		to = starts[which] - at;
		for (unsigned k = 0; k < 4; k++)
			c->bytes[at - 4 + k] = (uint8_t)(to >> 8 * k);
	}
}

void near_generate(struct code *c)
{
	static const uint8_t first[] = { AX, CX, 8, 9, 10, 11 };
	unsigned statements = 1 + (unsigned)near_below(c, 6), damage;

	near_byte(c, 0x53); /* push %rbx, %rbp, %r12 */
	near_byte(c, 0x55);
	near_byte(c, 0x41);
	near_byte(c, 0x54);
	near_op_ri(c, 64, 5, SP, 48); /* aligned for helpers */
	near_op_rr(c, 64, 0x89, SI, BX);
	near_op_rr(c, 64, 0x89, DI, BP);
	near_op_rr(c, 64, 0x89, DX, 12);
	for (unsigned i = 0; i < sizeof(first); i++) {
		if (near_rarely(c, 2))
			near_op_rr(c, 32, 0x31, first[i], first[i]);
		else
			near_load_event(c, first[i]);
	}
	for (int32_t slot = 0; slot < 48; slot += 8) {
		if (!near_rarely(c, 10))
			near_op_rm(c, 64, 0x89, AX, SP, SP, 0, slot);
	}
	/* vmovups (%rdi), %ymm: sometimes only half, sometimes not at all */
	for (unsigned i = 0; i < 8; i++) {
		uint8_t load[] = { 0xc5, near_rarely(c, 6) ? 0xf8 : 0xfc, 0x10,
				   (uint8_t)(0x07 | i << 3) };

		if (near_rarely(c, 4))
			continue;
		for (unsigned k = 0; k < 4; k++)
			near_byte(c, load[k]);
	}
	while (statements--)
		near_statement(c);
	near_op_ri(c, 64, 0, SP, 48);
	near_byte(c, 0x41);
	near_byte(c, 0x5c);
	near_byte(c, 0x5d);
	near_byte(c, 0x5b);
	near_byte(c, 0xc3);
	functions(c);
	damage = near_rarely(c, 6) ? 1 + (unsigned)near_below(c, 2) : 0;
	while (damage--)
		c->bytes[near_below(c, c->size)] ^= (uint8_t)(1u << near_below(c, 8));
}
