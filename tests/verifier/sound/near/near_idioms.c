/* SPDX-License-Identifier: MIT */
/* What compilers write, each with a small chance of being wrong: see near_code.h. */
#include "near_code.h"

void near_block(struct code *c, unsigned most)
{
	unsigned count = 1 + (unsigned)near_below(c, most);

	if (++c->depth < 4 && c->size < 700) {
		while (count--)
			near_statement(c);
	}
	c->depth--;
}

/* Index from the event, bounded in one of many ways, then used. */
void near_idiom_index(struct code *c)
{
	unsigned reg = near_scratch(c), other = near_scratch(c), scale = (unsigned)near_below(c, 4),
		 from = 0;
	int32_t limit = (near_rarely(c, 3) ? SOUNDNESS_LOCAL : SOUNDNESS_GLOBAL) >> scale, disp = 0;
	unsigned width = near_rarely(c, 3) ? 32 : 64;

	near_load_event(c, reg);
	if (near_rarely(c, 25))
		limit += (int32_t)near_below(c, 3) - 1;
	switch (near_below(c, 10)) {
	case 0: near_op_ri(c, width, 4, reg, limit - 1); break;
	case 1: /* cmp; jae */
		near_op_ri(c, width, 7, reg, limit);
		if (near_rarely(c, 8))
			near_op_rr(c, 64, 0xff, 0, other); /* inc keeps CF */
		from = near_jump_forward(c, near_rarely(c, 15) ? (unsigned)near_below(c, 16) : 3);
		break;
	case 2: /* cmp; ja */
		near_op_ri(c, width, 7, reg, limit - 1);
		from = near_jump_forward(c, near_rarely(c, 15) ? (unsigned)near_below(c, 16) : 7);
		break;
	case 3: /* clamp */
		near_byte(c, 0x40 | (other >> 3));
		c->size -= other < 8;
		near_byte(c, 0xb8 | (other & 7));
		near_word32(c, (uint32_t)limit - 1);
		near_op_rr(c, width, 0x39, other, reg);
		near_op_rr(c, width, near_rarely(c, 10) ? 0x0f4f : 0x0f47, reg, other);
		break;
	case 4: /* shift */
		near_op_rr(c, 64, 0xc1, 5, reg);
		near_byte(c, 64u - (unsigned)__builtin_ctz((unsigned)limit | 0x400) +
				     near_rarely(c, 10) - near_rarely(c, 10));
		break;
	case 5: /* subtract, compare, displacement the other way */
		disp = (int32_t)near_below(c, 64);
		near_op_ri(c, 64, 5, reg, disp);
		near_op_ri(c, width, 7, reg, limit);
		from = near_jump_forward(c, 3);
		if (near_rarely(c, 2)) {
			near_op_ri(c, 64, 0, reg, disp);
			disp = -disp * (1 << scale);
		} else {
			disp = 0;
		}
		break;
	case 6: /* copy checked */
		near_op_rr(c, near_rarely(c, 4) ? 32 : 64, 0x89, reg, other);
		near_op_ri(c, width, 7, other, limit);
		from = near_jump_forward(c, 3);
		break;
	case 7: /* signed on both sides */
		near_op_ri(c, width, 7, reg, near_rarely(c, 3) ? 1 : 0);
		from = near_jump_forward(c, 12);
		near_op_ri(c, width, 7, reg, limit);
		unsigned second = near_jump_forward(c, near_rarely(c, 10) ? 15 : 13);
		near_indexed_access(c, reg, scale, disp);
		near_land(c, second);
		near_land(c, from);
		return;
	case 8: /* remainder */
		near_op_rr(c, 64, 0x89, reg, AX);
		near_op_rr(c, 32, 0x31, DX, DX);
		near_byte(c, 0xb9);
		near_word32(c, (uint32_t)limit);
		near_op_rr(c, near_rarely(c, 10) ? 32 : 64, 0xf7, 6, CX);
		near_op_rm(c, 64, 0xff, 0, SI, DX, scale, 0);
		return;
	default: /* sign extension */
		near_op_rr(c, 64, near_rarely(c, 2) ? 0x63 : 0x0fbe, reg, AX);
		near_op_ri(c, 64, 4, reg, limit - 1);
	}
	if (near_rarely(c, 10))
		near_random_instruction(c);
	near_indexed_access(c, reg, scale, disp);
	if (near_rarely(c, 3) && from)
		near_block(c, 2);
	near_land(c, from);
}

