/* SPDX-License-Identifier: MIT */
/*
 * Markers of a target's modules, found by "module!provider:name" with globs as functions are. A
 * marker is where its note says, if that lies in an executable mapping of its module; one that was
 * inlined several times has as many notes, and is as many places. Places that debug information
 * tells ("module!@...") go the same way.
 */
#include "target.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fay/event.h"
#include "loader/bisect.h"
#include "operands_private.h"

#define LOOKUPS_MAX (UINT64_C(1) << 31) /* symbols compared for operands, in all of a target */

/* Functions by their starts, for the one around a marker. */
struct function_index {
	struct {
		uint64_t start, end;
	} *items;
	size_t count;
};

static int by_start(const void *left, const void *right)
{
	const uint64_t *a = left, *b = right;

	return a[0] != b[0] ? (a[0] < b[0] ? -1 : 1) : a[1] < b[1] ? -1 : a[1] > b[1];
}

static bool index_functions(struct fay_object *object, struct function_index *index)
{
	index->count = 0;
	index->items = malloc((object->symbol_count + 1) * sizeof(*index->items));
	if (!index->items)
		return false;
	for (size_t i = 0; i < object->symbol_count; i++) {
		const struct fay_symbol *symbol = &object->symbols[i];
		uint64_t size;

		if (symbol->kind != FAY_SYMBOL_FUNCTION && symbol->kind != FAY_SYMBOL_IFUNC &&
		    symbol->kind != FAY_SYMBOL_PART)
			continue;
		size = symbol->size ? symbol->size : fay_object_size(object, symbol);
		index->items[index->count].start = symbol->address;
		index->items[index->count++].end = symbol->address + size;
	}
	qsort(index->items, index->count, sizeof(*index->items), by_start);
	return true;
}

/* Of several at one start the longest, which sorts last. */
static bool function_around(const struct function_index *index, uint64_t address, uint64_t *start,
			    uint64_t *end)
{
	size_t until = FAY_COUNT_UNTIL(index->items, index->count, start, address);

	if (!until || index->items[until - 1].end <= address)
		return false;
	*start = index->items[until - 1].start;
	*end = index->items[until - 1].end;
	return true;
}

/* Once for every place where its module is mapped. `full`: its name. */
static int add_marker(struct fay_target *target, struct fay_module *module,
		      const struct function_index *index, const struct fay_marker *marker,
		      const char *full, struct fay_matches *matches, struct fay_error *error)
{
	const char *name = fay_target_intern(target, full, strlen(full));
	uint64_t start, end;

	if (!name)
		return fay_error_set(error, FAY_E_LIMIT, "out of memory for names");
	if (!function_around(index, marker->address, &start, &end))
		start = end = marker->address;
	for (size_t i = 0; i < module->range_count; i++) {
		const struct fay_range *range = &module->ranges[i];
		uint64_t address = marker->address + range->bias;
		struct fay_function function = { .module = module->name,
						 .name = name,
						 .path = module->path,
						 .address = address,
						 .size = end - marker->address,
						 .start = start + range->bias,
						 .marker = marker };
		int code;

		if (!range->placed || address < range->start || address >= range->end)
			continue;
		code = fay_matches_add(matches, &function, error);
		if (code)
			return code;
	}
	return 0;
}

static bool full_name(const struct fay_marker *marker, char *name, size_t size)
{
	return (size_t)snprintf(name, size, "%s:%s", marker->provider, marker->name) < size;
}

static int add_module(struct fay_target *target, struct fay_module *module,
		      const struct fay_glob *glob, struct fay_matches *matches,
		      struct fay_error *error)
{
	struct fay_object *object = fay_module_object(target, module);
	struct function_index index;
	char name[2 * FAY_MARKER_MAX_STRING + 2];
	int code = 0;

