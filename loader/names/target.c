/* SPDX-License-Identifier: MIT */
/*
 * A target (a live process, or one object file) and the search for functions in it. Nothing is
 * stopped: all that is read lies in /proc and in the files. A function counts only if its address
 * lies in an executable mapping of its module, so that whatever a file claims, no address outside
 * the module's code is ever handed to the patcher.
 *
 * Aliases, several names of one address, are folded among those that the pattern matched:
 * `libc!read` and `libc!*read` find the same function, shown as `read`, and `libc!__read` finds it
 * as `__read`.
 */
#include <elfutils/libdwelf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "target.h"

#include "fay/event.h"

void fay_function_list_deinit(struct fay_function_list *list)
{
	free(list->items);
	list->items = NULL;
	list->count = 0;
}

static struct fay_target *new_target(pid_t pid, const char *title)
{
	struct fay_target *target = calloc(1, sizeof(*target));
	if (!target)
		return NULL;
	target->pid = pid;
	target->title = strdup(title);
	if (!target->title) {
		free(target);
		return NULL;
	}
	return target;
}

int fay_target_open_pid(pid_t pid, struct fay_target **result, struct fay_error *error)
{
	char title[96], comm[32] = "?", path[64];
	if (pid <= 0)
		return fay_error_set(error, FAY_E_REFUSED, "no process with PID %d", pid);
	snprintf(path, sizeof(path), "/proc/%d/comm", pid);
	FILE *file = fopen(path, "re");
	if (file) {
		if (fgets(comm, sizeof(comm), file))
			comm[strcspn(comm, "\n")] = 0;
		fclose(file);
	}
	snprintf(title, sizeof(title), "process %d (%s)", pid, comm);
	struct fay_target *target = new_target(pid, title);
	if (!target)
		return fay_error_set(error, FAY_E_LIMIT, "out of memory");
	int code = fay_target_read_maps(target, error);
	if (code) {
		fay_target_close(target);
		return code;
	}
	*result = target;
	return FAY_OK;
}

int fay_target_open_file(const char *path, struct fay_target **result, struct fay_error *error)
{
	if (access(path, R_OK))
		return fay_error_set(error, FAY_E_USAGE, "cannot open %s: %s", path,
				     strerror(errno));
	struct fay_target *target = new_target(0, path);
	char *real = realpath(path, NULL);
	bool ok = target && (target->modules = calloc(1, sizeof(*target->modules)));
	if (ok) {
		struct fay_module *module = target->modules;
		target->module_count = 1;
		module->main = true;
		module->path = strdup(path);
		/* The name it was called by comes first: libc.so.6 may be a link to libc-2.31.so. A
		 * deleted file has no real one. */
		ok = module->path && fay_module_add_names_of(module, path) &&
		     (!real || fay_module_add_names_of(module, real));
	}
	free(real);
	if (!ok) {
		fay_target_close(target);
		return fay_error_set(error, FAY_E_LIMIT, "out of memory");
	}
	if (!fay_module_object(target, target->modules)) {
		const char *why = target->modules->unreadable;
		int code = fay_error_set(error, FAY_E_REFUSED, "%s", why ? why : "out of memory");
		fay_target_close(target);
		return code;
	}
	*result = target;
	return FAY_OK;
}

void fay_target_forget(struct fay_target *target)
{
	for (size_t i = 0; i < target->module_count; i++)
		fay_module_deinit(&target->modules[i]);
	target->module_count = 0;
}

void fay_target_close(struct fay_target *target)
{
	if (!target)
		return;
	fay_target_forget(target);
	fay_name_table_deinit(&target->names);
	free(target->modules);
	free(target->title);
	free(target);
}

pid_t fay_target_pid(const struct fay_target *target)
{
	return target->pid;
}

/* --- interned names --- */

static uint64_t hash_name(const char *name, size_t length)
{
	/* as fay_name_hash(), for a name that is not NUL-terminated */
	uint64_t hash = 0xcbf29ce484222325u;
	for (size_t i = 0; i < length; i++)
		hash = (hash ^ (unsigned char)name[i]) * 0x100000001b3u;
	return hash;
}

static bool grow_names(struct fay_name_table *names)
{
	size_t size = names->size ? names->size * 2 : 64;
	struct fay_interned *grown = calloc(size, sizeof(*grown));
	if (!grown)
		return false;
	for (size_t i = 0; i < names->size; i++) {
		if (!names->items[i].name)
			continue;
		size_t at = names->items[i].hash & (size - 1);
		while (grown[at].name)
			at = (at + 1) & (size - 1);
		grown[at] = names->items[i];
	}
	free(names->items);
	names->items = grown;
	names->size = size;
	return true;
}

