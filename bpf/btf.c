/* SPDX-License-Identifier: MIT */
/*
 * The kernel's own description of its types. The file is the kernel's, but every offset is checked
 * all the same: once when it is opened, so that what is handed out can be followed without looking.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fay/bpf.h"

#define KERNEL_BTF "/sys/kernel/btf/vmlinux"
#define MAX_BYTES (256u << 20)
#define MAX_NESTING 16 /* typedefs and qualifiers in a row; unnamed structures in one another */

struct fay_btf {
	uint8_t *bytes;
	size_t size;
	const struct btf_type **types; /* by id; [0] is NULL, void */
	uint32_t count;
	const char *strings;
	uint32_t strings_size;
};

static uint32_t kind(const struct btf_type *type)
{
	return BTF_INFO_KIND(type->info);
}

/* Bytes that follow a type's header. */
static size_t extra(uint32_t info)
{
	size_t count = BTF_INFO_VLEN(info);
	switch (BTF_INFO_KIND(info)) {
	case BTF_KIND_INT:
	case BTF_KIND_VAR:
	case BTF_KIND_DECL_TAG: return 4;
	case BTF_KIND_ARRAY: return sizeof(struct btf_array);
	case BTF_KIND_STRUCT:
	case BTF_KIND_UNION:
	case BTF_KIND_DATASEC:
	case BTF_KIND_ENUM64: return 12 * count;
	case BTF_KIND_ENUM:
	case BTF_KIND_FUNC_PROTO: return 8 * count;
	default: return 0;
	}
}

/* Fills in `types`, or only counts. False: malformed. */
static bool index_types(struct fay_btf *btf, const uint8_t *at, size_t size)
{
	uint32_t id = 1;
	for (size_t offset = 0; offset < size; id++) {
		const struct btf_type *type = (const void *)(at + offset);
		if (size - offset < sizeof(*type) ||
		    size - offset - sizeof(*type) < extra(type->info))
			return false;
		if (btf->types)
			btf->types[id] = type;
		offset += sizeof(*type) + extra(type->info);
	}
	btf->count = id;
	return true;
}

static bool index_file(struct fay_btf *btf)
{
	const struct btf_header *header = (const void *)btf->bytes;
	if (btf->size < sizeof(*header) || header->magic != BTF_MAGIC ||
	    header->version != BTF_VERSION || header->hdr_len > btf->size)
		return false;
	size_t rest = btf->size - header->hdr_len;
	if (header->type_off > rest || header->type_len > rest - header->type_off ||
	    header->str_off > rest || header->str_len > rest - header->str_off ||
	    header->type_off % 4 || header->hdr_len % 4 || !header->str_len)
		return false;
	const uint8_t *types = btf->bytes + header->hdr_len + header->type_off;
	btf->strings = (const char *)btf->bytes + header->hdr_len + header->str_off;
	btf->strings_size = header->str_len;
	if (btf->strings[header->str_len - 1] || !index_types(btf, types, header->type_len))
		return false;
	btf->types = calloc(btf->count, sizeof(*btf->types));
	return btf->types && index_types(btf, types, header->type_len);
}

static bool read_file(struct fay_btf *btf, const char *path)
{
	FILE *file = fopen(path, "re");
	size_t room = 0;
	bool fine = file != NULL;
	while (fine && !feof(file)) {
		if (btf->size == room) {
			room = room ? 2 * room : 8u << 20;
			uint8_t *grown = room <= MAX_BYTES ? realloc(btf->bytes, room) : NULL;
			if (!grown) {
				errno = EFBIG;
				fine = false;
				break;
			}
			btf->bytes = grown;
		}
		btf->size += fread(btf->bytes + btf->size, 1, room - btf->size, file);
		fine = !ferror(file);
	}
	if (file)
		fclose(file);
	return fine;
}

int fay_btf_create(uint8_t *bytes, size_t size, const char *what, struct fay_btf **result,
		   struct fay_error *error)
{
	struct fay_btf *btf = calloc(1, sizeof(*btf));
	if (!btf) {
		free(bytes);
		return fay_error_set(error, FAY_E_LIMIT, "out of memory");
	}
	btf->bytes = bytes;
	btf->size = size;
	if (!index_file(btf)) {
		fay_btf_close(btf);
		return fay_error_set(error, FAY_E_REFUSED, "%s: malformed", what);
	}
	*result = btf;
	return FAY_OK;
}

