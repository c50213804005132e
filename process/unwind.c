/* SPDX-License-Identifier: MIT */
/*
 * The unwind table of an object file as rows of the one thing that a walk of the stack needs: for
 * each place, how the caller's frame is found. The table is a sequence of entries (FDE, one for
 * each function, with a common part, the CIE), each a little program that says how the frame
 * changes from instruction to instruction. Of its registers only rbp, the return address and the
 * frame address (CFA) are followed; what is described in another way than by one of these and a
 * constant has no rule, and a walk ends there.
 *
 * Format: DWARF 5, section 6.4; Linux Standard Base core specification 5.0, section 10.6; System V
 * ABI, AMD64 supplement, 4.2.4. The file may say anything: every byte is read through a cursor that
 * does not leave the table.
 */
#include "unwind_private.h"

#include <dwarf.h>
#include <string.h>

#include "fay/stacks.h"

#define RBP 6u /* DWARF's numbers: System V ABI, AMD64 supplement, figure 3.36 */
#define RSP 7u
#define RETURN_ADDRESS 16u
#define REMEMBERED_MAX 8u
/* A common part is read again where the one before it was another; in all, so many times the
 * table's size. */
#define COMMON_TIMES 64u

struct cursor {
	const uint8_t *at, *end;
	bool bad; /* something did not fit */
};

struct common {
	uint64_t offset; /* in the table; UINT64_MAX: none yet */
	bool understood, signal, augmented;
	uint8_t encoding; /* of addresses, DW_EH_PE_... */
	uint64_t code_factor;
	int64_t data_factor;
	struct fay_frame initial;
};

struct reader {
	const uint8_t *table;
	size_t size;
	uint64_t address;
	struct common common;
	struct fay_unwind_rows *rows;
	uint64_t common_read; /* bytes, in all */
	bool out_of_memory;
};

/* --- bytes --- */

static uint64_t fixed(struct cursor *c, unsigned size)
{
	uint64_t value = 0;
	if ((size_t)(c->end - c->at) < size) {
		c->bad = true;
		c->at = c->end;
		return 0;
	}
	memcpy(&value, c->at, size);
	c->at += size;
	return value;
}

static uint64_t leb(struct cursor *c, bool is_signed)
{
	uint64_t value = 0, byte = 0;
	unsigned shift = 0;
	do {
		byte = fixed(c, 1);
		value |= shift < 64 ? (byte & 0x7f) << shift : 0;
		shift += 7;
	} while (byte & 0x80 && !c->bad);
	if (is_signed && byte & 0x40 && shift < 64)
		value |= UINT64_MAX << shift;
	return value;
}

static void skip(struct cursor *c, uint64_t size)
{
	if (size > (uint64_t)(c->end - c->at)) {
		c->bad = true;
		size = (uint64_t)(c->end - c->at);
	}
	c->at += size;
}

/* An address as the encoding says; relative: to its own place, if it says so. */
static uint64_t encoded(const struct reader *r, struct cursor *c, uint8_t encoding, bool relative)
{
	uint64_t here = r->address + (uint64_t)(c->at - r->table), value = 0;
	switch (encoding & 0x0f) {
	case DW_EH_PE_absptr:
	case DW_EH_PE_udata8:
	case DW_EH_PE_sdata8: value = fixed(c, 8); break;
	case DW_EH_PE_udata4: value = fixed(c, 4); break;
	case DW_EH_PE_sdata4:
		value = fixed(c, 4);
		value = relative ? (uint64_t)(int64_t)(int32_t)(uint32_t)value : value;
		break;
	default: c->bad = true; break;
	}
	if (encoding & DW_EH_PE_indirect ||
	    ((encoding & 0x70) && (encoding & 0x70) != DW_EH_PE_pcrel))
		c->bad = true;
	return relative && (encoding & 0x70) == DW_EH_PE_pcrel ? value + here : value;
}

