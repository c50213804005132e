/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "codes_private.h"
#include "feeds_private.h"

struct kernel {
	struct fay_object *object;
	struct fay_bpf_session *session;
	struct fay_aggregator *aggregator;
	pid_t *pids;
	size_t pid_count;
	struct fay_codes codes;
	struct fay_error failure; /* code 0: none */
};

static bool take_row(void *context, const uint8_t *row, size_t size)
{
	struct kernel *kernel = context;
	return !fay_aggregator_take_row(kernel->aggregator, 0, row, &kernel->failure);
}

static void tick(void *context)
{
	struct kernel *kernel = context;
	if (kernel->failure.code)
		return;
	uint32_t came = fay_bpf_session_tick(kernel->session);
	if (came)
		fprintf(stderr,
			"fayd: %u processor%s came online during a query about the kernel\n", came,
			came == 1 ? "" : "s");
	fay_bpf_session_drain(kernel->session, take_row, kernel);
	if (!kernel->failure.code)
		fay_aggregator_poll(kernel->aggregator, &kernel->failure);
}

static bool alive(void *context)
{
	struct kernel *kernel = context;
	for (size_t i = 0; i < kernel->pid_count; i++)
		if (!kill(kernel->pids[i], 0) || errno != ESRCH)
			return true;
	return !kernel->pid_count;
}

static void stop(void *context)
{
	struct kernel *kernel = context;
	fay_bpf_session_detach(kernel->session);
	tick(kernel);
}

static int snapshot(void *context, uint32_t state, struct fay_result *result,
		    struct fay_error *error)
{
	struct kernel *kernel = context;
	if (!kernel->failure.code)
		return fay_aggregator_snapshot(kernel->aggregator, state, result, error);
	*error = kernel->failure;
	return (int)error->code;
}

static void forget(void *context, struct fay_changes *changes, uint32_t state, uint64_t below,
		   struct fay_result *final)
{
	struct kernel *kernel = context;
	fay_changes_forget(changes, kernel->aggregator, state, below, final);
}

/* The asking side knows the names of what it asked for. */
static const char *name(void *context, uint64_t hash)
{
	return NULL;
}

static void translate(void *context, uint32_t state, uint8_t *row, fay_codes_function *tell,
		      void *tell_context)
{
	struct kernel *kernel = context;
	fay_codes_translate(&kernel->codes, state, row, tell, tell_context);
}

static void on_row(void *context, fay_row_function *function, void *function_context)
{
	struct kernel *kernel = context;
	fay_aggregator_on_row(kernel->aggregator, function, function_context);
}

static void destroy(void *context)
{
	struct kernel *kernel = context;
	fay_aggregator_destroy(kernel->aggregator);
	fay_bpf_session_destroy(kernel->session);
	fay_codes_deinit(&kernel->codes);
	free(kernel->pids);
	free(kernel);
}

static int read_pids(struct kernel *kernel, const struct fay_wire_start *start,
		     struct fay_error *error)
{
	kernel->pids = calloc(start->pids.count + 1u, sizeof(*kernel->pids));
	if (!kernel->pids)
		return fay_error_set(error, FAY_E_LIMIT, "out of memory");
	for (uint16_t i = 0; i < start->pids.count; i++)
		memcpy(&kernel->pids[i], start->pids.bytes + i * sizeof(uint32_t),
		       sizeof(uint32_t));
	kernel->pid_count = start->pids.count;
	kernel->object->bpf.pids = kernel->pids;
	kernel->object->bpf.pid_count = kernel->pid_count;
	return alive(kernel) ? FAY_OK : fay_error_set(error, FAY_E_REFUSED, "no such process");
}

static int attach(struct kernel *kernel, uint64_t memory, struct fay_error *error)
{
	struct fay_object *object = kernel->object;
	size_t size;
	if (!fay_bpf_knows_processes())
		return fay_error_set(error, FAY_E_REFUSED,
				     "fayd runs in a PID namespace (a container), where process "
				     "IDs differ from those in kernel events");
	if (fay_object_resolve(object, error))
		return error->code;
	if ((object->bpf.values[FAY_BPF_VALUE_PROCESSORS] + 1) * object->bpf.slot_stride > memory)
		return fay_error_set(
			error, FAY_E_LIMIT,
			"the query's state on each processor is over the agent's memory limit");
	if (fay_aggregator_create(&object->verdict.schema, &kernel->aggregator, error) ||
	    fay_bpf_session_create(&object->bpf, &kernel->session, error))
		return error->code;
	fay_aggregator_set_limit(kernel->aggregator, memory);
	struct fay_shm_control *shm = fay_bpf_session_shm(kernel->session, &size);
	if (fay_aggregator_add(kernel->aggregator, shm, size, 0, error) ||
	    fay_bpf_session_attach(kernel->session, error))
		return error->code;
	return FAY_OK;
}

int fay_kernel_feed_create(struct fay_object *object, const struct fay_wire_start *start,
			   uint64_t memory, struct fay_feed *feed, struct fay_error *error)
{
	struct kernel *kernel = calloc(1, sizeof(*kernel));
	if (!kernel)
		return fay_error_set(error, FAY_E_LIMIT, "out of memory");
	kernel->object = object;
	if (fay_codes_init(&kernel->codes, start, &object->verdict.schema, error) ||
	    read_pids(kernel, start, error) || attach(kernel, memory, error)) {
		destroy(kernel);
		return error->code;
	}
	*feed = (struct fay_feed){ .context = kernel,
				   .tick = tick,
				   .alive = alive,
				   .stop = stop,
				   .snapshot = snapshot,
				   .forget = forget,
				   .name = name,
				   .translate = kernel->codes.count ? translate : NULL,
				   .on_row = on_row,
				   .destroy = destroy };
	for (uint32_t i = 0; i < object->bpf.program_count; i++)
		feed->functions += !fay_bpf_session_skipped(kernel->session, i);
	return FAY_OK;
}
