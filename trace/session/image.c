/* SPDX-License-Identifier: MIT */
/* From a query, or a file, to an image that the verifier accepted, and how its states are shown. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <llvm-c/Core.h>

#include "process/delay/delay.h"
#include "session.h"
#include "verifier/accept/accept.h"

static int plan_query(struct trace *trace, struct fay_error *error)
{
	uint64_t since = fay_monotonic();
	struct fay_query_options options = { .now = trace->asked ? trace->asked
								 : fay_trace_now(trace),
					     .whole_events = trace->save_path != NULL,
					     /* of a detached query the image is there, and the C
					      * files may not be */
					     .extend = !trace->image.data,
					     .find = fay_search_function,
					     .find_context = &trace->described };
	/* On a cluster process numbers are those of other machines; types are those of a file here,
	 * and machines that have another build of it refuse. */
	trace->described = (struct fay_function_search){
		.pids = trace->pids,
		.pid_count = trace->remote.bus.url ? 0 : trace->pid_count,
		.comms = trace->comms,
		.comm_count = trace->comm_count,
		.command = trace->command,
		.known = trace->known.path[0] ? &trace->known : NULL,
	};
	if (fay_trace_texts_plan(trace, &options, error))
		return error->code;
	if (fay_query_plan_with(trace->query, &options, &trace->plan, error))
		return error->code;
	if ((trace->plan->process && fay_trace_add_process(trace, trace->plan->process, error)) ||
	    (trace->plan->machine && fay_trace_check_machine(trace, trace->plan->machine, error)))
		return error->code;
	fay_trace_analyze_start(trace);
	fay_trace_stage(trace, "parse and plan", since);
	return FAY_OK;
}

static int compile_plan(struct trace *trace, struct fay_error *error)
{
	uint64_t since = fay_monotonic();
	LLVMContextRef context = LLVMContextCreate();
	LLVMModuleRef module;
	int result = fay_plan_generate(trace->plan, context, &module, error);
	fay_trace_stage(trace, "generate IR", since);
	since = fay_monotonic();
	if (!result) {
		struct fay_compile_options options = { .size = sizeof(options),
						       .unfuelled = trace->plan->unfuelled,
						       .debug_lines = trace->plan->extended };
		result = fay_compile_module(module, &trace->plan->spec, &options, &trace->image,
					    error);
	}
	LLVMContextDispose(context);
	fay_trace_stage(trace, "guard and compile", since);
	return result;
}

/* For the kernel, and for the processes and threads that are asked for. */
static int compile_for_kernel(struct trace *trace, struct fay_buffer *image,
			      struct fay_error *error)
{
	uint64_t since = fay_monotonic();
	LLVMContextRef context = LLVMContextCreate();
	LLVMModuleRef module;
	struct fay_event_filter filter = { .pids = trace->pids,
					   .pid_count = trace->pid_count,
					   .tids = trace->tids,
					   .tid_count = trace->tid_count };
	struct fay_compile_options options = { .size = sizeof(options),
					       .march = "general",
					       .confined = true,
					       .unfuelled = trace->plan->unfuelled,
					       .debug_lines = trace->plan->extended };
	int result = fay_plan_generate_kernel(trace->plan, &filter, context, &module, error);
	if (!result)
		result = fay_compile_module(module, fay_plan_kernel_spec(trace->plan), &options,
					    image, error);
	LLVMContextDispose(context);
	fay_trace_stage(trace, "compile for the kernel", since);
	return result;
}

