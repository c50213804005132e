/* SPDX-License-Identifier: MIT */
/* The end of a trace: detach, the final result, what was lost. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "session.h"

#define DETACH_TRIES 5

/* All sessions of a process at once, with that by which it waits. It is a first session's number;
 * false: an earlier one's process is the same. */
static bool sessions_of_first(const struct trace *trace, size_t first, struct fay_session **list,
			      size_t *count)
{
	pid_t pid = fay_target_pid(trace->targets[first]);
	*count = 0;
	for (size_t i = 0; i < trace->session_count; i++) {
		if (fay_target_pid(trace->targets[i]) != pid)
			continue;
		if (i < first)
			return false;
		list[(*count)++] = trace->sessions[i];
	}
	for (size_t i = 0; i < trace->watched_count; i++)
		if (trace->watched[i].pid == pid && trace->watched[i].waits)
			list[(*count)++] = trace->watched[i].waits;
	return true;
}

static void say_left_mapped(const struct trace *trace, struct fay_session *const *list,
			    size_t count, pid_t pid)
{
	bool left = false;
	for (size_t i = 0; i < count; i++)
		left |= fay_session_left_mapped(list[i]);
	if (left)
		fprintf(trace->messages,
			"fay: process %d: memory of the trace stays mapped, harmlessly, since a "
			"thread may still be inside it; the next trace, or `fay doctor --clean`, "
			"removes it once no thread is\n",
			pid);
}

/*
 * A target that cannot be stopped just now (a debugger holds it, a vfork lasts) is tried again. If
 * it stays so, it is said which process is still patched; its probes go on counting into memory
 * that nobody reads.
 */
static int detach_all(struct trace *trace, struct fay_error *error)
{
	struct fay_session *list[FAY_TARGETS_MAX + 1];
	bool gone[FAY_TARGETS_MAX];
	uint64_t since = fay_monotonic();
	size_t count;
	int result = FAY_OK;
	fay_follow_end(&trace->follower);
	/* of many programs in one look at all processes */
	fay_sessions_let_go(trace->sessions, trace->session_count, gone);
	for (size_t i = 0; i < trace->session_count; i++) {
		struct fay_error one;
		int tries = 0;
		if (!sessions_of_first(trace, i, list, &count))
			continue;
		while (fay_sessions_detach(list, count, &one) && ++tries < DETACH_TRIES)
			usleep(200000);
		if (tries < DETACH_TRIES) {
			say_left_mapped(trace, list, count, fay_target_pid(trace->targets[i]));
			continue;
		}
		result = fay_error_set(error, FAY_E_INTERNAL,
				       "process %d is STILL PATCHED (it runs correctly; `fay "
				       "doctor` lists it): %s",
				       fay_target_pid(trace->targets[i]), one.message);
		fprintf(trace->messages, "fay: %s\n", error->message);
	}
	for (size_t i = 0; i < trace->watched_count; i++)
		fay_trace_modules_leave(trace, &trace->watched[i]);
	fay_trace_stage(trace, "detach", since);
	return result;
}

/* Threads of forked children that took a slot, one after the other: their calls are not part of the
 * result. */
static size_t child_threads(const struct trace *trace)
{
	size_t count = 0;
	for (size_t i = 0; i < trace->session_count; i++) {
		size_t size;
		const struct fay_shm_control *shm = fay_session_shm(trace->sessions[i], &size);
		if (!shm || size < sizeof(*shm) ||
		    fay_trace_counts_children(trace, fay_target_pid(trace->targets[i])))
			continue;
		uint64_t stride = shm->slot_stride, offset = shm->slots_offset,
			 used = shm->slot_next;
		for (uint64_t s = 0; s < used && s < shm->slot_max; s++, offset += stride) {
			if (stride < FAY_SLOT_HEADER || offset > size - FAY_SLOT_HEADER ||
			    offset % 8)
				break; /* the target wrote over its control page */
			const struct fay_slot_header *slot =
				(const void *)((const char *)shm + offset);
			count += slot->pid && (slot->pid != shm->target_pid ||
					       slot->process > FAY_PROCESS_TRACED)
					 ? slot->taken
					 : 0;
		}
	}
	return count;
}

