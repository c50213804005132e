/* SPDX-License-Identifier: MIT */
#include "vector_forms.h"

static bool exists(const struct vector_form *f)
{
	const struct fay_vector_row *row = f->row;

	if (!(row->encodings & (f->vex ? VENCODING_VEX : VENCODING_LEGACY)) ||
	    (f->wide_register && row->w != VW_GW))
		return false;
	if ((row->mod == VMOD_REG && f->memory) || (row->mod == VMOD_MEM && !f->memory) ||
	    (row->shape == VSHAPE_NO && f->memory))
		return false;
	if (!f->vex)
		return f->length == 16;
	return (f->length == 32                     ? row->wide
		: row->encodings & VENCODING_LEGACY ? VSET_AVX
						    : row->set) != VSET_NONE;
}

bool vector_form_next(unsigned *state, struct vector_form *form)
{
	while (*state < 16 * fay_vector_row_count) {
		unsigned s = (*state)++;

		*form = (struct vector_form){ .row = &fay_vector_rows[s / 16],
					      .vex = s & 1,
					      .wide_register = s & 2,
					      .length = s & 4 ? 32 : 16,
					      .memory = s & 8 };
		if (exists(form))
			return true;
	}
	return false;
}

static bool has_immediate(const struct vector_form *f)
{
	switch (f->row->shape) {
	case VSHAPE_RMI:
	case VSHAPE_RVMI:
	case VSHAPE_MRI:
	case VSHAPE_VMI:
	case VSHAPE_XVGI:
	case VSHAPE_GXI:
	case VSHAPE_GRMI: return true;
	default: return f->row->shape == VSHAPE_RVMK && f->vex;
	}
}

static bool has_vvvv(const struct vector_form *f)
{
	switch (f->row->shape) {
	case VSHAPE_RVM:
	case VSHAPE_RVMI:
	case VSHAPE_RVMK:
	case VSHAPE_VMI:
	case VSHAPE_XVGI:
	case VSHAPE_XVG:
	case VSHAPE_FMA: return true;
	default: return false;
	}
}

unsigned vector_form_encode(const struct vector_form *f, const struct vector_operands *o,
			    uint8_t *code)
{
	static const uint8_t legacy_pp[] = { 0, 0x66, 0xf3, 0xf2 }, vex_pp[] = { 0, 1, 2, 3 };
	const struct fay_vector_row *row = f->row;
	bool w = row->w == VW_W1 || f->wide_register, none = row->shape == VSHAPE_NO;
	unsigned reg = row->ext == 0xff ? o->reg : row->ext, rm = f->memory ? o->base : o->rm,
		 n = 0;
	unsigned r = none ? 0 : reg >> 3, b = none ? 0 : rm >> 3;
	bool byte_register =
		row->shape == VSHAPE_GG && row->memory == 1 && !f->memory && rm >= 4 && rm < 8;

	if (f->vex) {
		unsigned vvvv = has_vvvv(f) ? ~o->vvvv & 15 : 15,
			 tail = vvvv << 3 | (f->length == 32) << 2 | vex_pp[row->pp];

		if (row->map == VMAP_M0F && !w && !b) {
			code[n++] = 0xc5;
			code[n++] = (uint8_t)(!r << 7 | tail);
		} else {
			code[n++] = 0xc4;
			code[n++] = (uint8_t)(!r << 7 | 1 << 6 | !b << 5 | (row->map + 1));
			code[n++] = (uint8_t)(w << 7 | tail);
		}
	} else {
		if (row->pp != VPP_PNP)
			code[n++] = legacy_pp[row->pp];
		if (w || r || b || byte_register)
			code[n++] = (uint8_t)(0x40 | w << 3 | r << 2 | b);
		code[n++] = 0x0f;
		if (row->map != VMAP_M0F)
			code[n++] = row->map == VMAP_M38 ? 0x38 : 0x3a;
	}
	code[n++] = row->opcode;
	if (none)
		return n;
	code[n++] = (uint8_t)((f->memory ? 0x40 : 0xc0) | (reg & 7) << 3 | (rm & 7));
	if (f->memory)
		code[n++] = (uint8_t)o->disp;
	if (has_immediate(f))
		code[n++] = row->shape == VSHAPE_RVMK ? o->imm & 0xf0 : o->imm;
	return n;
}