static int read_image(struct trace *trace, struct fay_error *error)
{
	const char *path = trace->probe_path;
	FILE *file = fopen(path, "re");
	struct stat stat;
	if (!file || fstat(fileno(file), &stat)) {
		int code = errno;
		if (file)
			fclose(file);
		return fay_error_set(error, FAY_E_USAGE, "cannot open '%s': %s", path,
				     strerror(code));
	}
	if (!S_ISREG(stat.st_mode) || stat.st_size > (off_t)FAY_IMAGE_MAX_FILE) {
		fclose(file);
		return fay_error_set(error, FAY_E_REFUSED, "'%s' is not a probe image: %s", path,
				     S_ISREG(stat.st_mode) ? "too large" : "not a regular file");
	}
	if (strlen(path) > 2 && !strcmp(path + strlen(path) - 2, ".c")) {
		fclose(file);
		return fay_error_set(
			error, FAY_E_USAGE,
			"'%s' is a probe in C; `fay cc %s -o IMAGE` makes an image of it", path,
			path);
	}
	trace->image.size = (size_t)stat.st_size;
	trace->image.data = malloc(trace->image.size + 1);
	size_t got = trace->image.data ? fread(trace->image.data, 1, trace->image.size, file) : 0;
	fclose(file);
	if (got != trace->image.size)
		return fay_error_set(error, FAY_E_INTERNAL, "cannot read '%s'", path);
	return FAY_OK;
}

/* What the verdict means for the trace. */
static int judge(const struct trace *trace, struct fay_verdict *verdict, struct fay_error *error)
{
	const char *name = trace->probe_path ? trace->probe_path : "query";
	if (verdict->outcome != FAY_ACCEPTED) {
		if (trace->plan && trace->plan->extended)
			fay_verdict_source(verdict, ".");
		fay_verdict_print(trace->messages, name, verdict);
		return fay_error_set(
			error, verdict->outcome == FAY_EXHAUSTED ? FAY_E_LIMIT : FAY_E_REFUSED,
			"the probe was refused by the verifier (%s); nothing was installed",
			fay_rule_id(verdict->rejection.rule));
	}
	if (trace->verbose)
		fay_verdict_print(trace->messages, name, verdict);
	return FAY_OK;
}

/* A signature is of the file with the certificate that it brings. */
static bool brings_certificate(const struct fay_buffer *image, const struct fay_policy *policy)
{
	struct fay_probe_facts *facts = calloc(FAY_IMAGE_MAX_PROBES, sizeof(*facts));
	struct check_result result;
	bool brings = facts && fay_accept_check(image->data, image->size, policy, facts, &result);
	free(facts);
	return brings;
}

/* The kernel checks by a certificate: that which the image brings, if it is accepted by it, or one
 * that is made. */
static int verify_for_kernel(const struct trace *trace, struct fay_policy *policy,
			     struct fay_buffer *image, struct fay_verdict *verdict,
			     struct fay_error *error)
{
	const char *why;
	void *certified;
	size_t size;

	fay_trace_native_policy(trace, policy);
	if (fay_accept_certified(image->data, image->size, policy, verdict))
		return judge(trace, verdict, error);
	if (fay_delay_prover(error))
		return error->code;
	if (!fay_verify_certify(image->data, image->size, policy, &certified, &size, &why,
				verdict)) {
		if (brings_certificate(image, policy)) {
			free(certified);
		} else {
			fay_buffer_deinit(image);
			*image = (struct fay_buffer){ certified, size };
		}
	} else if (verdict->outcome == FAY_ACCEPTED) {
		return fay_error_set(error, FAY_E_REFUSED,
				     "the probe is accepted, but fay.ko would refuse it, since no "
				     "certificate could be made of the proof: %s",
				     why);
	}
	return judge(trace, verdict, error);
}

static int verify(struct trace *trace, struct fay_error *error)
{
	struct fay_policy policy;

	if (fay_trust_policy_read(trace->policy_path, &policy, trace->log.policy, error))
		return error->code;
	if (!trace->native &&
	    fay_delay_verify(trace->image.data, trace->image.size, &policy, &trace->verdict, error))
		return error->code;
	/* The very bytes that were read, before anything is made of them. */
	if (trace->probe_path && trace->verdict.outcome == FAY_ACCEPTED &&
	    fay_trust_check_here(trace->probe_path, trace->image.data, trace->image.size,
				 trace->log.policy, &trace->verdict, trace->log.by, error))
		return error->code;
	if (!trace->native && !trace->plan && trace->verdict.outcome == FAY_ACCEPTED &&
	    fay_kernel_is_target(&trace->verdict)) {
		/* Only now is it known what an image is for. */
		fay_verdict_deinit(&trace->verdict);
		trace->native = true;
	}
	return trace->native
		       ? verify_for_kernel(trace, &policy, &trace->image, &trace->verdict, error)
		       : judge(trace, &trace->verdict, error);
}

