/* SPDX-License-Identifier: MIT */
/*
 * libFuzzer on the whole front: any bytes give a plan that prints and generates well-formed IR, or
 * an error with a message. Build with FAY_FUZZ=ON, clang, FAY_SANITIZE=address,undefined.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include <llvm-c/Core.h>

#include "fay/query.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static size_t row_bytes;

static void take_row(void *context, const uint8_t *row)
{
	memcpy(context, row, row_bytes);
}

/* The stages outside the probe, over a pair or an event and a merged row of zeros. */
static void run_stages(const struct fay_plan *plan)
{
	static _Alignas(8) const uint8_t zeros[4096];
	static _Alignas(8) uint8_t row[4096];
	struct fay_schema schema;
	struct fay_error error;
	struct fay_result finished;
	fay_plan_schema(plan, &schema);
	row_bytes = schema.states[0].row_size;
	struct fay_pairs *pairs;
	if (plan->joins && !fay_pairs_create(plan, take_row, row, &pairs, &error)) {
		for (unsigned source = 0; source < plan->source_count; source++)
			fay_pairs_add(pairs, source, zeros);
		fay_pairs_destroy(pairs);
	}
	if (plan->window_events)
		fay_plan_event(plan, 0, zeros, row);
	struct fay_result merged = { .row_size = schema.states[0].row_size,
				     .row_count = 1,
				     .rows = row };
	assert(merged.row_size <= sizeof(row));
	if (plan->finishes && !fay_plan_finish(plan, &merged, NULL, NULL, &finished, &error))
		fay_result_deinit(&finished);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static FILE *nowhere;
	struct fay_error error = { 0 };
	struct fay_plan *plan;
	LLVMModuleRef module;
	char *text = malloc(size + 1);
	if (!nowhere)
		nowhere = fopen("/dev/null", "w");
	if (!text || !nowhere)
		abort();
	memcpy(text, data, size);
	text[size] = '\0';
	if (fay_query_plan(text, 1700000000000000000u, &plan, &error)) {
		assert(error.code != FAY_OK && error.code != FAY_E_INTERNAL && error.message[0]);
	} else {
		LLVMContextRef context = LLVMContextCreate();
		fay_plan_print(nowhere, plan);
		fay_plan_print_json(nowhere, plan);
		run_stages(plan);
		if (plan->domain == DOMAIN_KERNEL && plan->kernel != FAY_KERNEL_FUNCTIONS) {
			struct fay_bpf_options options = { 0 };
			struct fay_bpf_object object;
			if (!fay_plan_generate_bpf(plan, &options, &object, &error))
				fay_bpf_object_deinit(&object);
		} else {
			if (fay_plan_generate(plan, context, &module, &error))
				abort();
			LLVMDisposeModule(module);
		}
		LLVMContextDispose(context);
		fay_plan_destroy(plan);
	}
	free(text);
	return 0;
}
