/* SPDX-License-Identifier: MIT */
/*
 * Indirect jumps: through tables of distances in read-only data, as compilers make them of a
 * switch.
 *
 *	lea table(%rip), %rt;  movslq (%rt,%ri,4), %rd;  add %rt, %rd;  jmp *%rd
 *
 * Nothing of this sequence is looked for. A number that was read from read-only data within proved
 * bounds is noted with the name it got, and with the offsets it may be from; adding a constant
 * pointer keeps the name. So the register that is jumped through says which entries of which bytes
 * it may come from, and the bytes, which cannot change, say where that leads: each place must be in
 * the code. Notes last for one block, in which a name is one number.
 *
 * The graph is built from places found before. A place that is not among them ends the attempt: it
 * is added, everything is decoded again, and the analysis starts over. In the last pass a place
 * that the graph lacks is a refusal, so what is accepted was analysed with all of them.
 */
#include "transfer.h"

#include <stdlib.h>
#include <string.h>

#define NOTES (sizeof(((struct fay_analysis *)NULL)->reads) / sizeof(struct fay_table_read))

static void note(struct fay_analysis *an, struct fay_table_read read)
{
	if (an->read_count == NOTES)
		memmove(&an->reads[0], &an->reads[1], --an->read_count * sizeof(an->reads[0]));
	an->reads[an->read_count++] = read;
}

static const struct fay_table_read *noted(const struct fay_analysis *an, uint32_t id)
{
	for (uint32_t i = an->read_count; id && i-- > 0;)
		if (an->reads[i].id == id)
			return &an->reads[i];
	return NULL;
}

void fay_note_table_read(struct fay_analysis *an, const struct fay_value *v,
			 const struct fay_access *access)
{
	if (access->size == 4 && access->proved && v->delta == 0)
		note(an, (struct fay_table_read){ .id = v->id,
						  .low = access->offset.umin,
						  .high = access->offset.umax,
						  .offset = access->offset });
}

void fay_note_sign_extension(struct fay_analysis *an, const struct fay_value *from,
			     const struct fay_value *to)
{
	const struct fay_table_read *read =
		from->delta == 0 && to->delta == 0 ? noted(an, from->id) : NULL;

	if (read && !read->sign) {
		struct fay_table_read extended = *read;

		extended.id = to->id;
		extended.sign = true;
		note(an, extended);
	}
}

static bool refuse(struct fay_analysis *an, const char *what)
{
	return fay_path_refuse(an, FAY_RULE_CFI_INDIRECT, "%s", what);
}

/* Adds to an->found, which is in order. */
static bool find(struct fay_analysis *an, struct fay_jump jump)
{
	uint32_t at = 0, end = an->found_count;

	while (at < end) {
		uint32_t middle = at + (end - at) / 2;

		if (fay_jump_compare(&an->found[middle], &jump) < 0)
			at = middle + 1;
		else
			end = middle;
	}
	if (at < an->found_count && !fay_jump_compare(&an->found[at], &jump))
		return true;
	if (an->deadline && !(an->found_count & 255) && fay_monotonic_ns() > an->deadline) {
		an->refusal = fay_refuse(an->arena, FAY_RULE_LIM_TIME, jump.from,
					 "time ran out in the analysis");
		return false;
	}
	if (an->found_count == FAY_MAX_TARGETS) {
		an->refusal =
			fay_refuse(an->arena, FAY_RULE_LIM_RESOURCE, jump.from,
				   "indirect jumps with more than %u targets", FAY_MAX_TARGETS);
		return false;
	}
	if (an->found_count == an->found_capacity) {
		uint32_t capacity = an->found_capacity ? an->found_capacity * 2 : 64;
		void *grown = realloc(an->found, capacity * sizeof(*an->found));

		if (!grown) {
			an->refusal = fay_refuse(an->arena, FAY_RULE_LIM_RESOURCE, jump.from,
						 "out of memory");
			return false;
		}
		an->found = grown;
		an->found_capacity = capacity;
	}
	memmove(&an->found[at + 1], &an->found[at], (an->found_count - at) * sizeof(*an->found));
	an->found[at] = jump;
	an->found_count++;
	return true;
}

static bool in_graph(const struct fay_analysis *an, struct fay_jump jump, uint32_t first,
		     uint32_t count)
{
	uint32_t low = first, high = first + count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (an->cfg->jumps[middle].to < jump.to)
			low = middle + 1;
		else
			high = middle;
	}
	return low < first + count && an->cfg->jumps[low].to == jump.to;
}

/* The place that the entry at `offset` leads to, for a jump through the number read plus `base`. */
static uint64_t place(const struct fay_analysis *an, const struct fay_table_read *read,
		      uint64_t offset, uint64_t base)
{
	const struct fay_image *image = an->image;
	uint32_t entry;

	memcpy(&entry, image->layout.bytes + (image->rodata.start - image->layout_base) + offset,
	       sizeof(entry));
	return image->rodata.start + base +
	       (read->sign ? (uint64_t)(int64_t)(int32_t)entry : entry);
}

/* What all the numbers leave on division by 4, if it is one and the same. */
static bool phase(const struct fay_scalar *s, uint64_t *rest)
{
	if (!(s->unknown & 3)) {
		*rest = s->value & 3;
		return true;
	}
	*rest = s->remainder & 3; /* of the signed reading: 4 divides 2^64 */
	return s->modulus % 4 == 0;
}

bool fay_transfer_jump_table(struct fay_analysis *an, const struct fay_insn *insn)
{
	const struct fay_value *v = &an->current->loc[insn->dst.reg];
	const struct fay_table_read *read =
		v->kind == KIND_POINTER && v->tag == REGION_RODATA ? noted(an, v->id) : NULL;
	uint32_t first, count = fay_cfg_jumps(an->cfg, insn->address, &first);
	uint64_t step;

	if (an->checking)
		an->obligation_count++;
	if (!an->refine)
		return fay_path_refuse(an, FAY_RULE_SPC_BRANCH,
				       "an indirect jump may be mispredicted to anywhere");
	if (!read)
		return refuse(an, "an indirect jump, and not through a number read from a table in "
				  "read-only data at a proved index");
	if (!phase(&read->offset, &step))
		return refuse(
			an,
			"an indirect jump through a table whose entries may be read out of step");
	if ((read->high - read->low) / 4 >= FAY_MAX_TABLE)
		return refuse(an, "an indirect jump through a table of too many entries");
	for (uint64_t offset = read->low + ((step - read->low) & 3); offset <= read->high;
	     offset += 4) {
		struct fay_jump jump = { .from = insn->address,
					 .to = place(an, read, offset, v->delta) };

		if (!fay_scalar_contains(&read->offset, offset))
			continue;
		if (jump.to - an->image->text.start >= an->image->text.size)
			return refuse(an, "an indirect jump through a table with an entry that "
					  "leads out of the code");
		if (in_graph(an, jump, first, count))
			continue;
		if (!an->exploring)
			return refuse(an, "an indirect jump to a place that was not analysed");
		if (!find(an, jump))
			return false;
	}
	return true;
}