	if (!object)
		return 0;
	fay_object_read_markers(object);
	if (!object->marker_count)
		return 0;
	if (!index_functions(object, &index) ||
	    !fay_target_intern(target, module->name, strlen(module->name)))
		code = fay_error_set(error, FAY_E_LIMIT, "out of memory");
	for (size_t i = 0; !code && i < object->marker_count; i++)
		if (full_name(&object->markers[i], name, sizeof(name)) &&
		    fay_glob_match(glob, name, strlen(name)))
			code = add_marker(target, module, &index, &object->markers[i], name,
					  matches, error);
	free(index.items);
	return code;
}

/* What the debug information tells, instead of notes. *why: the best reason for which a module has
 * no such place. */
static int add_told(struct fay_target *target, struct fay_module *module, const char *text,
		    struct fay_matches *matches, struct fay_error *why, struct fay_error *error)
{
	struct fay_object *object = fay_module_object(target, module);
	const struct fay_marker *markers;
	struct function_index index;
	struct fay_error reason = { 0 };
	size_t count;
	int code = 0;

	if (!object)
		return 0;
	if (fay_object_told(object, module->path, text, &markers, &count, &reason)) {
		if (!why->code || reason.code == FAY_E_USAGE)
			*why = reason;
		return 0;
	}
	if (!index_functions(object, &index) ||
	    !fay_target_intern(target, module->name, strlen(module->name)))
		code = fay_error_set(error, FAY_E_LIMIT, "out of memory");
	for (size_t i = 0; !code && i < count; i++)
		code = add_marker(target, module, &index, &markers[i], markers[i].function, matches,
				  error);
	free(index.items);
	return code;
}

static int by_address(const void *left, const void *right)
{
	const struct fay_function *a = left, *b = right;

	return a->address != b->address ? (a->address < b->address ? -1 : 1)
	       : a->marker < b->marker  ? -1
					: a->marker > b->marker;
}

int fay_target_find_markers(struct fay_target *target, const char *pattern,
			    struct fay_function_list *list, struct fay_error *error)
{
	char module[256], name[256];
	struct fay_matches matches = { 0 };
	struct fay_error why = { 0 };
	struct fay_glob glob;
	int code = fay_pattern_split(pattern, module, name, error);

	if (code)
		return code;
	fay_glob_init(&glob, name);
	for (size_t i = 0; !code && i < target->module_count; i++) {
		struct fay_module *candidate = &target->modules[i];

		if (!fay_target_asks(target, candidate, module))
			continue;
		code = *name == '@' ? add_told(target, candidate, name + 1, &matches, &why, error)
				    : add_module(target, candidate, &glob, &matches, error);
	}
	if (!code && !matches.count && why.code)
		code = fay_error_set(error, why.code, "%s", why.message);
	else if (!code && !matches.count)
		code = fay_target_no_match(target, true, module, name, error);
	if (code) {
		free(matches.items);
		return code;
	}
	qsort(matches.items, matches.count, sizeof(*matches.items), by_address);
	list->items = matches.items;
	list->count = matches.count;
	return 0;
}

int fay_target_find_code(struct fay_target *target, const char *pattern,
			 struct fay_function_list *list, struct fay_error *error)
{
	const char *bang = strchr(pattern, '!');

	return bang && bang[1] == '@' ? fay_target_find_markers(target, pattern, list, error)
				      : fay_target_find(target, pattern, list, error);
}

/* --- what a trampoline needs --- */

static struct fay_module *module_of(struct fay_target *target, const struct fay_function *function)
{
	for (size_t i = 0; i < target->module_count; i++)
		if (target->modules[i].name == function->module)
			return &target->modules[i];
	return NULL;
}

/* `bytes` at this virtual address lie in a segment; data: in one that is not code. */
static bool in_segment(const struct fay_object *object, uint64_t address, uint64_t bytes, bool data)
{
	for (size_t i = 0; i < object->segment_count; i++) {
		const struct fay_segment *segment = &object->segments[i];

		if (address >= segment->vaddr && bytes <= segment->memory_size &&
		    address - segment->vaddr <= segment->memory_size - bytes &&
		    !(data && segment->executable))
			return true;
	}
	return false;
}