static void add_row(struct reader *r, uint64_t address, uint32_t rule)
{
	r->out_of_memory |= !fay_unwind_add(r->rows, address, rule);
}

/* --- the little programs --- */

static void set_register(struct fay_frame *f, uint64_t number, enum fay_frame_place place,
			 int64_t at)
{
	if (number == RBP) {
		f->rbp = place;
		f->rbp_at = at;
	} else if (number == RETURN_ADDRESS) {
		f->return_address = place;
		f->return_at = at;
	}
}

static void restore_register(struct fay_frame *f, const struct fay_frame *initial, uint64_t number)
{
	if (number == RBP)
		set_register(f, number, initial->rbp, initial->rbp_at);
	else if (number == RETURN_ADDRESS)
		set_register(f, number, initial->return_address, initial->return_at);
}

static int64_t scaled(const struct common *common, uint64_t value)
{
	return (int64_t)(value * (uint64_t)common->data_factor);
}

static void set_base(struct fay_frame *f, uint64_t number)
{
	f->base = number == RSP   ? FAY_STACK_RSP
		  : number == RBP ? FAY_STACK_RBP
				  : FAY_STACK_REGISTER;
	f->number = number;
}

/* What follows, its length first. */
static struct cursor block(struct cursor *c)
{
	uint64_t size = leb(c, false);
	struct cursor inside = { c->at, c->at, false };
	skip(c, size);
	inside.end = c->at;
	return inside;
}

/* What the linker writes for procedure linkage tables: rsp + 8 + ((rip & 15) >= from) * 8. */
static bool set_linkage(struct fay_frame *f, const struct cursor *expression)
{
	static const uint8_t before[] = { DW_OP_breg7, 8, DW_OP_breg16, 0, DW_OP_lit15, DW_OP_and },
			     after[] = { DW_OP_ge, DW_OP_lit3, DW_OP_shl, DW_OP_plus };
	const uint8_t *at = expression->at;
	if (expression->end - at != sizeof(before) + 1 + sizeof(after) ||
	    memcmp(at, before, sizeof(before)) ||
	    memcmp(at + sizeof(before) + 1, after, sizeof(after)) ||
	    at[sizeof(before)] < DW_OP_lit0 || at[sizeof(before)] > DW_OP_lit15)
		return false;
	f->base = FAY_STACK_LINKAGE;
	f->offset = at[sizeof(before)] - DW_OP_lit0;
	return true;
}

/*
 * Functions that align their stack have two expressions, always the same: the frame's address was
 * saved, so far from rbp; and the caller's rbp where rbp points to.
 */
static void set_expression(struct fay_frame *f, struct cursor *c)
{
	struct cursor e = block(c);
	f->base = FAY_STACK_END;
	if (set_linkage(f, &e) || fixed(&e, 1) != DW_OP_breg6)
		return;
	int64_t offset = (int64_t)leb(&e, true);
	if (fixed(&e, 1) != DW_OP_deref || e.bad || e.at != e.end)
		return;
	f->base = FAY_STACK_INDIRECT;
	f->offset = offset;
}

static void set_register_expression(struct fay_frame *f, struct cursor *c, uint64_t number)
{
	struct cursor e = block(c);
	bool at_rbp = fixed(&e, 1) == DW_OP_breg6 && leb(&e, true) == 0 && !e.bad && e.at == e.end;
	set_register(f, number, at_rbp && number == RBP ? FAY_FRAME_AT_RBP : FAY_FRAME_UNKNOWN, 0);
}

/* A program being run. */
struct machine {
	struct fay_frame frame, remembered[REMEMBERED_MAX];
	unsigned depth;
	uint64_t place;
};

