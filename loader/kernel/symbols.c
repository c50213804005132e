/* SPDX-License-Identifier: MIT */
/* /proc/kallsyms: one "ADDRESS TYPE NAME [MODULE]" a line, tab before the bracket. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernel_private.h"
#include "loader/bisect.h"

#define KALLSYMS "/proc/kallsyms"
#define SYMBOLS_MAX (1u << 22)
#define FUNCTION_MAX (1u << 20) /* bytes */

static int by_address(const void *a, const void *b)
{
	const struct fay_kernel_symbol *x = a, *y = b;

	if (x->address != y->address)
		return x->address < y->address ? -1 : 1;
	return strcmp(x->name, y->name);
}

static bool add(struct fay_kernel_symbols *symbols, size_t *room, uint64_t address,
		const char *name, bool in_module)
{
	if (symbols->count == *room) {
		size_t more = *room ? *room * 2 : 65536;
		struct fay_kernel_symbol *grown =
			more <= SYMBOLS_MAX ? realloc(symbols->items, more * sizeof(*grown)) : NULL;

		if (!grown)
			return false;
		symbols->items = grown;
		*room = more;
	}
	char *copy = strdup(name);
	if (!copy)
		return false;
	symbols->items[symbols->count++] = (struct fay_kernel_symbol){ address, copy, in_module };
	return true;
}

int fay_kernel_symbols_read(struct fay_kernel_symbols *symbols, struct fay_error *error)
{
	FILE *file = fopen(KALLSYMS, "re");
	char line[1024], name[512], type;
	unsigned long long address;
	size_t room = 0;
	bool known = false, ok = true;

	*symbols = (struct fay_kernel_symbols){ 0 };
	if (!file)
		return fay_error_set(error, FAY_E_REFUSED,
				     "the kernel's functions are not known: %s: %s", KALLSYMS,
				     strerror(errno));
	while (ok && fgets(line, sizeof(line), file)) {
		if (sscanf(line, "%llx %c %511s", &address, &type, name) != 3 ||
		    !strchr("tTwW", type))
			continue;
		known |= address != 0;
		ok = add(symbols, &room, address, name, strchr(line, '[') != NULL);
	}
	fclose(file);
	if (!ok || !known) {
		fay_kernel_symbols_deinit(symbols);
		return ok ? fay_error_set(error, FAY_E_REFUSED,
					  "the kernel's functions are not known: " KALLSYMS
					  " hides addresses (kernel.kptr_restrict, or CAP_SYSLOG "
					  "is missing)")
			  : fay_error_set(error, FAY_E_LIMIT,
					  "out of memory, or more than %u kernel symbols",
					  SYMBOLS_MAX);
	}
	qsort(symbols->items, symbols->count, sizeof(*symbols->items), by_address);
	return FAY_OK;
}

const struct fay_kernel_symbol *fay_kernel_symbols_find(const struct fay_kernel_symbols *symbols,
							uint64_t address)
{
	size_t until = FAY_COUNT_UNTIL(symbols->items, symbols->count, address, address);

	return until && address - symbols->items[until - 1].address < FUNCTION_MAX
		       ? &symbols->items[until - 1]
		       : NULL;
}

void fay_kernel_symbols_deinit(struct fay_kernel_symbols *symbols)
{
	for (size_t i = 0; i < symbols->count; i++)
		free(symbols->items[i].name);
	free(symbols->items);
	*symbols = (struct fay_kernel_symbols){ 0 };
}