static uint64_t lost_events(const struct fay_result *result)
{
	return result->events_lost_reentrant + result->events_lost_full +
	       result->events_lost_no_slot + result->calls_lost;
}

/* How the command ended that was started: its exit status is not fay's. */
static void print_command_end(const struct trace *trace)
{
	if (!trace->child_ended)
		return;
	if (WIFSIGNALED(trace->child_status))
		fprintf(trace->json, ",\"signal\":%d", WTERMSIG(trace->child_status));
	else
		fprintf(trace->json, ",\"exit_status\":%d", WEXITSTATUS(trace->child_status));
}

static bool counts_late(const struct trace *trace)
{
	uint32_t offset;
	return trace->plan && trace->plan->window_step && !trace->plan->joins && !trace->root &&
	       !fay_trace_is_file(trace) && fay_plan_window_count(trace->plan, &offset);
}

/* Whether a thread came to a probe, whatever that made of it; who has written over the control page
 * is believed to have. */
static bool any_thread(const struct trace *trace)
{
	for (size_t i = 0; i < trace->session_count; i++) {
		size_t size;
		const struct fay_shm_control *shm = fay_session_shm(trace->sessions[i], &size);
		if (shm && size >= sizeof(*shm) &&
		    __atomic_load_n(&shm->slot_next, __ATOMIC_RELAXED))
			return true;
	}
	return false;
}

/* Nothing called the function, and there is one of that name in another module, as malloc is where
 * programs bring an allocator of their own. Whether that is said. */
static bool print_namesake(const struct trace *trace, const struct fay_result *result)
{
	bool said = false;
	char module[256], function[256], pattern[260];
	struct fay_function_list found;
	struct fay_error error;
	if (result->threads || any_thread(trace) || !trace->session_count || !trace->plan ||
	    !trace->plan->pattern || trace->plan->source_count != 1 || fay_trace_is_kernel(trace) ||
	    fay_pattern_split(trace->plan->pattern, module, function, &error) ||
	    strpbrk(module, "*?[") || strpbrk(function, "*?[:@"))
		return false;
	snprintf(pattern, sizeof(pattern), "*!%s", function);
	if (fay_target_find(trace->targets[0], pattern, &found, &error))
		return false;
	for (size_t i = 0; i < found.count && !said; i++) {
		const struct fay_function *other = &found.items[i];
		if (!strcmp(other->module, module) || strcmp(other->name, function))
			continue;
		fprintf(trace->messages,
			"fay: nothing called %s!%s; %s!%s is another function, and '*!%s' all of "
			"that name\n",
			module, function, other->module, function, function);
		said = true;
	}
	fay_function_list_deinit(&found);
	return said;
}

/* A server's first process may only wait for its workers. */
static void print_children(const struct trace *trace)
{
	size_t named = fay_trace_is_kernel(trace) ? trace->pid_count : trace->pid_named;
	for (size_t i = 0; i < named; i++) {
		size_t children = fay_process_children(trace->pids[i]);
		if (children)
			fprintf(trace->messages,
				"fay: process %d has %zu child%s, not traced unless named, too: by "
				"-p, or all of a name by --comm\n",
				trace->pids[i], children, children == 1 ? "" : "ren");
	}
}

/* Why there is no result: not for what the query asks of the events, there were none. */
static void print_silence(const struct trace *trace, const struct fay_result *result)
{
	size_t points = 0;
	bool kernel = fay_trace_is_kernel(trace);
	for (size_t i = 0; i < trace->session_count; i++)
		points += fay_session_point_count(trace->sessions[i]);
	if (result->threads || any_thread(trace) || trace->rows_shown ||
	    trace->collected.row_count || (!points && !kernel) || trace->traps.set || trace->root ||
	    fay_trace_is_file(trace) || print_namesake(trace, result))
		return;
	if (!kernel)
		fputs("fay: nothing that is traced was called or reached meanwhile\n",
		      trace->messages);
	print_children(trace);
}

