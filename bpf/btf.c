/* SPDX-License-Identifier: MIT */
/*
 * The kernel's own description of its types, read by libbpf. What is here is what libbpf does not
 * have: errors that say what is missing, members of unnamed structures, tracepoints and functions
 * by name.
 */
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fay/bpf.h"

#define KERNEL_BTF "/sys/kernel/btf/vmlinux"
#define MAX_NESTING 16 /* typedefs and qualifiers in a row; unnamed structures in one another */

/* All that uses libbpf is linked with this file. */
__attribute__((constructor)) static void let_libbpf_print_nothing(void)
{
	libbpf_set_print(NULL);
}

static int explain(int code, const char *path, struct fay_error *error)
{
	switch (-code) {
	case EINVAL: /* libbpf's words for a file that it does not understand */
	case EPROTO:
	case EIO:
	case ENOTSUP: return fay_error_set(error, FAY_E_REFUSED, "%s is malformed", path);
	default:
		return fay_error_set(error, FAY_E_REFUSED,
				     "the kernel's types are not known: %s: %s (a kernel with "
				     "CONFIG_DEBUG_INFO_BTF has them)",
				     path, strerror(-code));
	}
}

/* The running kernel's, some 6 MB: once it is read it stays, for those who come later, too, but for
 * fay_btf_let_go(). */
static struct btf *kernel;
static size_t kernel_users;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* Linux 6.16 lets its types be mapped, which is faster: read(2) gives a page at a time. NULL: it
 * does not. */
static struct btf *map_kernel(void)
{
	struct stat status;
	int fd = open(KERNEL_BTF, O_RDONLY | O_CLOEXEC);
	bool sized = fd >= 0 && !fstat(fd, &status) && status.st_size > 0 &&
		     status.st_size <= UINT32_MAX;
	void *bytes = sized ? mmap(NULL, (size_t)status.st_size, PROT_READ,
				   MAP_PRIVATE | MAP_POPULATE, fd, 0)
			    : MAP_FAILED;
	struct btf *btf = NULL;
	if (bytes != MAP_FAILED) {
		btf = btf__new(bytes, (uint32_t)status.st_size);
		munmap(bytes, (size_t)status.st_size);
	}
	if (fd >= 0)
		close(fd);
	return btf;
}

/* btf__load_vmlinux_btf() would do, but says only ESRCH, and believes files in /boot, too. */
static int parse(const char *path, struct btf **btf, struct fay_error *error)
{
	*btf = path ? btf__parse_raw(path) : map_kernel() ?: btf__parse_raw(KERNEL_BTF);
	if (!*btf)
		return explain(-errno, path ?: KERNEL_BTF, error);
	btf__set_pointer_size(*btf, 8);
	return FAY_OK;
}

static int open_kernel(const struct btf **btf, struct fay_error *error)
{
	pthread_mutex_lock(&lock);
	int code = kernel ? FAY_OK : parse(NULL, &kernel, error);
	kernel_users += code == FAY_OK;
	*btf = kernel;
	pthread_mutex_unlock(&lock);
	return code;
}

int fay_btf_open(const char *path, const struct btf **btf, struct fay_error *error)
{
	struct btf *own;
	if (!path)
		return open_kernel(btf, error);
	int code = parse(path, &own, error);
	if (!code)
		*btf = own;
	return code;
}

void fay_btf_close(const struct btf *btf)
{
	pthread_mutex_lock(&lock);
	bool own = btf != kernel;
	kernel_users -= btf && !own;
	pthread_mutex_unlock(&lock);
	if (own)
		btf__free((struct btf *)btf);
}

void fay_btf_let_go(void)
{
	pthread_mutex_lock(&lock);
	if (!kernel_users) {
		btf__free(kernel);
		kernel = NULL;
	}
	pthread_mutex_unlock(&lock);
}

const char *fay_btf_name(const struct btf *btf, uint32_t offset)
{
	return btf__name_by_offset(btf, offset) ?: "";
}

uint32_t fay_btf_find(const struct btf *btf, uint32_t kind, const char *name)
{
	int id = btf__find_by_name_kind(btf, name, kind);
	return id > 0 ? (uint32_t)id : 0;
}

uint32_t fay_btf_strip(const struct btf *btf, uint32_t id)
{
	for (int i = 0; i < MAX_NESTING; i++) {
		const struct btf_type *type = btf__type_by_id(btf, id);
		if (!type || btf_is_void(type))
			return 0;
		if (!btf_is_mod(type) && !btf_is_typedef(type))
			return id;
		id = type->type;
	}
	return 0;
}

uint32_t fay_btf_size(const struct btf *btf, uint32_t id)
{
	int64_t size = btf__resolve_size(btf, id);
	return size > 0 ? (uint32_t)size : 0;
}

/* --- members --- */

/* The structure or union, or NULL. */
static const struct btf_type *structure_of(const struct btf *btf, uint32_t id)
{
	const struct btf_type *type = btf__type_by_id(btf, fay_btf_strip(btf, id));
	return btf_is_composite(type) ? type : NULL;
}