void near_idiom_loop(struct code *c)
{
	unsigned counter = near_scratch(c), width = near_rarely(c, 3) ? 32 : 64;
	int32_t bound = 1 + (int32_t)near_below(c, 8),
		stride = near_rarely(c, 4) ? 1 + (int32_t)near_below(c, 3) : 1;
	bool up = near_rarely(c, 2);
	unsigned start;

	near_op_rr(c, 32, 0x31, counter, counter);
	if (!up || near_rarely(c, 5))
		near_op_ri(c, 64, 0, counter, bound * stride);
	start = c->size;
	if (up && near_rarely(c, 2))
		near_indexed_access(c, counter, 3, 0);
	if (near_rarely(c, 2))
		near_block(c, 2);
	near_op_ri(c, width, up ? 0 : 5, counter, stride);
	if (up)
		near_op_ri(c, width, 7, counter, near_rarely(c, 2) ? bound : bound * stride);
	else if (near_rarely(c, 3))
		near_indexed_access(c, counter, 3, 0);
	near_byte(c, 0x70 | (near_rarely(c, 15)  ? (unsigned)near_below(c, 16)
			     : near_rarely(c, 2) ? 5
			     : up                ? 2
						 : 15));
	near_byte(c, start - c->size - 1);
}

void near_idiom_branch(struct code *c)
{
	unsigned from;

	if (near_rarely(c, 3))
		near_load_event(c, near_scratch(c));
	near_op_ri(c, near_some_width(c), 7, near_scratch(c), near_some_number(c));
	from = near_jump_forward(c, (unsigned)near_below(c, 16));
	near_block(c, 3);
	near_land(c, from);
}

/* Through the slot, or through a register loaded from it that may have been moved, kept on the
 * stack, or spoilt in between. */
static void call_helper(struct code *c, unsigned helper)
{
	static const uint8_t scratch[] = { AX, CX, 8, 9, 10, 11 };
	unsigned reg = scratch[near_below(c, sizeof(scratch))], to = reg;
	uint64_t slot =
		c->template->slots[near_rarely(c, 30) ? near_below(c, FAY_HELPER_COUNT) : helper] +
		(near_rarely(c, 30) ? 8 * near_below(c, 3) - 8 : 0);

	if (near_rarely(c, 2)) {
		near_byte(c, 0xff);
		near_byte(c, 0x15);
		near_word32(c, (uint32_t)(slot - (c->template->text + c->size + 4)));
		return;
	}
	near_byte(c, reg >= 8 ? 0x4c : 0x48);
	near_byte(c, 0x8b);
	near_byte(c, (uint8_t)(0x05 | (reg & 7) << 3));
	near_word32(c, (uint32_t)(slot - (c->template->text + c->size + 4)));
	if (near_rarely(c, 3)) {
		near_op_rm(c, 64, 0x89, reg, SP, SP, 0, c->frame + 40);
		if (near_rarely(c, 10))
			near_random_instruction(c);
		to = scratch[near_below(c, sizeof(scratch))];
		near_op_rm(c, near_rarely(c, 20) ? near_some_width(c) : 64, 0x8b, to, SP, SP, 0,
			   c->frame + (near_rarely(c, 20) ? 36 : 40));
	} else if (near_rarely(c, 3)) {
		to = scratch[near_below(c, sizeof(scratch))];
		near_op_rr(c, near_rarely(c, 20) ? near_some_width(c) : 64, 0x89, reg, to);
	}
	if (near_rarely(c, 10))
		near_random_instruction(c);
	if (to >= 8)
		near_byte(c, 0x41);
	near_byte(c, 0xff);
	near_byte(c, (uint8_t)(0xd0 | (to & 7)));
}

