/* SPDX-License-Identifier: MIT */
/* What the root has, and what it covers. */
#include "root_private.h"

int fay_root_gather(const struct fay_root *root, struct fay_aggregator *fresh,
		    struct fay_error *error)
{
	for (size_t i = 0; root->replaces && i < root->machine_count; i++) {
		const struct fay_machine *machine = root->machines[i];
		if (machine->own && (fay_aggregator_merge_all(fresh, machine->settled, error) ||
				     fay_aggregator_merge_all(fresh, machine->own, error)))
			return error->code;
	}
	if (root->replaces)
		fay_aggregator_account(fresh, &root->losses);
	return FAY_OK;
}

void fay_root_forget(struct fay_root *root, uint32_t state, uint64_t below)
{
	for (size_t i = 0; i < root->machine_count; i++) {
		const struct fay_machine *machine = root->machines[i];
		if (!machine->own)
			continue;
		fay_aggregator_forget(machine->settled, state, below);
		fay_aggregator_forget(machine->own, state, below);
	}
}

bool fay_root_replaces(const struct fay_root *root)
{
	return root->replaces;
}

static uint64_t magnitude(int64_t value)
{
	return value < 0 ? -(uint64_t)value : (uint64_t)value;
}

void fay_root_coverage(const struct fay_root *root, struct fay_coverage *coverage)
{
	*coverage = root->coverage;
	coverage->windows = UINT64_MAX;
	coverage->clock_error = UINT64_MAX;
	for (size_t i = 0; i < root->machine_count; i++) {
		const struct fay_machine *machine = root->machines[i];
		coverage->asked++;
		coverage->tracing += machine->state == FAY_MACHINE_TRACING && !machine->lost;
		coverage->refused += machine->state == FAY_MACHINE_REFUSED;
		coverage->finished += machine->state == FAY_MACHINE_FINISHED;
		coverage->incomplete += machine->state == FAY_MACHINE_FINISHED &&
					machine->why != FAY_FINAL_STOPPED &&
					machine->why != FAY_FINAL_ENDED;
		coverage->late += machine->late && !machine->lost;
		coverage->lost += machine->lost;
		if (machine->state == FAY_MACHINE_TRACING && !machine->lost &&
		    machine->window < coverage->windows)
			coverage->windows = machine->window;
		if (machine->clock_error == UINT64_MAX)
			coverage->clocks_unknown++;
		else if (machine->clock_error > coverage->clock_bound)
			coverage->clock_bound = machine->clock_error;
		if (machine->clock_error != UINT64_MAX &&
		    (coverage->clock_error == UINT64_MAX ||
		     magnitude(machine->clock_offset) > magnitude(coverage->clock_offset))) {
			coverage->clock_offset = machine->clock_offset;
			coverage->clock_error = machine->clock_error;
		}
	}
	if (coverage->windows == UINT64_MAX)
		coverage->windows = root->last_window;
}

const char *fay_root_function_name(const struct fay_root *root, uint64_t hash)
{
	return fay_names_find(&root->names, hash);
}

size_t fay_root_machine_count(const struct fay_root *root)
{
	return root->machine_count;
}

const struct fay_machine *fay_root_machine(const struct fay_root *root, size_t index)
{
	return root->machines[index];
}

uint64_t fay_root_query(const struct fay_root *root)
{
	return root->query;
}
