/* SPDX-License-Identifier: MIT */
/* Code and data addresses of a process by name. */
#include <stdlib.h>
#include <string.h>

#include "loader/bisect.h"
#include "target.h"

static bool is_code(const struct fay_symbol *symbol)
{
	return symbol->kind == FAY_SYMBOL_FUNCTION || symbol->kind == FAY_SYMBOL_IFUNC ||
	       symbol->kind == FAY_SYMBOL_PART;
}

/* Of two symbols at an address: of aliases the shortest, as a search shows them. */
static bool is_better(const struct fay_symbol *symbol, const struct fay_symbol *best)
{
	return symbol->length != best->length
		       ? symbol->length < best->length
		       : memcmp(symbol->name, best->name, symbol->length) < 0;
}

static int by_address(const void *a, const void *b)
{
	const struct fay_code_symbol *x = a, *y = b;
	if (x->address != y->address)
		return x->address < y->address ? -1 : 1;
	return x->index < y->index ? -1 : x->index > y->index;
}

bool fay_object_sort_code(struct fay_object *object)
{
	uint64_t reach = 0;
	if (object->code)
		return true;
	object->code = malloc((object->symbol_count + 1) * sizeof(*object->code));
	if (!object->code)
		return false;
	for (size_t i = 0; i < object->symbol_count; i++)
		if (is_code(&object->symbols[i]))
			object->code[object->code_count++] =
				(struct fay_code_symbol){ .address = object->symbols[i].address,
							  .index = i };
	qsort(object->code, object->code_count, sizeof(*object->code), by_address);
	for (size_t i = 0; i < object->code_count; i++) {
		const struct fay_symbol *symbol = &object->symbols[object->code[i].index];
		uint64_t end = symbol->address + fay_object_size(object, symbol);
		object->code[i].end = end < symbol->address ? UINT64_MAX : end;
		object->code[i].reach = reach =
			object->code[i].end > reach ? object->code[i].end : reach;
	}
	return true;
}

const struct fay_symbol *fay_object_symbol_at(struct fay_object *object, uint64_t address)
{
	const struct fay_symbol *best = NULL;
	if (!fay_object_sort_code(object))
		return NULL;
	for (size_t i = FAY_COUNT_UNTIL(object->code, object->code_count, address, address);
	     i-- > 0 && object->code[i].reach > address;) {
		const struct fay_symbol *symbol = &object->symbols[object->code[i].index];
		if (best && symbol->address != best->address)
			break;
		if (address < object->code[i].end && (!best || !is_better(best, symbol)))
			best = symbol;
	}
	return best;
}

bool fay_target_symbol_at(struct fay_target *target, uint64_t address, struct fay_module **module,
			  uint64_t *bias, const struct fay_symbol **symbol, uint64_t *start,
			  uint64_t *end)
{
	*module = (struct fay_module *)fay_target_module_at(target, address);
	if (!*module || !fay_module_object(target, *module))
		return false;
	for (size_t k = 0; k < (*module)->range_count; k++) {
		const struct fay_range *range = &(*module)->ranges[k];

		if (address < range->start || address >= range->end || !range->placed)
			continue;
		*bias = range->bias;
		*symbol = fay_object_symbol_at((*module)->object, address - range->bias);
		if (!*symbol)
			return false;
		*start = (*symbol)->address + range->bias;
		*end = *start + ((*symbol)->size ? (*symbol)->size
						 : fay_object_size((*module)->object, *symbol));
		return address < *end;
	}
	return false;
}

enum fay_flow_place fay_target_place(struct fay_target *target, uint64_t address, uint64_t *start,
				     uint64_t *end)
{
	const struct fay_symbol *symbol;
	struct fay_module *module;
	uint64_t bias;

	if (!fay_target_symbol_at(target, address, &module, &bias, &symbol, start, end))
		return FAY_PLACE_UNKNOWN;
	if (symbol->kind == FAY_SYMBOL_PART || symbol->joined ||
	    memmem(symbol->name, symbol->length, ".cold", 5))
		return FAY_PLACE_PART;
	if (address != *start)
		return FAY_PLACE_INSIDE;
	return symbol->unnamed ? FAY_PLACE_UNNAMED : FAY_PLACE_FUNCTION;
}