/* A helper, with local kept in rbx (see generate) and everything else forgotten. */
void near_idiom_helper(struct code *c)
{
	unsigned helper = (unsigned)near_below(c, FAY_HELPER_COUNT);

	if (helper == FAY_HELPER_TRY_READ) {
		near_load_event(c, DX);
		near_byte(c, 0xbe);
		near_word32(c, near_rarely(c, 8) ? (uint32_t)near_some_number(c)
						 : (uint32_t)near_below(c, 41));
		near_op_rm(c, 64, 0x8d, DI, near_rarely(c, 3) ? BX : SP, SP, 0,
			   c->frame + (near_rarely(c, 4) ? 8 * (int32_t)near_below(c, 7) : 0));
	} else {
		if (helper == FAY_HELPER_EMIT)
			near_op_rm(c, 64, 0x8d, DX,
				   near_rarely(c, 2)   ? SP
				   : near_rarely(c, 2) ? SI
						       : DI,
				   SP, 0, c->frame + 8 * (int32_t)near_below(c, 6));
		near_op_rr(c, 64, 0x89, BX, DI);
		near_byte(c, 0xbe);
		near_word32(c, near_rarely(c, 20)           ? (uint32_t)near_below(c, 4)
			       : helper == FAY_HELPER_FLUSH ? 2
							    : 1);
	}
	call_helper(c, helper);
	if (near_rarely(c, 20))
		return;
	/* scratch registers have to be written again; rsi and rdi come from rbx and rbp */
	for (unsigned i = 0; i < 6; i++) {
		static const uint8_t again[] = { CX, 8, 9, 10, 11, DX };
		if (!near_rarely(c, 40))
			near_op_rr(c, 32, 0x31, again[i], again[i]);
	}
	near_op_rr(c, 64, 0x89, BX, SI);
	near_op_rr(c, 64, 0x89, BP, DI);
	near_op_rr(c, 64, 0x89, 12, DX);
}

void near_idiom_memory(struct code *c)
{
	unsigned reg = near_scratch(c), width = near_some_width(c), base = near_pointer(c);
	int32_t disp = near_rarely(c, 30) ? 60 : 8 * (int32_t)near_below(c, 8);

	switch (near_below(c, 7)) {
	case 0:
	case 1: near_op_rm(c, width, width == 8 ? 0x88 : 0x89, reg, base, SP, 0, disp); break;
	case 2:
	case 3: near_op_rm(c, width, width == 8 ? 0x8a : 0x8b, reg, base, SP, 0, disp); break;
	case 4:
		near_byte(c, 0xf0);
		near_op_rm(c, 64, near_rarely(c, 2) ? 0x0fc1 : 0x0fb1, reg, base, SP, 0, disp);
		break;
	case 5: /* constants */
		near_rex(c, true, reg, 0, 0, false);
		near_byte(c, 0x8d);
		near_byte(c, (reg & 7) << 3 | 5);
		near_word32(c, (uint32_t)(c->template->rodata - (c->template->text + c->size + 4)));
		{
			unsigned index = near_scratch(c);
			near_load_event(c, index);
			near_op_ri(c, 32, 4, index, near_rarely(c, 10) ? 63 : 15);
			near_op_rm(c, 32, 0x0fb6, index, reg, index, 0, near_rarely(c, 2) ? 16 : 0);
			if (near_rarely(c, 2))
				near_indexed_access(c, index, 0, 0);
		}
		break;
	default: /* move the pointer there and back */
		near_op_ri(c, 64, 0, SI, 8);
		near_op_rm(c, 64, 0xff, 0, SI, SP, 0, disp);
		near_op_ri(c, 64, 5, SI, 8);
	}
}

/* A switch of four through a table; now and then without a check that is enough, or with an entry
 * that is off. */
void near_idiom_switch(struct code *c)
{
	unsigned index = near_scratch(c), base = near_scratch(c), to = near_scratch(c),
		 number = c->table_count;
	uint64_t table = c->template->rodata + 32 + 16 * (uint64_t)number;

	if (4 * number >= SOUNDNESS_TABLES || c->depth > 2 || base == SP || to == SP || index == SP)
		return;
	c->table_count++;
	c->depth++;
	near_load_event(c, index);
	near_op_ri(c, near_rarely(c, 20) ? 8 : 32, 4, index,
		   near_rarely(c, 20)  ? 7
		   : near_rarely(c, 3) ? 1
				       : 3);
	near_rex(c, true, base, 0, 0, false);
	near_byte(c, 0x8d);
	near_byte(c, (base & 7) << 3 | 5);
	near_word32(c, (uint32_t)(table - (c->template->text + c->size + 4)));
	near_op_rm(c, 64, near_rarely(c, 20) ? 0x8b : 0x63, to, base, index,
		   near_rarely(c, 20) ? 1 : 2, 0);
	near_op_rr(c, 64, 0x01, near_rarely(c, 30) ? index : base, to);
	if (to >= 8)
		near_byte(c, 0x41);
	near_byte(c, 0xff);
	near_byte(c, 0xe0 | (to & 7));
	for (unsigned i = 0; i < 4; i++) {
		c->tables[4 * number + i] = (int32_t)(c->template->text + c->size - table) +
					    (near_rarely(c, 60) ? 1 : 0);
		near_statement(c);
	}
	c->depth--;
}