int fay_btf_open(const char *path, struct fay_btf **result, struct fay_error *error)
{
	struct fay_btf *btf = calloc(1, sizeof(*btf));
	if (!path)
		path = KERNEL_BTF;
	if (!btf)
		return fay_error_set(error, FAY_E_LIMIT, "out of memory");
	if (!read_file(btf, path)) {
		fay_error_set(error, FAY_E_REFUSED,
			      "the kernel's types are not known: %s: %s (a kernel with "
			      "CONFIG_DEBUG_INFO_BTF has them)",
			      path, strerror(errno));
	} else if (!index_file(btf)) {
		fay_error_set(error, FAY_E_REFUSED, "%s is malformed", path);
	} else {
		*result = btf;
		return FAY_OK;
	}
	fay_btf_close(btf);
	return FAY_E_REFUSED;
}

void fay_btf_close(struct fay_btf *btf)
{
	if (!btf)
		return;
	free(btf->bytes);
	free(btf->types);
	free(btf);
}

uint32_t fay_btf_count(const struct fay_btf *btf)
{
	return btf->count;
}

const struct btf_type *fay_btf_type(const struct fay_btf *btf, uint32_t id)
{
	return id < btf->count ? btf->types[id] : NULL;
}

const char *fay_btf_string(const struct fay_btf *btf, uint32_t offset)
{
	return offset < btf->strings_size ? btf->strings + offset : "";
}

uint32_t fay_btf_find(const struct fay_btf *btf, unsigned wanted, const char *name)
{
	for (uint32_t id = 1; id < btf->count; id++)
		if (kind(btf->types[id]) == wanted &&
		    !strcmp(fay_btf_string(btf, btf->types[id]->name_off), name))
			return id;
	return 0;
}

uint32_t fay_btf_strip(const struct fay_btf *btf, uint32_t id)
{
	for (int i = 0; i < MAX_NESTING; i++) {
		const struct btf_type *type = fay_btf_type(btf, id);
		if (!type)
			return 0;
		switch (kind(type)) {
		case BTF_KIND_TYPEDEF:
		case BTF_KIND_VOLATILE:
		case BTF_KIND_CONST:
		case BTF_KIND_RESTRICT:
		case BTF_KIND_TYPE_TAG: id = type->type; break;
		default: return id;
		}
	}
	return 0;
}

uint32_t fay_btf_size(const struct fay_btf *btf, uint32_t id)
{
	uint64_t count = 1;
	for (int i = 0; i < MAX_NESTING; i++) {
		const struct btf_type *type = fay_btf_type(btf, id = fay_btf_strip(btf, id));
		if (!type)
			return 0;
		switch (kind(type)) {
		case BTF_KIND_ARRAY:
			count *= ((const struct btf_array *)(type + 1))->nelems;
			id = ((const struct btf_array *)(type + 1))->type;
			break;
		case BTF_KIND_PTR: count *= 8; return count <= UINT32_MAX ? (uint32_t)count : 0;
		case BTF_KIND_FUNC:
		case BTF_KIND_FUNC_PROTO:
		case BTF_KIND_FWD: return 0;
		default: count *= type->size; return count <= UINT32_MAX ? (uint32_t)count : 0;
		}
		if (count > UINT32_MAX)
			return 0;
	}
	return 0;
}

/* --- members
 * -------------------------------------------------------------------------------------------------
 * */

static const struct btf_member *members_of(const struct fay_btf *btf, uint32_t id, uint32_t *count,
					   bool *bit_fields)
{
	const struct btf_type *type = fay_btf_type(btf, fay_btf_strip(btf, id));
	if (!type || (kind(type) != BTF_KIND_STRUCT && kind(type) != BTF_KIND_UNION))
		return NULL;
	*count = BTF_INFO_VLEN(type->info);
	*bit_fields = BTF_INFO_KFLAG(type->info);
	return (const struct btf_member *)(type + 1);
}

static bool find_member(const struct fay_btf *btf, uint32_t id, const char *name,
			struct fay_btf_field *field, int depth)
{
	uint32_t count;
	bool bit_fields;
	const struct btf_member *members = members_of(btf, id, &count, &bit_fields);
	for (uint32_t i = 0; members && i < count; i++) {
		const struct btf_member *member = &members[i];
		uint32_t offset =
			bit_fields ? BTF_MEMBER_BIT_OFFSET(member->offset) : member->offset;
		const char *own = fay_btf_string(btf, member->name_off);
		if (!strcmp(own, name)) {
			*field = (struct fay_btf_field){
				own, member->type, offset,
				bit_fields ? BTF_MEMBER_BITFIELD_SIZE(member->offset) : 0
			};
			return true;
		}
		if (*own || !depth || !find_member(btf, member->type, name, field, depth - 1))
			continue;
		field->bit_offset += offset;
		return true;
	}
	return false;
}

bool fay_btf_member(const struct fay_btf *btf, uint32_t structure, const char *name,
		    struct fay_btf_field *field)
{
	return *name && find_member(btf, structure, name, field, MAX_NESTING);
}

