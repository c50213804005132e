/* SPDX-License-Identifier: MIT */
/* Code addresses of a process by name. */
#include <string.h>

#include "target.h"

/* Of two symbols around an address: the one that begins later; of aliases the shortest, as a search shows them. */
static bool is_better(const struct fay_symbol *symbol, const struct fay_symbol *best)
{
	if (!best || symbol->address != best->address)
		return !best || symbol->address > best->address;
	return symbol->length != best->length ? symbol->length < best->length : memcmp(symbol->name, best->name, symbol->length) < 0;
}

static const struct fay_symbol *symbol_at(const struct fay_object *object, uint64_t address)
{
	const struct fay_symbol *best = NULL;
	for (size_t i = 0; i < object->symbol_count; i++) {
		const struct fay_symbol *symbol = &object->symbols[i];
		bool code = symbol->kind == FAY_SYMBOL_FUNCTION || symbol->kind == FAY_SYMBOL_IFUNC || symbol->kind == FAY_SYMBOL_PART;
		bool inside = symbol->address <= address && (symbol->size ? address - symbol->address < symbol->size : address < symbol->limit);
		if (code && inside && is_better(symbol, best))
			best = symbol;
	}
	return best;
}

bool fay_target_describe(struct fay_target *target, uint64_t address, struct fay_code_place *place)
{
	for (size_t i = 0; i < target->module_count; i++) {
		struct fay_module *module = &target->modules[i];
		for (size_t k = 0; k < module->range_count; k++) {
			const struct fay_range *range = &module->ranges[k];
			if (address < range->start || address >= range->end)
				continue;
			*place = (struct fay_code_place){ .module = module->name, .offset = address - range->start + range->offset };
			if (!fay_module_object(target, module) || !range->placed)
				return true;
			const struct fay_symbol *symbol = symbol_at(module->object, address - range->bias);
			place->name = symbol ? fay_target_intern(target, symbol->name, symbol->length) : NULL;
			place->offset = place->name ? address - range->bias - symbol->address : address - range->bias;
			return true;
		}
	}
	return false;
}

bool fay_target_code(struct fay_target *target, size_t index, struct fay_code_range *range, bool *more)
{
	*more = false;
	for (size_t i = 0; i < target->module_count; i++) {
		struct fay_module *module = &target->modules[i];
		if (index >= module->range_count) {
			index -= module->range_count;
			continue;
		}
		*more = true;
		if (!fay_module_object(target, module) || !module->ranges[index].placed)
			return false;
		const struct fay_range *from = &module->ranges[index];
		*range = (struct fay_code_range){.start = from->start, .end = from->end, .bias = from->bias, .device = module->device, .inode = module->inode, .fd = module->object->fd};
		return true;
	}
	return false;
}