/* Where the frame's address is. false: the instruction is another. */
static bool run_frame(struct fay_frame *f, const struct common *common, struct cursor *c,
		      uint8_t op)
{
	switch (op) {
	case DW_CFA_def_cfa:
		set_base(f, leb(c, false));
		f->offset = (int64_t)leb(c, false);
		return true;
	case DW_CFA_def_cfa_sf:
		set_base(f, leb(c, false));
		f->offset = scaled(common, leb(c, true));
		return true;
	case DW_CFA_def_cfa_register: set_base(f, leb(c, false)); return true;
	case DW_CFA_def_cfa_offset: f->offset = (int64_t)leb(c, false); return true;
	case DW_CFA_def_cfa_offset_sf: f->offset = scaled(common, leb(c, true)); return true;
	case DW_CFA_def_cfa_expression: set_expression(f, c); return true;
	default: return false;
	}
}

/* Where a register was saved. */
static void run_register(struct fay_frame *f, const struct common *common, struct cursor *c,
			 uint8_t op)
{
	uint64_t number = leb(c, false);
	switch (op) {
	case DW_CFA_offset_extended:
		set_register(f, number, FAY_FRAME_SAVED, scaled(common, leb(c, false)));
		break;
	case DW_CFA_offset_extended_sf:
		set_register(f, number, FAY_FRAME_SAVED, scaled(common, leb(c, true)));
		break;
	case DW_CFA_restore_extended: restore_register(f, &common->initial, number); break;
	case DW_CFA_same_value: set_register(f, number, FAY_FRAME_SAME, 0); break;
	case DW_CFA_undefined: set_register(f, number, FAY_FRAME_UNKNOWN, 0); break;
	case DW_CFA_register:
	case DW_CFA_val_offset:
	case DW_CFA_val_offset_sf:
		leb(c, false);
		set_register(f, number, FAY_FRAME_UNKNOWN, 0);
		break;
	case DW_CFA_expression: set_register_expression(f, c, number); break;
	case DW_CFA_val_expression:
		block(c);
		set_register(f, number, FAY_FRAME_UNKNOWN, 0);
		break;
	case DW_CFA_GNU_args_size: /* `number` is a size, which matters to nobody here */ break;
	default: c->bad = true; break;
	}
}

static void run_one(const struct reader *r, struct machine *m, struct cursor *c)
{
	const struct common *common = &r->common;
	uint8_t op = (uint8_t)fixed(c, 1), low = op & 0x3f;
	switch (op & 0xc0) {
	case DW_CFA_advance_loc: m->place += low * common->code_factor; return;
	case DW_CFA_offset:
		set_register(&m->frame, low, FAY_FRAME_SAVED, scaled(common, leb(c, false)));
		return;
	case DW_CFA_restore: restore_register(&m->frame, &common->initial, low); return;
	}
	switch (op) {
	case DW_CFA_nop: break;
	case DW_CFA_set_loc: m->place = encoded(r, c, common->encoding, true); break;
	case DW_CFA_advance_loc1: m->place += fixed(c, 1) * common->code_factor; break;
	case DW_CFA_advance_loc2: m->place += fixed(c, 2) * common->code_factor; break;
	case DW_CFA_advance_loc4: m->place += fixed(c, 4) * common->code_factor; break;
	case DW_CFA_remember_state:
		c->bad |= m->depth == REMEMBERED_MAX;
		if (!c->bad)
			m->remembered[m->depth++] = m->frame;
		break;
	case DW_CFA_restore_state:
		c->bad |= !m->depth;
		if (!c->bad)
			m->frame = m->remembered[--m->depth];
		break;
	default:
		if (!run_frame(&m->frame, common, c, op))
			run_register(&m->frame, common, c, op);
		break;
	}
}

/* --- entries --- */

/* "zPLR" and the like: what follows in the common part and in each entry. */
static bool read_augmentation(const struct reader *r, struct common *common, struct cursor *c,
			      const char *letters)
{
	if (*letters != 'z')
		return !*letters;
	common->augmented = true;
	uint64_t size = leb(c, false);
	struct cursor data = { c->at, c->at, false };
	skip(c, size);
	data.end = c->at;
	while (*++letters) {
		uint8_t encoding = *letters == 'R' || *letters == 'P' || *letters == 'L'
					   ? (uint8_t)fixed(&data, 1)
					   : 0;
		if (*letters == 'R')
			common->encoding = encoding;
		else if (*letters == 'P')
			encoded(r, &data, encoding & 0x0f, false);
		else if (*letters == 'S')
			common->signal = true;
		else if (*letters != 'L' && *letters != 'B')
			return false;
	}
	return !data.bad;
}