bool fay_target_describe(struct fay_target *target, uint64_t address, struct fay_code_place *place)
{
	for (size_t i = 0; i < target->module_count; i++) {
		struct fay_module *module = &target->modules[i];
		for (size_t k = 0; k < module->range_count; k++) {
			const struct fay_range *range = &module->ranges[k];
			if (address < range->start || address >= range->end)
				continue;
			*place = (struct fay_code_place){ .module = module->name,
							  .offset = address - range->start +
								    range->offset };
			if (!fay_module_object(target, module) || !range->placed)
				return true;
			const struct fay_symbol *symbol =
				fay_object_symbol_at(module->object, address - range->bias);
			place->name =
				symbol ? fay_target_intern(target, symbol->name, symbol->length)
				       : NULL;
			place->offset = place->name ? address - range->bias - symbol->address
						    : address - range->bias;
			return true;
		}
	}
	return false;
}

/* The code that lies before an address: its module's data may lie there. */
static const struct fay_range *range_before(const struct fay_target *target, uint64_t address,
					    struct fay_module **module)
{
	const struct fay_range *found = NULL;
	for (size_t i = 0; i < target->module_count; i++)
		for (size_t k = 0; k < target->modules[i].range_count; k++) {
			const struct fay_range *range = &target->modules[i].ranges[k];
			if (range->start > address || (found && range->start < found->start))
				continue;
			found = range;
			*module = &target->modules[i];
		}
	return found;
}

static const struct fay_symbol *data_at(const struct fay_object *object, uint64_t address)
{
	const struct fay_symbol *best = NULL;
	for (size_t i = 0; i < object->symbol_count; i++) {
		const struct fay_symbol *symbol = &object->symbols[i];
		if (symbol->kind == FAY_SYMBOL_OBJECT && address >= symbol->address &&
		    address - symbol->address < symbol->size && (!best || !is_better(best, symbol)))
			best = symbol;
	}
	return best;
}

bool fay_target_describe_data(struct fay_target *target, uint64_t address,
			      struct fay_code_place *place)
{
	struct fay_module *module = NULL;
	const struct fay_range *range = range_before(target, address, &module);
	if (!range || !fay_module_object(target, module) || !range->placed)
		return false;
	uint64_t at = address - range->bias;
	for (size_t i = 0; i < module->object->segment_count; i++) {
		const struct fay_segment *segment = &module->object->segments[i];
		if (at < segment->vaddr || at - segment->vaddr >= segment->memory_size)
			continue;
		const struct fay_symbol *symbol = data_at(module->object, at);
		place->module = module->name;
		place->name =
			symbol ? fay_target_intern(target, symbol->name, symbol->length) : NULL;
		place->offset = place->name ? at - symbol->address : at;
		return true;
	}
	return false;
}

static bool same_module(const struct fay_module *a, const struct fay_module *b)
{
	if (a->device != b->device || a->inode != b->inode || a->range_count != b->range_count)
		return false;
	for (size_t i = 0; i < a->range_count; i++)
		if (a->ranges[i].start != b->ranges[i].start ||
		    a->ranges[i].end != b->ranges[i].end ||
		    a->ranges[i].offset != b->ranges[i].offset)
			return false;
	return true;
}

bool fay_target_same_code(const struct fay_target *a, const struct fay_target *b)
{
	if (a->module_count != b->module_count)
		return false;
	for (size_t i = 0; i < a->module_count; i++)
		if (!same_module(&a->modules[i], &b->modules[i]))
			return false;
	return true;
}

bool fay_target_code(struct fay_target *target, size_t index, struct fay_code_range *range,
		     bool *more)
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
		*range = (struct fay_code_range){ .start = from->start,
						  .end = from->end,
						  .bias = from->bias,
						  .device = module->device,
						  .inode = module->inode,
						  .fd = module->object->fd };
		return true;
	}
	return false;
}