void fay_name_table_deinit(struct fay_name_table *names)
{
	for (size_t i = 0; i < names->size; i++)
		free(names->items[i].name);
	free(names->items);
}

const char *fay_target_intern(struct fay_target *target, const char *name, size_t length)
{
	struct fay_name_table *names = target->files ? &target->files->names : &target->names;
	if (names->count * 2 >= names->size && !grow_names(names))
		return NULL;
	uint64_t hash = hash_name(name, length);
	size_t at = hash & (names->size - 1);
	for (; names->items[at].name; at = (at + 1) & (names->size - 1))
		if (names->items[at].hash == hash && strlen(names->items[at].name) == length &&
		    !memcmp(names->items[at].name, name, length))
			return names->items[at].name;
	char *copy = strndup(name, length);
	if (!copy)
		return NULL;
	names->items[at] = (struct fay_interned){ .hash = hash, .name = copy };
	names->count++;
	return copy;
}

const char *fay_target_function_name(const struct fay_target *target, uint64_t hash)
{
	const struct fay_name_table *names = target->files ? &target->files->names : &target->names;
	if (!names->size)
		return NULL;
	for (size_t at = hash & (names->size - 1); names->items[at].name;
	     at = (at + 1) & (names->size - 1))
		if (names->items[at].hash == hash)
			return names->items[at].name;
	return NULL;
}

/* --- search --- */

int fay_matches_add(struct fay_matches *matches, const struct fay_function *function,
		    struct fay_error *error)
{
	if (matches->count == FAY_FIND_MAX)
		return fay_error_set(error, FAY_E_LIMIT, "the pattern matches more than %u places",
				     FAY_FIND_MAX);
	if (matches->count == matches->room) {
		size_t room = matches->room ? matches->room * 2 : 64;
		struct fay_function *grown = realloc(matches->items, room * sizeof(*grown));
		if (!grown)
			return fay_error_set(error, FAY_E_LIMIT, "out of memory for %zu matches",
					     room);
		matches->items = grown;
		matches->room = room;
	}
	matches->items[matches->count++] = *function;
	return FAY_OK;
}

static bool describe(struct fay_target *target, struct fay_module *module,
		     const struct fay_symbol *symbol, uint64_t address,
		     struct fay_function *function)
{
	*function = (struct fay_function){ .module = module->name,
					   .name = fay_target_intern(target, symbol->name,
								     symbol->length),
					   .path = module->path,
					   .address = address,
					   .size = fay_object_size(module->object, symbol),
					   .guessed = !symbol->size,
					   .unnamed = symbol->unnamed };
	return function->name != NULL;
}

bool fay_target_function_at(struct fay_target *target, uint64_t address,
			    struct fay_function *function)
{
	uint64_t start, end, bias;
	const struct fay_symbol *symbol;
	struct fay_module *module;

	return fay_target_symbol_at(target, address, &module, &bias, &symbol, &start, &end) &&
	       symbol->kind == FAY_SYMBOL_FUNCTION && start == address &&
	       describe(target, module, symbol, address, function);
}

/* Adds the symbol once for every place where its module is mapped. */
static int add_symbol(struct fay_target *target, struct fay_module *module,
		      const struct fay_symbol *symbol, struct fay_matches *matches,
		      struct fay_error *error)
{
	for (size_t i = 0; i < module->range_count; i++) {
		const struct fay_range *range = &module->ranges[i];
		uint64_t address = symbol->address + range->bias;
		struct fay_function function;
		if (!range->placed || address < range->start || address >= range->end)
			continue;
		if (!describe(target, module, symbol, address, &function))
			return fay_error_set(error, FAY_E_LIMIT, "out of memory for names");
		int code = fay_matches_add(matches, &function, error);
		if (code)
			return code;
	}
	return FAY_OK;
}

static int compare_functions(const void *left, const void *right)
{
	const struct fay_function *a = left, *b = right;
	if (a->address != b->address)
		return a->address < b->address ? -1 : 1;
	size_t a_length = strlen(a->name), b_length = strlen(b->name);
	if (a_length != b_length)
		return a_length < b_length ? -1 : 1;
	return strcmp(a->name, b->name);
}