void fay_trace_print_end(struct trace *trace, const struct fay_result *result)
{
	size_t children = child_threads(trace);
	uint64_t lost = lost_events(result), late = fay_trace_modules_late(trace);
	if (fay_trace_is_file(trace))
		lost = 0;
	bool cut_off = false, programs = fay_trace_children_executed(trace);
	for (unsigned side = 0; fay_trace_is_file(trace) && side < trace->plan->source_count;
	     side++) {
		lost += fay_saved_header(fay_plan_saved(trace->plan, side))->events_lost;
		cut_off |= fay_saved_cut_off(fay_plan_saved(trace->plan, side));
	}
	fay_trace_budget_print(trace);
	if (trace->json) {
		fay_json_text(trace->json, "{\"type\":\"end\",\"reason\":", trace->end_reason);
		print_command_end(trace);
		fay_trace_join_print_end(trace);
		fay_trace_counted_print_end(trace);
		fay_trace_texts_print_end(trace);
		if (cut_off)
			fputs(",\"cut_off\":true", trace->json);
		if (programs)
			fputs(",\"child_programs_not_traced\":true", trace->json);
		if (trace->traps.set)
			fprintf(trace->json, ",\"traps\":%zu,\"traps_left_out\":%zu",
				trace->traps.set, trace->traps.left_out);
		if (result->calls_jumped)
			fprintf(trace->json, ",\"calls_left_by_jump\":%" PRIu64,
				result->calls_jumped);
		if (counts_late(trace))
			fprintf(trace->json, ",\"events_late\":%" PRIu64, trace->events_late);
		fprintf(trace->json,
			",\"threads\":%u,\"events_lost\":%" PRIu64 ",\"lost_reentrant\":%" PRIu64
			",\"lost_full\":%" PRIu64 ",\"lost_no_slot\":%" PRIu64
			",\"lost_calls\":%" PRIu64
			",\"child_threads_not_counted\":%zu,\"modules_late\":%" PRIu64 "}\n",
			result->threads, lost, result->events_lost_reentrant,
			result->events_lost_full, result->events_lost_no_slot, result->calls_lost,
			children, late);
	}
	if (!trace->json) {
		fay_trace_join_print_end(trace);
		fay_trace_counted_print_end(trace);
		fay_trace_texts_print_end(trace);
	}
	if (fay_trace_is_file(trace)) {
		fprintf(trace->messages, "fay: %s\n", trace->end_reason);
		return;
	}
	fprintf(trace->messages, "fay: %s; ", trace->end_reason);
	/* Rows of kernel events come through one ring, whatever the processor. */
	if (result->threads || !fay_trace_is_kernel(trace))
		fprintf(trace->messages, "%u %s%s%s counted, ", result->threads,
			fay_trace_is_kernel(trace) ? "processor" : "thread",
			result->threads == 1 ? "" : "s",
			trace->traps.set ? " and processors with traps" : "");
	fprintf(trace->messages, "%" PRIu64 " event%s lost", lost, lost == 1 ? "" : "s");
	if (lost)
		fprintf(trace->messages,
			" (%" PRIu64 " reentrant, %" PRIu64 " table or ring full, %" PRIu64
			" no thread slot, %" PRIu64 " calls without a record)",
			result->events_lost_reentrant, result->events_lost_full,
			result->events_lost_no_slot, result->calls_lost);
	fprintf(trace->messages, "\n");
	print_silence(trace, result);
	if (trace->events_late)
		fprintf(trace->messages,
			"fay: %" PRIu64 " event%s came late, more than %u s after the end of the "
			"newest window, and are in no window\n",
			trace->events_late, trace->events_late == 1 ? "" : "s",
			FAY_WINDOWS_HORIZON / 1000000000u);
	if (late)
		fprintf(trace->messages,
			"fay: %" PRIu64
			" time%s a program continued before fay had handled its change of modules; "
			"calls in these modules may be missing\n",
			late, late == 1 ? "" : "s");
	if (result->calls_jumped)
		fprintf(trace->messages,
			"fay: %" PRIu64 " call%s jumped to a function whose return is not traced: "
			"an event at the jump, with the time until then and without a return "
			"value; tracing that function, too, gives both\n",
			result->calls_jumped, result->calls_jumped == 1 ? "" : "s");
	if (children)
		fprintf(trace->messages,
			"fay: %zu thread%s of forked children called traced functions too; they "
			"are not counted; with --follow they are\n",
			children, children == 1 ? "" : "s");
	if (programs)
		fprintf(trace->messages,
			"fay: children executed other programs, which were not traced; "
			"with --follow they are\n");
}