static const struct fay_symbol *find_symbol(struct fay_target *target,
					    const struct fay_object *object, const char *name,
					    size_t length)
{
	target->symbols_compared += object->symbol_count;
	if (target->symbols_compared > LOOKUPS_MAX)
		return NULL;
	for (size_t i = 0; i < object->symbol_count; i++) {
		const struct fay_symbol *symbol = &object->symbols[i];

		if (symbol->length == length &&
		    (symbol->kind == FAY_SYMBOL_OBJECT || symbol->kind == FAY_SYMBOL_FUNCTION) &&
		    !memcmp(symbol->name, name, length))
			return symbol;
	}
	return NULL;
}

/* Adds the symbol's address, `.` being where the object lies; false: `place->reason` says why
 * not. */
static bool settle(struct fay_target *target, const struct fay_object *object, uint64_t bias,
		   const struct fay_parsed_operand *parsed, unsigned number,
		   struct fay_marker_place *place)
{
	struct fay_operand *operand = &place->operands[number];

	*operand = parsed->operand;
	if (parsed->problem) {
		snprintf(place->reason, sizeof(place->reason), "has an argument %u that %s", number,
			 parsed->problem);
		return false;
	}
	if (parsed->symbol_length == 1 && *parsed->symbol == '.') {
		operand->value = (int64_t)((uint64_t)operand->value + bias);
	} else if (parsed->symbol) {
		const struct fay_symbol *symbol =
			find_symbol(target, object, parsed->symbol, parsed->symbol_length);

		if (!symbol) {
			snprintf(place->reason, sizeof(place->reason),
				 "has an argument %u at `%.*s`, a symbol that its file does not "
				 "have (stripped?)",
				 number,
				 parsed->symbol_length > 80 ? 80 : (int)parsed->symbol_length,
				 parsed->symbol);
			return false;
		}
		operand->value = (int64_t)((uint64_t)operand->value + symbol->address + bias);
	}
	if (operand->form == FAY_OPERAND_MEMORY && operand->base == FAY_OPERAND_NO_REGISTER &&
	    operand->index == FAY_OPERAND_NO_REGISTER)
		operand->readable =
			in_segment(object, (uint64_t)operand->value - bias, operand->size, false);
	return true;
}

static void settle_all(struct fay_target *target, const struct fay_object *object,
		       const struct fay_function *function, uint32_t fields,
		       struct fay_marker_place *place)
{
	const struct fay_marker *marker = function->marker;
	struct fay_parsed_operand parsed[FAY_MARKER_MAX_ARGUMENTS];
	unsigned count = fay_operands_parse(marker->arguments, strlen(marker->arguments), parsed);

	for (unsigned i = 0; i < FAY_MARKER_OPERANDS; i++) {
		if (!(fields & FAY_FIELD_ARG0 << i))
			continue;
		if (i >= count) {
			snprintf(place->reason, sizeof(place->reason),
				 "has %u argument%s; the probe uses argument %u", count,
				 count == 1 ? "" : "s", i);
			return;
		}
		if (!settle(target, object, function->address - marker->address, &parsed[i], i,
			    place))
			return;
		place->operand_count = i + 1;
	}
}

struct fay_marker_place *fay_marker_place_create(struct fay_target *target,
						 const struct fay_function *function,
						 uint32_t fields)
{
	struct fay_marker_place *place = calloc(1, sizeof(*place));
	struct fay_module *module = module_of(target, function);

	if (!place)
		return NULL;
	if (!module || !module->object)
		snprintf(place->reason, sizeof(place->reason),
			 "is in a file that cannot be read any more");
	else if (!function->size)
		snprintf(place->reason, sizeof(place->reason),
			 "is in no function that a symbol or the unwind table bounds");
	else if (function->marker->semaphore &&
		 !in_segment(module->object, function->marker->semaphore, 2, true))
		snprintf(place->reason, sizeof(place->reason),
			 "has a semaphore outside its module's data");
	else
		settle_all(target, module->object, function, fields, place);
	return place;
}