/* What came of it is in the log before anything else is done; `result` and `error`: why not. */
static int log_verdict(struct trace *trace, const struct fay_verdict *verdict, int result,
		       struct fay_error *error)
{
	struct fay_error unlogged = { 0 };
	char what[1024];
	snprintf(what, sizeof(what), "%s %.900s", trace->query ? "query" : "probe",
		 trace->query ? trace->query : trace->probe_path);
	if (!fay_trust_log_verdict(&trace->log, verdict->image_sha256, what, result ? error : NULL,
				   &unlogged))
		return result;
	if (result)
		fprintf(trace->messages, "fay: %s\n", unlogged.message);
	else
		*error = unlogged;
	return error->code;
}

static int verify_image(struct trace *trace, struct fay_error *error)
{
	uint64_t since = fay_monotonic();
	int result = fay_trust_log_begin(&trace->log, error);
	if (result)
		return result;
	result = verify(trace, error);
	trace->verified = true;
	fay_trace_stage(trace, "verify", since);
	return log_verdict(trace, &trace->verdict, result, error);
}

int fay_trace_side_image(struct trace *trace, struct fay_error *error)
{
	struct fay_policy policy;
	if (fay_trust_policy_read(trace->policy_path, &policy, trace->log.policy, error) ||
	    compile_for_kernel(trace, &trace->side_image, error))
		return error->code;
	uint64_t since = fay_monotonic();
	int result =
		verify_for_kernel(trace, &policy, &trace->side_image, &trace->side_verdict, error);
	trace->side_verified = true;
	fay_trace_stage(trace, "verify for the kernel", since);
	return log_verdict(trace, &trace->side_verdict, result, error);
}

/* As if the image had it. */
static const struct fay_schema_column *computed_column(const struct fay_plan_column *column,
						       struct fay_schema_column *made)
{
	*made = (struct fay_schema_column){ .name = column->name,
					    .type = (uint16_t)column->type,
					    .merge = (uint16_t)column->merge,
					    .offset = column->offset,
					    .size = FAY_RESULT_COMPUTED_SIZE };
	return made;
}

/* Of values whose names another column decides, which that is. */
static void find_deciding(struct fay_view *view)
{
	for (uint32_t c = 0; c < view->column_count; c++) {
		struct fay_view_column *column = &view->columns[c];
		if (!column->enumeration || !column->enumeration->by)
			continue;
		for (uint32_t other = 0; other < view->column_count && !column->by; other++)
			if (view->columns[other].enumeration == column->enumeration->by)
				column->by = view->columns[other].column;
	}
}

