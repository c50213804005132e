/* SPDX-License-Identifier: MIT */
/* Writing x86-64 instructions, private to the trampoline generator. Registers are numbered as in
 * enum fay_gpr. */
#ifndef FAY_DISPATCHER_EMIT_PRIVATE_H
#define FAY_DISPATCHER_EMIT_PRIVATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct fay_emitter {
	uint8_t *code;
	size_t size, capacity;
	uint64_t address; /* of code[0] */
	bool failed;      /* out of room or out of reach; nothing more is written */
};

enum fay_condition {
	FAY_IF_BELOW = 2,
	FAY_IF_NOT_BELOW = 3,
	FAY_IF_EQUAL = 4,
	FAY_IF_NOT_EQUAL = 5,
	FAY_IF_NEGATIVE = 8
};

void fay_emit_byte(struct fay_emitter *e, unsigned value);
void fay_emit_bytes(struct fay_emitter *e, const void *data, size_t size);
void fay_emit_imm32(struct fay_emitter *e, uint32_t value);
void fay_emit_push(struct fay_emitter *e, unsigned reg);
void fay_emit_pop(struct fay_emitter *e, unsigned reg);
/* What follows an opcode: `reg` and disp(base), without the REX prefix that registers from r8 on
 * need. */
void fay_emit_address(struct fay_emitter *e, unsigned reg, unsigned base, int32_t disp);
/* opcode with `reg` and disp(base); with REX.W if wide. */
void fay_emit_memory(struct fay_emitter *e, bool wide, unsigned opcode, unsigned reg, unsigned base,
		     int32_t disp);
void fay_emit_store64(struct fay_emitter *e, unsigned base, int32_t disp, unsigned reg);
void fay_emit_store32(struct fay_emitter *e, unsigned base, int32_t disp, unsigned reg);
void fay_emit_load64(struct fay_emitter *e, unsigned reg, unsigned base, int32_t disp);
void fay_emit_load32(struct fay_emitter *e, unsigned reg, unsigned base, int32_t disp);
void fay_emit_lea(struct fay_emitter *e, unsigned reg, unsigned base, int32_t disp);
void fay_emit_movabs(struct fay_emitter *e, unsigned reg, uint64_t value);
/* The rel32 that ends the instruction being written, to `target`; `after` bytes of it follow. */
void fay_emit_rel32(struct fay_emitter *e, uint64_t target, unsigned after);
/* op reg, target(%rip) with REX.W */
void fay_emit_rip_relative(struct fay_emitter *e, unsigned opcode, unsigned reg, uint64_t target);
void fay_emit_call(struct fay_emitter *e, uint64_t target);
void fay_emit_jump(struct fay_emitter *e, uint64_t target);
/* jcc, jmp rel32 to a place not yet known; returns where its rel32 is, for
 * fay_emit_land(). */
size_t fay_emit_jump_if(struct fay_emitter *e, enum fay_condition condition);
size_t fay_emit_jump_ahead(struct fay_emitter *e);
/* The place is here. */
void fay_emit_land(struct fay_emitter *e, size_t at);
/* jcc rel32 back to `to`, an offset in the code. */
void fay_emit_jump_back_if(struct fay_emitter *e, enum fay_condition condition, size_t to);

#endif