/*
 * Two places of one region, at or beyond its ends and the frame's, compared; what the comparison
 * says decides whether an access far outside runs. So the probe is accepted only if the verifier
 * believes that it never does.
 */
void near_idiom_pointers(struct code *c)
{
	static const uint8_t bases[] = { SP, SP, SI, DX, DI };
	static const uint16_t sizes[] = { 72, 72, SOUNDNESS_LOCAL, SOUNDNESS_GLOBAL, 296 };
	unsigned region = (unsigned)near_below(c, 5), a = near_rarely(c, 2) ? AX : 8,
		 b = near_rarely(c, 2) ? CX : 9, from;

	for (unsigned i = 0; i < 2; i++) {
		int32_t edge = near_rarely(c, 3)   ? 0
			       : near_rarely(c, 2) ? sizes[region] + (region < 2 ? c->frame : 0)
						   : 8 * (int32_t)near_below(c, sizes[region] / 8);
		unsigned index = SP;

		if (near_rarely(c, 4)) {
			index = 10;
			near_load_event(c, index);
			near_op_ri(c, 32, 4, index, near_rarely(c, 2) ? 8 : 24);
		}
		near_op_rm(c, 64, 0x8d, i ? b : a, bases[region], index, 0,
			   edge + (near_rarely(c, 3) ? 8 * (int32_t)near_below(c, 3) - 8 : 0));
	}
	if (near_rarely(c, 4))
		near_op_rr(c, 64, 0x89, a, 11);
	near_op_rr(c, 64, near_rarely(c, 4) ? 0x29 : 0x39, b, a);
	if (near_rarely(c, 3)) { /* an index of 0 or 2^20 */
		near_op_rr(c, 8, 0x0f90 | (unsigned)near_below(c, 16), 0, 10);
		near_op_rr(c, 32, 0x0fb6, 10, 10);
		near_op_rr(c, 32, 0xc1, 4, 10);
		near_byte(c, 20);
		near_op_rm(c, 64, 0x8b, AX, SI, 10, 0, 0);
	} else {
		from = near_jump_forward(c, (unsigned)near_below(c, 16));
		near_op_rm(c, 64, 0x8b, AX, SI, SP, 0, 1 << 20);
		near_land(c, from);
	}
	near_op_rr(c, 32, 0x31, a, a);
	near_op_rr(c, 32, 0x31, b, b);
	near_op_rr(c, 32, 0x31, 11, 11);
}

/* Bounds that follow from the bits only, which intervals do not show: the solver's. Sometimes they
 * do not follow. */
void near_idiom_bits(struct code *c)
{
	unsigned reg = near_rarely(c, 2) ? AX : 8, other = near_rarely(c, 2) ? CX : 9,
		 shift = 1 + (unsigned)near_below(c, 3);

	near_load_event(c, reg);
	switch (near_below(c, 4)) {
	case 0: /* x - (x >> n << n) */
		near_op_rr(c, 64, 0x89, reg, other);
		near_op_rr(c, 64, 0xc1, 5, other);
		near_byte(c, shift);
		near_op_rr(c, 64, 0xc1, 4, other);
		near_byte(c, near_rarely(c, 10) ? shift + 1 : shift);
		near_op_rr(c, 64, 0x29, other, reg);
		break;
	case 1: /* a mask of all ones or zeros, from the carry */
		near_op_ri(c, 64, 7, reg, near_rarely(c, 10) ? 33 : 8);
		near_op_rr(c, 64, 0x19, other, other);
		near_op_rr(c, 64, 0x21, other, reg);
		break;
	case 2: /* x ^ (x & ~7) */
		near_op_rr(c, 64, 0x89, reg, other);
		near_op_ri(c, 64, 4, other, near_rarely(c, 10) ? -64 : -8);
		near_op_rr(c, 64, 0x31, other, reg);
		break;
	default: /* two tests of one number's bits */
		near_op_rr(c, 64, 0x89, reg, other);
		near_op_ri(c, 64, 1, other, 7);
		near_op_rr(c, 64, 0x29, other, reg);
		near_op_rr(c, 64, 0xf7, 3, reg);
	}
	near_indexed_access(c, reg, near_rarely(c, 10) ? 1 : 3, 0);
}

/* A call of a function that is put behind the probe's end. */
void near_idiom_call(struct code *c)
{
	if (c->within || c->call_count == sizeof(c->calls) || c->size > 250)
		return;
	near_byte(c, 0xe8);
	near_word32(c, 0);
	c->calls[c->call_count++] = (uint8_t)c->size;
}
