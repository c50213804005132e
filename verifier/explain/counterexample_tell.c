/* SPDX-License-Identifier: MIT */
/* How a counterexample is told: the input in words, and the same execution for the CPU. */
#include "counterexample_parts.h"

#include <stdlib.h>
#include <string.h>

/* Whether the broken instruction's numbers come from register i. */
static bool uses(const struct replay *r, const struct fay_insn *insn, unsigned i)
{
	const struct fay_operand *mem = memory_operand(insn);

	if (r->o->goal == GOAL_DIVIDE &&
	    (i == FAY_RAX || i == FAY_RDX || (insn->src.kind == OPERAND_REG && insn->src.reg == i)))
		return true;
	return (r->o->size || r->o->goal == GOAL_DIVIDE) && mem &&
	       (mem->base == i || mem->index == i);
}

/* A number, or the pointer that it is. */
static const char *number_text(const struct replay *r, uint64_t number)
{
	static const char *const names[REGION_COUNT] = { [REGION_EVENT] = "event",
							 [REGION_LOCAL] = "local",
							 [REGION_GLOBAL] = "global",
							 [REGION_STACK] = "rsp at entry" };

	for (unsigned region = 0; region < REGION_COUNT; region++) {
		int64_t offset = (int64_t)(number - region_base(r, region));

		if (names[region] &&
		    number - FAY_NATIVE_BASE(region) + ((uint64_t)1 << 20) < ((uint64_t)1 << 39))
			return fay_arena_printf(r->an->arena, "%s %c 0x%llx", names[region],
						offset < 0 ? '-' : '+', llabs(offset));
	}
	return fay_arena_printf(r->an->arena, "0x%llx", (unsigned long long)number);
}

/* The fields of the event that the probe reads. */
static const char *describe_event(const struct replay *r, const char *text)
{
	static const struct {
		const char *name;
		uint16_t offset, size, bit;
	} field[] = {
		{ "arg[0]", 0, 8, 0 },         { "arg[1]", 8, 8, 1 },
		{ "arg[2]", 16, 8, 2 },        { "arg[3]", 24, 8, 3 },
		{ "arg[4]", 32, 8, 4 },        { "arg[5]", 40, 8, 5 },
		{ "retval", 48, 8, 6 },        { "time", 56, 8, 7 },
		{ "cycles", 64, 8, 8 },        { "function", 72, 8, 9 },
		{ "module", 80, 8, 10 },       { "pid", 88, 4, 11 },
		{ "tid", 92, 4, 12 },          { "cpu", 96, 4, 13 },
		{ "reserved", 100, 4, 14 },    { "comm[0..7]", 104, 8, 15 },
		{ "comm[8..15]", 112, 8, 15 }, { "stack_pointer", 120, 8, 16 },
		{ "duration", 128, 8, 17 },    { "address", 136, 8, 18 },
		{ "retval2", 144, 8, 19 },     { "retval_float", 152, 8, 20 },
		{ "flags", 288, 8, 22 },
	};
	uint32_t fields = r->an->facts->event_fields;
	uint64_t value = 0;

	for (unsigned i = 0; text && i < sizeof(field) / sizeof(field[0]); i++) {
		value = 0;
		memcpy(&value, r->event + field[i].offset, field[i].size);
		if (fields >> field[i].bit & 1)
			text = fay_arena_printf(r->an->arena, "%sevent.%s = 0x%llx\n", text,
						field[i].name, (unsigned long long)value);
	}
	for (unsigned i = 0; text && (fields & FAY_FIELD_REGISTERS) && i < 16; i++) {
		memcpy(&value, r->event + offsetof(struct fay_event, reg) + 8 * i, 8);
		text = fay_arena_printf(r->an->arena, "%sevent.reg[%u] = 0x%llx\n", text, i,
					(unsigned long long)value);
	}
	return text;
}

const char *fay_replay_describe(const struct replay *r)
{
	const struct fay_insn *insn = &r->an->cfg->insns[r->o->insn];
	struct fay_arena *arena = r->an->arena;
	bool zeros = false;
	const char *text = "";

	text = describe_event(r, text);
	for (unsigned i = 0; text && i < r->read_count; i++) {
		if (!r->reads[i].value) {
			zeros = true;
			continue;
		}
		text = fay_arena_printf(arena, "%s%s[%u..%u] = 0x%llx\n", text,
					r->reads[i].region == REGION_LOCAL ? "local" : "global",
					r->reads[i].offset,
					r->reads[i].offset + r->reads[i].size - 1,
					(unsigned long long)r->reads[i].value);
	}
	if (text && zeros)
		text = fay_arena_printf(arena, "%sstate otherwise zero where it is read\n", text);
	if (text && !*text)
		text = "any input\n";
	for (unsigned i = 0; text && i < 16; i++)
		if (i != FAY_RSP && uses(r, insn, i) && r->m.gpr[i] - 0x5a5a5a5a00000000u >= 16)
			text = fay_arena_printf(arena, "%s%s = %s at the instruction\n", text,
						fay_gpr_name(i, 64), number_text(r, r->m.gpr[i]));
	return text;
}

/* The execution just seen, for fay_verdict_replay(); NULL if it is too long. */
struct fay_native_case *fay_replay_native_case(struct replay *r)
{
	const struct fay_image *image = r->an->image;
	struct fay_native_case *c = r->native;

	if (!c || r->step_count > FAY_NATIVE_STEPS || r->o->insn >= r->an->cfg->insn_count)
		return NULL;
	c->layout = image->layout.bytes;
	c->layout_size = image->layout.size;
	c->layout_base = image->layout_base;
	c->text_start = image->text.start;
	c->rodata_start = image->rodata.start;
	c->local_size = r->size[REGION_LOCAL];
	c->global_size = r->size[REGION_GLOBAL];
	c->insn = r->an->cfg->insns[r->o->insn];
	c->divide = r->o->goal == GOAL_DIVIDE;
	c->bounds = r->o->size && memory_operand(&c->insn);
	c->rule = r->o->rule;
	c->region = r->o->region;
	c->low = r->o->low;
	c->high = r->o->high;
	for (uint32_t i = 0; i < image->layout.slot_count; i++) {
		c->slots[c->slot_count] = image->layout_base + image->layout.slots[i].offset;
		c->helpers[c->slot_count++] = image->layout.slots[i].helper;
	}
	c->step_count = r->step_count;
	c->steps = fay_arena_alloc(r->an->arena, r->step_count * sizeof(*c->steps));
	if (!c->steps)
		return NULL;
	memcpy(c->steps, r->steps, r->step_count * sizeof(*c->steps));
	return c;
}