static int view_of_state(struct trace *trace, uint32_t index, struct fay_view *view)
{
	const struct fay_schema *schema = trace->shown;
	const struct fay_schema_state *state = &schema->states[index];
	view->state = index;
	view->streams = state->kind == FAY_STATE_STREAM && !(trace->plan && trace->plan->collects);
	view->ordered = trace->plan && trace->plan->ordered;
	view->row_size = state->row_size;
	view->title = trace->plan ? NULL : state->name;
	view->column_count =
		trace->plan ? trace->plan->column_count : (uint32_t)state->keys + state->values;
	view->columns = calloc(view->column_count + 1u, sizeof(*view->columns));
	view->computed = calloc(view->column_count + 1u, sizeof(*view->computed));
	if (!view->columns || !view->computed)
		return FAY_E_LIMIT;
	for (uint32_t c = 0; c < view->column_count; c++) {
		uint32_t position = c;
		if (trace->plan) {
			const struct fay_plan_column *column = &trace->plan->columns[c];
			position = column->index;
			if (column->source == FAY_PLAN_VALUE)
				position += state->keys;
		}
		if (trace->plan && trace->plan->columns[c].source == FAY_PLAN_COMPUTED)
			view->columns[c].column =
				computed_column(&trace->plan->columns[c], &view->computed[c]);
		else
			view->columns[c].column = &schema->columns[state->first_column + position];
		view->columns[c].enumeration =
			trace->plan ? trace->plan->columns[c].enumeration : NULL;
		view->columns[c].address = trace->plan && trace->plan->columns[c].address;
		view->columns[c].symbol = trace->plan && trace->plan->columns[c].symbol;
		view->columns[c].stack_frames =
			trace->plan ? trace->plan->columns[c].stack_frames : 0;
		view->columns[c].kernel_stack = trace->plan && trace->plan->columns[c].kernel_stack;
		view->columns[c].pointer = trace->plan && trace->plan->columns[c].pointer;
		view->columns[c].maybe_pointer =
			trace->plan && trace->plan->columns[c].maybe_pointer;
		view->columns[c].nanoseconds = trace->plan && trace->plan->columns[c].nanoseconds;
		view->columns[c].orders = trace->plan && trace->plan->columns[c].orders;
		view->columns[c].is_quantile = trace->plan && trace->plan->columns[c].is_quantile;
		view->columns[c].quantile = trace->plan ? trace->plan->columns[c].quantile : 0;
		view->columns[c].name =
			trace->plan ? trace->plan->columns[c].name : view->columns[c].column->name;
	}
	find_deciding(view);
	return FAY_OK;
}

static int make_views(struct trace *trace, struct fay_error *error)
{
	trace->shown = trace->schema;
	if (trace->plan &&
	    (trace->plan->joins || trace->plan->window_events || trace->plan->regroups)) {
		fay_plan_result_schema(trace->plan, &trace->result_schema);
		trace->shown = &trace->result_schema;
	}
	trace->view_count = trace->plan ? 1 : trace->shown->state_count;
	trace->views = calloc(trace->view_count + 1, sizeof(*trace->views));
	for (size_t i = 0; trace->views && i < trace->view_count; i++) {
		if (view_of_state(trace, (uint32_t)i, &trace->views[i]))
			return fay_error_set(error, FAY_E_LIMIT, "out of memory");
	}
	return trace->views ? FAY_OK : fay_error_set(error, FAY_E_LIMIT, "out of memory");
}

int fay_trace_image(struct trace *trace, struct fay_error *error)
{
	int result;
	if (trace->query && (result = plan_query(trace, error)))
		return result;
	if ((result = fay_trace_stacks_check(trace, error)))
		return result;
	if (trace->query && ((result = fay_trace_native_prepare(trace, error)) ||
			     (result = fay_trace_find_processes(trace, error))))
		return result;
	if (trace->query && trace->native && trace->command &&
	    (result = fay_trace_spawn(trace, error)))
		return result;
	if (fay_trace_is_kernel(trace)) {
		result = fay_trace_bpf_prepare(trace, error);
		return result ? result : make_views(trace, error);
	}
	if (fay_trace_is_mixed(trace) && !trace->native_side &&
	    (result = fay_trace_bpf_prepare(trace, error)))
		return result;
	trace->schema = &trace->verdict.schema;
	if (trace->image.data) {
		/* of a detached query */
	} else if (trace->query) {
		result = trace->native ? compile_for_kernel(trace, &trace->image, error)
				       : compile_plan(trace, error);
		if (result)
			return result;
	} else if ((result = read_image(trace, error))) {
		return result;
	}
	result = verify_image(trace, error);
	if (!result && !trace->query)
		(void)((result = fay_trace_native_prepare(trace, error)) ||
		       (result = fay_trace_find_processes(trace, error)));
	return result ? result : make_views(trace, error);
}
