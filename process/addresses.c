/* SPDX-License-Identifier: MIT */
/*
 * Addresses in results, by name. An address means something in the process that it comes from, and
 * a row may be of several processes; so it is looked for in all that were traced, as they were
 * mapped when their tracing began and whenever they loaded modules since. If two of them have
 * different code there, the address itself is shown.
 */
#include <stdlib.h>
#include <string.h>

#include "process.h"

#define SNAPSHOTS_MAX 1024u

void fay_addresses_take(struct fay_addresses *addresses, pid_t pid)
{
	struct fay_target *target, **grown;
	if (addresses->count == SNAPSHOTS_MAX || fay_target_open_pid(pid, &target, NULL))
		return;
	/* A forked child has what its parent has. */
	for (size_t i = 0; i < addresses->count; i++)
		if (fay_target_same_code(target, addresses->snapshots[i])) {
			fay_target_close(target);
			return;
		}
	grown = realloc(addresses->snapshots, (addresses->count + 1) * sizeof(*grown));
	if (!grown) {
		fay_target_close(target);
		return;
	}
	addresses->snapshots = grown;
	addresses->snapshots[addresses->count++] = target;
	memset(addresses->known, 0, sizeof(addresses->known));
}

void fay_addresses_deinit(struct fay_addresses *addresses)
{
	for (size_t i = 0; i < addresses->count; i++)
		fay_target_close(addresses->snapshots[i]);
	free(addresses->snapshots);
	fay_kernel_symbols_deinit(&addresses->kernel);
	memset(addresses, 0, sizeof(*addresses));
}

static bool same_place(const struct fay_code_place *a, const struct fay_code_place *b)
{
	return a->offset == b->offset && !strcmp(a->module, b->module) &&
	       (a->name ? b->name && !strcmp(a->name, b->name) : !b->name);
}

/* false: nobody has code there, or `exact` data, or it is not known whose it is. */
static bool find_place(struct fay_addresses *addresses, uint64_t address, bool exact,
		       struct fay_code_place *place)
{
	/* what a call returns to may be another function's first byte */
	uint64_t back = exact ? 0 : 1;
	bool found = false;
	for (size_t i = 0; i < addresses->count; i++) {
		struct fay_code_place one;
		if (!fay_target_describe(addresses->snapshots[i], address - back, &one) &&
		    !(exact && fay_target_describe_data(addresses->snapshots[i], address, &one)))
			continue;
		if (found && !same_place(place, &one))
			return false;
		*place = one;
		found = true;
	}
	place->offset += found ? back : 0;
	return found;
}

static bool find_in_kernel(struct fay_addresses *addresses, uint64_t address, bool exact,
			   struct fay_code_place *place)
{
	struct fay_error error; /* then they are shown as numbers */
	if (!addresses->kernel_read)
		fay_kernel_symbols_read(&addresses->kernel, &error);
	addresses->kernel_read = true;
	const struct fay_kernel_symbol *symbol =
		fay_kernel_symbols_find(&addresses->kernel, address - !exact);
	if (symbol)
		*place = (struct fay_code_place){ FAY_KERNEL_MODULE_NAME, symbol->name,
						  address - symbol->address };
	return symbol != NULL;
}

/* The kernel's addresses are none of a process's. */
const struct fay_code_place *fay_addresses_place(struct fay_addresses *addresses, uint64_t address,
						 unsigned form)
{
	bool exact = form & FAY_ADDRESS_EXACT;
	uint64_t at = (address ^ exact) % FAY_ADDRESSES_KNOWN;
	struct fay_code_place *place = &addresses->known[at].place;
	if (addresses->known[at].address == address && addresses->known[at].exact == exact &&
	    address)
		return place;
	addresses->known[at].address = address;
	addresses->known[at].exact = exact;
	if (!(form & FAY_ADDRESS_KERNEL ? find_in_kernel : find_place)(addresses, address, exact,
								       place))
		*place = (struct fay_code_place){ 0 };
	return place;
}
