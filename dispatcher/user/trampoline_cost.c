/* SPDX-License-Identifier: MIT */
/*
 * Measuring what the probes at a place cost, where somebody asked for that. The thread's own record
 * of the place is near LOCAL (struct fay_place_cost):
 *
 *	movl $0, began(%rsp)
 *	decl left(%rsi); js timed             out of line: 1 to 256, by chance, is added to left and
 *					      drawn; began = time stamp counter
 *   begun: (fields, probes) cmpl $0, began(%rsp); jne ends out of line: cycles += counter - began,
 *     at most FAY_COST_LONGEST; timed += 1
 *   ended:
 *
 * Where calls have records there is a second account around it, in which is what begins and ends
 * them, too, and which is kept also where no probe runs.
 *
 * Each event is counted, and about one in 128 is timed: after a number of others that chance
 * chooses, since probes do some of their work each so many events. The jump, the saving of
 * registers and the look-up of the thread lie outside of what is timed (loader/session/cost.c adds
 * something for them).
 */
#include "trampoline_private.h"

#define DRAWN ((int32_t)offsetof(struct fay_place_cost, drawn))
#define CYCLES ((int32_t)offsetof(struct fay_place_cost, cycles))
#define TIMED ((int32_t)offsetof(struct fay_place_cost, timed))
#define LEFT ((int32_t)offsetof(struct fay_place_cost, left))

static const uint8_t rdtsc[] = { 0x0f, 0x31 };

void fay_cost_begin(struct fay_emitter *e, int32_t place, int32_t at, struct fay_cost *cost)
{
	*cost = (struct fay_cost){ .place = place, .at = at };
	if (!place)
		return;
	fay_emit_memory(e, false, 0xc7, 0, FAY_RSP, at);
	fay_emit_imm32(e, 0);
	fay_emit_memory(e, false, 0xff, 1, FAY_RSI, place + LEFT);
	cost->timed = fay_emit_jump_if(e, FAY_IF_NEGATIVE);
	cost->begun = e->size;
}

void fay_cost_end(struct fay_emitter *e, struct fay_cost *cost)
{
	if (!cost->place)
		return;
	fay_emit_memory(e, false, 0x83, 7, FAY_RSP, cost->at);
	fay_emit_byte(e, 0);
	cost->ends = fay_emit_jump_if(e, FAY_IF_NOT_EQUAL);
	cost->ended = e->size;
}

void fay_cost_aside(struct fay_emitter *e, const struct fay_cost *cost)
{
	static const uint8_t shr4_movzx_al_inc[] = { 0xc1, 0xe8, 4, 0x0f, 0xb6, 0xc0, 0xff, 0xc0 },
			     or1_eax[] = { 0x83, 0xc8, 1 };
	static const uint8_t mov_eax[] = { 0xb8 }, cmp_eax[] = { 0x3d };
	size_t usual;

	if (!cost->place)
		return;
	fay_emit_land(e, cost->timed);
	fay_emit_bytes(e, rdtsc, sizeof(rdtsc));
	fay_emit_bytes(e, shr4_movzx_al_inc, sizeof(shr4_movzx_al_inc));
	fay_emit_memory(e, false, 0x01, FAY_RAX, FAY_RSI, cost->place + LEFT); /* add */
	fay_emit_memory(e, true, 0x01, FAY_RAX, FAY_RSI, cost->place + DRAWN);
	fay_emit_bytes(e, rdtsc, sizeof(rdtsc));
	fay_emit_bytes(e, or1_eax, sizeof(or1_eax));
	fay_emit_store32(e, FAY_RSP, cost->at, FAY_RAX);
	fay_emit_jump(e, e->address + cost->begun);

	fay_emit_land(e, cost->ends);
	fay_emit_bytes(e, rdtsc, sizeof(rdtsc));
	fay_emit_memory(e, false, 0x2b, FAY_RAX, FAY_RSP, cost->at); /* sub */
	fay_emit_bytes(e, cmp_eax, sizeof(cmp_eax));
	fay_emit_imm32(e, FAY_COST_LONGEST);
	usual = fay_emit_jump_if(e, FAY_IF_BELOW);
	fay_emit_bytes(e, mov_eax, sizeof(mov_eax));
	fay_emit_imm32(e, FAY_COST_LONGEST);
	fay_emit_land(e, usual);
	fay_emit_memory(e, true, 0x01, FAY_RAX, FAY_RSI, cost->place + CYCLES); /* add */
	fay_emit_memory(e, false, 0xff, 0, FAY_RSI, cost->place + TIMED);
	fay_emit_jump(e, e->address + cost->ended);
}