static size_t add_names(const struct fay_btf *btf, uint32_t id, const char **names, size_t max,
			int depth)
{
	uint32_t count;
	bool bit_fields;
	size_t found = 0;
	const struct btf_member *members = members_of(btf, id, &count, &bit_fields);
	for (uint32_t i = 0; members && i < count && found < max; i++) {
		const char *own = fay_btf_string(btf, members[i].name_off);
		if (*own)
			names[found++] = own;
		else if (depth)
			found += add_names(btf, members[i].type, names + found, max - found,
					   depth - 1);
	}
	return found;
}

size_t fay_btf_member_names(const struct fay_btf *btf, uint32_t structure, const char **names,
			    size_t max)
{
	return add_names(btf, structure, names, max, MAX_NESTING);
}

/* --- tracepoints
 * -------------------------------------------------------------------------------------------------
 * */

#define TRACEPOINT_PREFIX "btf_trace_"

/* From parameter `first` on. What follows `...` has no type. */
static void take_arguments(const struct fay_btf *btf, const struct btf_type *prototype,
			   uint32_t first, struct fay_btf_tracepoint *point)
{
	const struct btf_param *parameters = (const struct btf_param *)(prototype + 1);
	for (uint32_t i = first;
	     i < BTF_INFO_VLEN(prototype->info) && point->argument_count < 12 && parameters[i].type;
	     i++) {
		point->arguments[point->argument_count].name =
			fay_btf_string(btf, parameters[i].name_off);
		point->arguments[point->argument_count++].type = parameters[i].type;
	}
}

bool fay_btf_tracepoint(const struct fay_btf *btf, const char *name,
			struct fay_btf_tracepoint *tracepoint)
{
	char full[256];
	memset(tracepoint, 0, sizeof(*tracepoint));
	if (snprintf(full, sizeof(full), TRACEPOINT_PREFIX "%s", name) >= (int)sizeof(full))
		return false;
	tracepoint->id = fay_btf_find(btf, BTF_KIND_TYPEDEF, full);
	const struct btf_type *type = tracepoint->id ? fay_btf_type(btf, tracepoint->id) : NULL;
	/* The typedef is of a pointer to a prototype whose parameters have types but no names; the
	 * function that calls the probes has both. */
	snprintf(full, sizeof(full), "__traceiter_%s", name);
	uint32_t named = fay_btf_find(btf, BTF_KIND_FUNC, full);
	if (type && named)
		type = fay_btf_type(btf, named);
	else if (type)
		type = fay_btf_type(btf, type->type);
	type = type ? fay_btf_type(btf, type->type) : NULL;
	if (!type || kind(type) != BTF_KIND_FUNC_PROTO)
		return false;
	take_arguments(btf, type, 1, tracepoint);
	return true;
}

bool fay_btf_function(const struct fay_btf *btf, const char *name,
		      struct fay_btf_tracepoint *function)
{
	memset(function, 0, sizeof(*function));
	function->id = fay_btf_find(btf, BTF_KIND_FUNC, name);
	const struct btf_type *type =
		function->id ? fay_btf_type(btf, fay_btf_type(btf, function->id)->type) : NULL;
	if (!type || kind(type) != BTF_KIND_FUNC_PROTO)
		return false;
	take_arguments(btf, type, 0, function);
	return true;
}

struct fay_btf_result fay_btf_result(const struct fay_btf *btf, uint32_t prototype)
{
	const struct btf_type *function = fay_btf_type(btf, prototype), *type;
	if (function && kind(function) == BTF_KIND_FUNC_PROTO && !function->type)
		return (struct fay_btf_result){ 0, false };
	type = function ? fay_btf_type(btf, fay_btf_strip(btf, function->type)) : NULL;
	if (!type || type->size >= 8)
		return (struct fay_btf_result){ 8, false };
	switch (kind(type)) {
	case BTF_KIND_INT:
		return (struct fay_btf_result){
			type->size, BTF_INT_ENCODING(*(const uint32_t *)(type + 1)) & BTF_INT_SIGNED
		};
	case BTF_KIND_ENUM: return (struct fay_btf_result){ type->size, true };
	default: return (struct fay_btf_result){ 8, false };
	}
}

size_t fay_btf_tracepoints(const struct fay_btf *btf, const char **names, size_t max)
{
	size_t count = 0, prefix = strlen(TRACEPOINT_PREFIX);
	for (uint32_t id = 1; id < btf->count; id++) {
		const char *name = fay_btf_string(btf, btf->types[id]->name_off);
		if (kind(btf->types[id]) != BTF_KIND_TYPEDEF ||
		    strncmp(name, TRACEPOINT_PREFIX, prefix))
			continue;
		if (count < max)
			names[count] = name + prefix;
		count++;
	}
	return count;
}