static void fold_aliases(struct fay_matches *matches)
{
	size_t kept = 0;
	qsort(matches->items, matches->count, sizeof(*matches->items), compare_functions);
	for (size_t i = 0; i < matches->count; i++)
		if (!kept || matches->items[kept - 1].address != matches->items[i].address)
			matches->items[kept++] = matches->items[i];
	matches->count = kept;
}

int fay_target_no_match(struct fay_target *target, bool markers, const char *module,
			const char *name, struct fay_error *error)
{
	if (target->only_new)
		return fay_error_set(error, FAY_E_USAGE,
				     "none of the modules that are new in %s has %s!%s",
				     target->title, module, name);
	target->unmatched.markers = markers;
	snprintf(target->unmatched.module, sizeof(target->unmatched.module), "%s", module);
	snprintf(target->unmatched.name, sizeof(target->unmatched.name), "%s", name);
	return fay_error_set(error, FAY_E_USAGE, FAY_NO_MATCH, target->title, module, name);
}

static int find_in_modules(struct fay_target *target, const char *module_pattern,
			   const struct fay_glob *glob, struct fay_matches *matches,
			   struct fay_error *error)
{
	int code = FAY_OK;
	for (size_t i = 0; !code && i < target->module_count; i++) {
		struct fay_module *module = &target->modules[i];
		if (!fay_target_asks(target, module, module_pattern) ||
		    !fay_module_object(target, module))
			continue;
		if (!fay_target_intern(target, module->name, strlen(module->name)))
			code = fay_error_set(error, FAY_E_LIMIT, "out of memory for names");
		for (size_t j = 0; !code && j < module->object->symbol_count; j++) {
			const struct fay_symbol *symbol = &module->object->symbols[j];
			if (symbol->kind == FAY_SYMBOL_FUNCTION &&
			    fay_glob_match(glob, symbol->name, symbol->length) &&
			    !fay_object_superseded(module->object, symbol))
				code = add_symbol(target, module, symbol, matches, error);
		}
	}
	return code;
}

/* `plain`: a name without globs that no symbol has is looked for as the source has it. */
static int find(struct fay_target *target, const char *pattern, bool plain,
		struct fay_function_list *list, struct fay_error *error)
{
	char module_pattern[256], function_pattern[256];
	struct fay_matches matches = { 0 };
	struct fay_glob glob;
	int code = fay_pattern_split(pattern, module_pattern, function_pattern, error);
	if (code)
		return code;
	fay_glob_init(&glob, function_pattern);
	code = find_in_modules(target, module_pattern, &glob, &matches, error);
	if (!code && !matches.count && plain && glob.exact && !glob.source) {
		glob.source = true;
		code = find_in_modules(target, module_pattern, &glob, &matches, error);
	}
	if (!code && !matches.count)
		code = fay_target_no_match(target, false, module_pattern, function_pattern, error);
	if (code) {
		free(matches.items);
		return code;
	}
	fold_aliases(&matches);
	list->items = matches.items;
	list->count = matches.count;
	return FAY_OK;
}

int fay_target_find(struct fay_target *target, const char *pattern, struct fay_function_list *list,
		    struct fay_error *error)
{
	return find(target, pattern, true, list, error);
}

int fay_target_find_symbols(struct fay_target *target, const char *pattern,
			    struct fay_function_list *list, struct fay_error *error)
{
	return find(target, pattern, false, list, error);
}

static void read_identity(const struct fay_module *module, struct fay_function_file *file)
{
	const void *id;
	struct stat status;
	ssize_t size = dwelf_elf_gnu_build_id(module->object->elf, &id);
	if (size > 0 && (size_t)size <= sizeof(file->build_id)) {
		memcpy(file->build_id, id, (size_t)size);
		file->build_id_size = (size_t)size;
	}
	if (!fstat(file->fd, &status)) {
		file->device = status.st_dev;
		file->inode = status.st_ino;
	}
}

bool fay_target_file_of(const struct fay_target *target, const struct fay_function *function,
			struct fay_function_file *file)
{
	for (size_t i = 0; i < target->module_count; i++) {
		const struct fay_module *module = &target->modules[i];
		for (size_t k = 0; k < module->range_count && module->object; k++) {
			const struct fay_range *range = &module->ranges[k];
			if (!range->placed || function->address < range->start ||
			    function->address >= range->end)
				continue;
			*file = (struct fay_function_file){
				.fd = module->object->fd,
				.path = module->path,
				.address = function->address - range->bias,
				.offset = function->address - range->start + range->offset
			};
			read_identity(module, file);
			return true;
		}
	}
	return false;
}
