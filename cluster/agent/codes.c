/* SPDX-License-Identifier: MIT */
#include "process/process.h"

#include "codes_private.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "fay/event.h"

#define NAME_SIZE 4096u /* of C++ */

/* The state whose row the column is in. */
static uint32_t state_of(const struct fay_schema *schema, uint32_t column)
{
	uint32_t state = 0;
	while (state + 1 < schema->state_count &&
	       (column < schema->states[state].first_column ||
		column >= schema->states[state].first_column + schema->states[state].keys +
				  schema->states[state].values))
		state++;
	return state;
}

int fay_codes_init(struct fay_codes *codes, const struct fay_wire_start *start,
		   const struct fay_schema *schema, struct fay_error *error)
{
	memset(codes, 0, sizeof(*codes));
	codes->walks = start->flags & FAY_START_STACKS;
	if (!fay_wire_codes_fit(start, schema))
		return fay_error_set(
			error, FAY_E_REFUSED,
			"the query's columns of code addresses do not match its image");
	for (uint16_t i = 0; i < start->codes.count; i++) {
		struct fay_wire_code code = fay_wire_code(start, i);
		const struct fay_schema_column *column = &schema->columns[code.column];
		/* whoever may ask about processes need not know where the kernel lies */
		if (code.flags & FAY_CODE_KERNEL && !(start->flags & FAY_START_BPF))
			return fay_error_set(error, FAY_E_REFUSED,
					     "kernel addresses in a query about processes");
		codes->columns[codes->count++] =
			(struct fay_code_column){ state_of(schema, code.column), column->offset,
						  column->size / (uint32_t)sizeof(uint64_t),
						  code.flags };
	}
	return FAY_OK;
}

void fay_codes_deinit(struct fay_codes *codes)
{
	fay_addresses_deinit(&codes->addresses);
	fay_stacks_deinit(&codes->stacks);
}

void fay_codes_take(struct fay_codes *codes, pid_t pid)
{
	if (!codes->count)
		return;
	fay_addresses_take(&codes->addresses, pid);
	memset(codes->known, 0, sizeof(codes->known));
}

static void describe(struct fay_codes *codes, uint64_t address, unsigned form, char *name,
		     size_t size)
{
	const struct fay_code_place *place = fay_addresses_place(&codes->addresses, address, form);
	if (place->module)
		snprintf(name, size, "%" PRIx64 " %s%s%s", place->offset, place->module,
			 place->name ? "!" : "", place->name ? place->name : "");
	else
		snprintf(name, size, "%" PRIx64, address);
}

static uint64_t translate(struct fay_codes *codes, uint64_t address, unsigned form,
			  fay_codes_function *tell, void *context)
{
	char name[NAME_SIZE];
	uint64_t at = (address ^ form) % FAY_ADDRESSES_KNOWN;
	if (codes->known[at].hash && codes->known[at].address == address &&
	    codes->known[at].form == form)
		return codes->known[at].hash;
	describe(codes, address, form, name, sizeof(name));
	uint64_t hash = fay_name_hash(name);
	hash = hash ? hash : 1; /* 0 ends a stack */
	tell(context, hash, name);
	codes->known[at].address = address;
	codes->known[at].form = form;
	codes->known[at].hash = hash;
	return hash;
}

void fay_codes_translate(struct fay_codes *codes, uint32_t state, uint8_t *row,
			 fay_codes_function *tell, void *context)
{
	for (uint32_t i = 0; i < codes->count; i++) {
		const struct fay_code_column *column = &codes->columns[i];
		unsigned kernel = column->flags & FAY_CODE_KERNEL ? FAY_ADDRESS_KERNEL : 0;
		for (uint32_t word = 0; column->state == state && word < column->words; word++) {
			uint64_t address;
			memcpy(&address, row + column->offset + word * sizeof(address),
			       sizeof(address));
			if (!address)
				break;
			address = translate(codes, address,
					    kernel | (!word && column->flags & FAY_CODE_EXACT
							      ? FAY_ADDRESS_EXACT
							      : 0),
					    tell, context);
			memcpy(row + column->offset + word * sizeof(address), &address,
			       sizeof(address));
		}
	}
}

int fay_codes_tables(struct fay_codes *codes, struct fay_target *target,
		     struct fay_attach_options *options, struct fay_stack_tables **tables,
		     struct fay_error *error)
{
	*tables = NULL;
	return codes->walks ? fay_stacks_make(&codes->stacks, target, options, tables, error)
			    : FAY_OK;
}

void fay_codes_update(struct fay_codes *codes, pid_t pid, struct fay_stack_tables *tables,
		      struct fay_session *session)
{
	struct fay_target *target;
	if (!tables || fay_target_open_pid(pid, &target, NULL))
		return;
	fay_stacks_renew(&codes->stacks, target, tables, session);
	fay_target_close(target);
}