static void print_timing(const struct trace *trace)
{
	if (!trace->timing)
		return;
	fprintf(trace->messages, "fay: timing\n");
	for (size_t i = 0; i < trace->stage_count; i++)
		fprintf(trace->messages, "  %-24s %9.3f ms\n", trace->stages[i].name,
			(double)trace->stages[i].nanoseconds / 1e6);
	fay_trace_report_dispatch(trace);
	uint64_t pause = 0;
	for (size_t i = 0; i < trace->session_count; i++) {
		uint64_t one = fay_session_longest_pause(trace->sessions[i]);
		pause = one > pause ? one : pause;
	}
	fprintf(trace->messages, "  %-24s %9.3f ms\n", "longest pause of target",
		(double)pause / 1e6);
}

/* Of a query that has its rows: what is lost from now on, while it is detached, it does not miss.
 * */
static bool losses_so_far(struct trace *trace, struct fay_result *losses)
{
	struct fay_error error;
	if (!fay_trace_has_all_rows(trace) ||
	    fay_trace_snapshot(trace, trace->views[0].state, losses, &error))
		return false;
	fay_result_deinit(losses);
	return true;
}

static void set_losses(struct fay_result *result, const struct fay_result *losses)
{
	result->events_lost_reentrant = losses->events_lost_reentrant;
	result->events_lost_full = losses->events_lost_full;
	result->events_lost_no_slot = losses->events_lost_no_slot;
	result->calls_lost = losses->calls_lost;
}

int fay_trace_finish(struct trace *trace, int result, struct fay_error *error)
{
	struct fay_result last = { 0 }, losses;
	struct fay_error detach_error;
	bool has_rows = losses_so_far(trace, &losses);
	fay_trace_traps_stop(trace);
	int detached = detach_all(trace, &detach_error);
	fay_trace_bpf_detach(trace);
	if (trace->functions && !detached)
		detached = fay_trace_native_detach(trace, &detach_error);
	for (size_t i = 0; i < trace->session_count; i++)
		fay_session_run(trace->sessions[i], FAY_PROBE_END);
	if (!trace->end_reason)
		trace->end_reason = "error";
	int drawn = FAY_OK;
	struct fay_error second, third;
	/* One thread's damaged ring does not keep the others' results from being shown. */
	if (fay_trace_poll(trace, &second) < 0 || fay_trace_bpf_poll(trace, &second))
		drawn = second.code;
	if (fay_trace_draw(trace, true, &last, &third) && !drawn) {
		second = third;
		drawn = second.code;
	}
	if (has_rows)
		set_losses(&last, &losses);
	if (!drawn || !result) {
		fay_trace_analyze_print(trace, &last, true);
		fay_trace_print_end(trace, &last);
	}
	if (!result && drawn) {
		*error = second;
		result = drawn;
	}
	if (!result)
		result = fay_trace_rows_error(trace, error);
	if (!result)
		result = fay_trace_check_output(trace, error);
	uint64_t rows = trace->rows_shown;
	if (trace->save && fay_trace_save_end(trace, lost_events(&last), &third)) {
		if (!result) {
			*error = third;
			result = error->code;
		}
	} else if (trace->save_path && !result) {
		fprintf(trace->messages, "fay: %" PRIu64 " events saved in %s%s\n", rows,
			trace->save_path,
			trace->save_bytes || trace->save_age ? " and the files before it" : "");
	}
	fay_result_deinit(&last);
	print_timing(trace);
	if (!result && detached) {
		*error = detach_error;
		result = detached;
	}
	return result;
}
