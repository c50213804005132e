/* SPDX-License-Identifier: MIT */
/* What operands (locate.c) and programs (compute.c) are made of alike. */
#include "scopes_private.h"

#include <dwarf.h>

bool fay_debug_number_of(const Dwarf_Op *op, int64_t *number)
{
	bool small = op->atom >= DW_OP_lit0 && op->atom <= DW_OP_lit31;
	*number = small ? (int64_t)(op->atom - DW_OP_lit0) : (int64_t)op->number;
	/* const1u to consts, which follow one another (DWARF 5, 7.7.1) */
	return small || (op->atom >= DW_OP_const1u && op->atom <= DW_OP_consts);
}

bool fay_debug_frame_address(const struct fay_debug_file *file, uint64_t pc, unsigned table,
			     struct fay_debug_frame *found)
{
	Dwarf_Addr bias, at = pc + file->debug_bias;
	Dwarf_CFI *cfi = table ? dwfl_module_dwarf_cfi(file->module, &bias)
			       : dwfl_module_eh_cfi(file->module, &bias);
	*found = (struct fay_debug_frame){ .frame = NULL };
	return cfi && !dwarf_cfi_addrframe(cfi, at - bias, &found->frame) &&
	       !dwarf_frame_cfa(found->frame, &found->ops, &found->count) && found->count;
}

Dwarf_Die *fay_debug_subprogram(struct fay_debug_scopes *scopes)
{
	for (uint32_t i = scopes->count; i-- > 0;)
		if (dwarf_tag(&scopes->items[i]) == DW_TAG_subprogram)
			return &scopes->items[i];
	return NULL;
}

bool fay_debug_frame_base(struct fay_debug_scopes *scopes, uint64_t pc, Dwarf_Attribute *attribute,
			  Dwarf_Op **ops, size_t *count)
{
	Dwarf_Die *function = fay_debug_subprogram(scopes);
	return function && dwarf_attr_integrate(function, DW_AT_frame_base, attribute) &&
	       dwarf_getlocation_addr(attribute, pc, ops, count, 1) == 1 && *count;
}