static bool find_member(const struct btf *btf, uint32_t id, const char *name,
			struct fay_btf_field *field, int depth)
{
	const struct btf_type *type = structure_of(btf, id);
	for (uint32_t i = 0; type && i < btf_vlen(type); i++) {
		const struct btf_member *member = &btf_members(type)[i];
		uint32_t offset = btf_member_bit_offset(type, i);
		const char *own = fay_btf_name(btf, member->name_off);
		if (!strcmp(own, name)) {
			*field = (struct fay_btf_field){ own, member->type, offset,
							 btf_member_bitfield_size(type, i) };
			return true;
		}
		if (*own || !depth || !find_member(btf, member->type, name, field, depth - 1))
			continue;
		field->bit_offset += offset;
		return true;
	}
	return false;
}

bool fay_btf_member(const struct btf *btf, uint32_t structure, const char *name,
		    struct fay_btf_field *field)
{
	return *name && find_member(btf, structure, name, field, MAX_NESTING);
}

static size_t add_names(const struct btf *btf, uint32_t id, const char **names, size_t max,
			int depth)
{
	size_t found = 0;
	const struct btf_type *type = structure_of(btf, id);
	for (uint32_t i = 0; type && i < btf_vlen(type) && found < max; i++) {
		const struct btf_member *member = &btf_members(type)[i];
		const char *own = fay_btf_name(btf, member->name_off);
		if (*own)
			names[found++] = own;
		else if (depth)
			found +=
				add_names(btf, member->type, names + found, max - found, depth - 1);
	}
	return found;
}

size_t fay_btf_member_names(const struct btf *btf, uint32_t structure, const char **names,
			    size_t max)
{
	return add_names(btf, structure, names, max, MAX_NESTING);
}

/* --- tracepoints and functions --- */

#define TRACEPOINT_PREFIX "btf_trace_"

/* The prototype that a function or a pointer is of, or NULL. */
static const struct btf_type *prototype_of(const struct btf *btf, const struct btf_type *type)
{
	type = btf__type_by_id(btf, type->type);
	return type && btf_is_func_proto(type) ? type : NULL;
}

/* From parameter `first` on. What follows `...` has no type. */
static bool take_arguments(const struct btf *btf, const struct btf_type *prototype, uint32_t first,
			   struct fay_btf_tracepoint *point)
{
	for (uint32_t i = first; prototype && i < btf_vlen(prototype); i++) {
		const struct btf_param *parameter = &btf_params(prototype)[i];
		if (point->argument_count == FAY_BTF_ARGUMENTS_MAX || !parameter->type)
			break;
		point->arguments[point->argument_count].name =
			fay_btf_name(btf, parameter->name_off);
		point->arguments[point->argument_count++].type = parameter->type;
	}
	return prototype != NULL;
}

/* The typedef is of a pointer to a prototype whose parameters have types but no names; the function
 * that calls the probes has both. */
bool fay_btf_tracepoint(const struct btf *btf, const char *name,
			struct fay_btf_tracepoint *tracepoint)
{
	char full[256];
	memset(tracepoint, 0, sizeof(*tracepoint));
	if (snprintf(full, sizeof(full), TRACEPOINT_PREFIX "%s", name) >= (int)sizeof(full))
		return false;
	tracepoint->id = fay_btf_find(btf, BTF_KIND_TYPEDEF, full);
	if (!tracepoint->id)
		return false;
	snprintf(full, sizeof(full), "__traceiter_%s", name);
	uint32_t named = fay_btf_find(btf, BTF_KIND_FUNC, full);
	const struct btf_type *type = btf__type_by_id(btf, named ?: tracepoint->id);
	if (!named)
		type = btf__type_by_id(btf, type->type);
	return type && take_arguments(btf, prototype_of(btf, type), 1, tracepoint);
}

bool fay_btf_function(const struct btf *btf, const char *name, struct fay_btf_tracepoint *function)
{
	memset(function, 0, sizeof(*function));
	function->id = fay_btf_find(btf, BTF_KIND_FUNC, name);
	const struct btf_type *type = btf__type_by_id(btf, function->id);
	return function->id && take_arguments(btf, prototype_of(btf, type), 0, function);
}

struct fay_btf_result fay_btf_result(const struct btf *btf, uint32_t prototype)
{
	const struct fay_btf_result whole = { 8, false };
	const struct btf_type *type = btf__type_by_id(btf, prototype);
	if (!type || btf_is_void(type))
		return whole;
	if (btf_is_func_proto(type) && !type->type)
		return (struct fay_btf_result){ 0, false };
	type = btf__type_by_id(btf, fay_btf_strip(btf, type->type));
	if (btf_is_int(type) && type->size < 8)
		return (struct fay_btf_result){ type->size,
						btf_int_encoding(type) & BTF_INT_SIGNED };
	if (btf_is_enum(type) && type->size < 8)
		return (struct fay_btf_result){ type->size, true };
	return whole;
}

size_t fay_btf_tracepoints(const struct btf *btf, const char **names, size_t max)
{
	size_t count = 0, prefix = strlen(TRACEPOINT_PREFIX);
	for (uint32_t id = 1; id < btf__type_cnt(btf); id++) {
		const struct btf_type *type = btf__type_by_id(btf, id);
		const char *name = fay_btf_name(btf, type->name_off);
		if (!btf_is_typedef(type) || strncmp(name, TRACEPOINT_PREFIX, prefix))
			continue;
		if (count < max)
			names[count] = name + prefix;
		count++;
	}
	return count;
}
