/* SPDX-License-Identifier: MIT */
/* What uses the frame: slots, an array that a loop fills, registers pushed; see near_code.h. */
#include "near_code.h"

/* Frame slots: 8 of 8 bytes at 0(%rsp), see near_generate(). */
void near_idiom_stack(struct code *c)
{
	unsigned reg = near_scratch(c), width = near_some_width(c);
	int32_t slot = c->frame + 8 * (int32_t)near_below(c, 6) +
		       (near_rarely(c, 6) ? (int32_t)near_below(c, 8) : 0);

	switch (near_below(c, 6)) {
	case 0: near_op_rm(c, width, width == 8 ? 0x88 : 0x89, reg, SP, SP, 0, slot); break;
	case 1: near_op_rm(c, width, width == 8 ? 0x8a : 0x8b, reg, SP, SP, 0, slot); break;
	case 2: /* spill a pointer and reload it */
		near_op_rm(c, 64, 0x89, SI, SP, SP, 0, slot & ~7);
		if (near_rarely(c, 2))
			near_block(c, 2);
		near_op_rm(c, 64, 0x8b, near_rarely(c, 2) ? SI : near_scratch(c), SP, SP, 0,
			   slot & ~7);
		break;
	case 3: /* indexed */
		near_load_event(c, reg);
		near_op_ri(c, 32, 4, reg, near_rarely(c, 10) ? 7 : 3);
		near_op_rm(c, width, width == 8 ? 0x88 : 0x89, near_scratch(c), SP, reg,
			   width == 64 ? 3 : (unsigned)near_below(c, 3), c->frame);
		break;
	case 4: /* compare the slot */
		near_op_rm(c, 64, 0x83, 7, SP, SP, 0, slot & ~7);
		near_byte(c, (unsigned)near_some_number(c));
		{
			unsigned from = near_jump_forward(c, (unsigned)near_below(c, 16));
			near_op_rm(c, 64, 0x8b, reg, SP, SP, 0, slot & ~7);
			if (near_rarely(c, 2))
				near_indexed_access(c, reg, (unsigned)near_below(c, 4), 0);
			near_land(c, from);
		}
		break;
	default:
		near_op_rm(c, width, width == 8 ? 0xfe : 0xff, (unsigned)near_below(c, 2), SP, SP,
			   0, slot);
	}
}

/* An array in a frame of its own that a loop writes, wholly or nearly, and that is read then, or
 * while it is written. */
void near_idiom_fill(struct code *c)
{
	unsigned scale = near_rarely(c, 3) ? 2 : 3,
		 width = near_rarely(c, 10) ? near_some_width(c)
			 : scale == 2       ? 32
					    : 64,
		 start, from = 0, elements = 32u >> scale;
	bool down = near_rarely(c, 4);

	if (c->frame > 64 || c->depth > 2)
		return;
	near_op_ri(c, 64, 5, SP, 32);
	c->frame += 32;
	near_byte(c, 0xb9); /* mov $first, %ecx */
	near_word32(c, (down ? elements : 0) + (near_rarely(c, 10) ? 1 : 0));
	start = c->size;
	if (near_rarely(c, 6))
		near_random_instruction(c);
	if (near_rarely(c, 6)) { /* left early */
		near_op_ri(c, 64, 7, 8, near_some_number(c));
		from = near_jump_forward(c, 4 + (unsigned)near_below(c, 2));
	}
	if (near_rarely(c, 8))
		near_op_rm(c, 64, 0x89, near_rarely(c, 2) ? SI : AX, SP, SP, 0,
			   8 * (int32_t)near_below(c, 4));
	near_op_rm(c, width, width == 8 ? 0x88 : 0x89, AX, SP, CX, scale,
		   (down ? -(1 << scale) : 0) + (near_rarely(c, 20) ? 4 : 0));
	if (near_rarely(c, 4)) /* the one just written, or another */
		near_op_rm(c, scale == 2 ? 32 : 64, 0x8b, 9, SP, CX, scale,
			   (int32_t)near_below(c, 3) * (1 << scale) - (1 << scale));
	near_op_ri(c, near_rarely(c, 4) ? 32 : 64, down ? 5 : 0, CX, near_rarely(c, 15) ? 2 : 1);
	if (!down || near_rarely(c, 4))
		near_op_ri(c, 64, 7, CX,
			   down ? 0
				: (int32_t)(elements + (near_rarely(c, 12)
								? (unsigned)near_below(c, 3) - 1
								: 0)));
	near_byte(c, 0x70 | (near_rarely(c, 4) && !down ? 2 : 5));
	near_byte(c, start - c->size - 1);
	if (from && near_rarely(c, 2)) {
		near_land(c, from);
		from = 0;
	}
	if (near_rarely(c, 3)) {
		near_block(c, 1);
	} else {
		near_load_event(c, 9);
		near_op_ri(c, 32, 4, 9, (int32_t)(elements - (near_rarely(c, 8) ? 0 : 1)));
		near_op_rm(c, scale == 2 ? 32 : 64, 0x8b, AX, SP, 9, scale, 0);
		near_op_rm(c, 64, 0x89, AX, SI, SP, 0, 8 * (int32_t)near_below(c, 8));
	}
	if (from)
		near_land(c, from);
	near_op_ri(c, 64, 0, SP, 32);
	c->frame -= 32;
}

/* Something pushed meanwhile, and popped, not always evenly. */
void near_idiom_push(struct code *c)
{
	unsigned reg = near_rarely(c, 3) ? 3 + 9 * (unsigned)near_below(c, 2) : near_scratch(c),
		 to = near_rarely(c, 10) ? near_scratch(c) : reg;

	if (reg == SP || to == SP || c->frame > 64)
		return;
	if (reg >= 8)
		near_byte(c, 0x41);
	near_byte(c, 0x50 | (reg & 7));
	c->frame += 8;
	near_block(c, 2);
	c->frame -= 8;
	if (to >= 8)
		near_byte(c, 0x41);
	near_byte(c, 0x58 | (to & 7));
}