static void read_common(struct reader *r, uint64_t offset)
{
	struct common *common = &r->common;
	*common = (struct common){ .offset = offset };
	if (offset > r->size || r->size - offset < 8)
		return;
	struct cursor c = { r->table + offset, r->table + r->size, false };
	uint64_t length = fixed(&c, 4);
	if (length > (uint64_t)(c.end - c.at) || fixed(&c, 4) != 0)
		return;
	r->common_read += length;
	if (r->common_read / COMMON_TIMES > r->size)
		return;
	c.end = c.at - 4 + length;
	uint64_t version = fixed(&c, 1);
	const char *letters = (const char *)c.at;
	if ((version != 1 && version != 3) || !memchr(letters, 0, (size_t)(c.end - c.at)))
		return;
	skip(&c, strlen(letters) + 1);
	common->code_factor = leb(&c, false);
	common->data_factor = (int64_t)leb(&c, true);
	uint64_t return_register = version == 1 ? fixed(&c, 1) : leb(&c, false);
	bool fine = read_augmentation(r, common, &c, letters) && return_register == RETURN_ADDRESS;
	struct machine m = { 0 };
	while (fine && !c.bad && c.at < c.end)
		run_one(r, &m, &c);
	common->initial = m.frame;
	common->understood = fine && !c.bad;
}

/* One function: a row wherever its frame changes, and one behind its end. */
static void read_function(struct reader *r, struct cursor *c)
{
	const struct common *common = &r->common;
	struct machine m = { .frame = common->initial };
	uint64_t start = encoded(r, c, common->encoding, true),
		 end = start + encoded(r, c, common->encoding & 0x0f, false);
	if (common->augmented)
		skip(c, leb(c, false));
	if (c->bad || end <= start)
		return;
	m.place = start;
	uint64_t begun = start;
	uint32_t rule;
	while (c->at < c->end && !c->bad && m.place >= begun && m.place < end) {
		rule = common->signal ? FAY_STACK_SIGNAL : fay_unwind_rule(&m.frame);
		uint64_t before = m.place;
		run_one(r, &m, c);
		if (m.place != before) {
			add_row(r, begun, rule);
			begun = m.place;
		}
	}
	bool fine = !c->bad && m.place >= begun && m.place <= end;
	rule = !fine            ? FAY_STACK_END
	       : common->signal ? FAY_STACK_SIGNAL
				: fay_unwind_rule(&m.frame);
	if (begun < end)
		add_row(r, begun, rule);
	add_row(r, end, FAY_STACK_END);
}

bool fay_unwind_read(const uint8_t *table, size_t size, uint64_t address,
		     struct fay_unwind_rows *rows)
{
	struct reader r = { .table = table,
			    .size = size,
			    .address = address,
			    .common.offset = UINT64_MAX,
			    .rows = rows };
	struct cursor c = { table, table + size, false };
	while (!r.out_of_memory) {
		uint64_t length = fixed(&c, 4);
		/* zero: the end; 64-bit lengths are not used */
		if (c.bad || !length || length > (uint64_t)(c.end - c.at))
			break;
		struct cursor entry = { c.at, c.at + length, false };
		uint64_t here = (uint64_t)(entry.at - table), back = fixed(&entry, 4);
		c.at = entry.end;
		if (!back || back > here) /* a common part, read where it is referred to */
			continue;
		if (r.common.offset != here - back)
			read_common(&r, here - back);
		if (r.common.understood)
			read_function(&r, &entry);
	}
	return !r.out_of_memory;
}
