/* SPDX-License-Identifier: MIT */
/* What an estimate says of functions, kept from sessions that counted their calls: of a dry run,
 * which would be traced; which are called most. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "session.h"

static bool add(struct fay_trace_estimate *estimate, pid_t pid, const char *module,
		const char *name, const char *reason, uint64_t calls)
{
	struct fay_trace_would *would = &estimate->would[estimate->would_count];
	*would = (struct fay_trace_would){ .pid = pid, .calls = calls };
	if (asprintf(&would->function, "%s%s%s", module, *module ? "!" : "", name) < 0)
		return false;
	estimate->would_count++;
	would->reason = reason ? strdup(reason) : NULL;
	return !reason || would->reason;
}

int fay_trace_would_add(struct fay_trace_estimate *estimate, pid_t pid,
			const struct fay_session *session, const uint64_t *calls,
			struct fay_error *error)
{
	size_t points = fay_session_point_count(session),
	       skipped = fay_session_skipped_count(session);
	struct fay_trace_would *grown = reallocarray(
		estimate->would, estimate->would_count + points + skipped + 1, sizeof(*grown));
	bool ok = grown != NULL;
	if (ok)
		estimate->would = grown;
	for (size_t i = 0; ok && i < points; i++) {
		const struct fay_function *f = fay_session_point(session, i);
		ok = add(estimate, pid, f->module, f->name, NULL, calls[i]);
	}
	for (size_t i = 0; ok && i < skipped; i++) {
		const struct fay_skipped_point *point = fay_session_skipped(session, i);
		ok = add(estimate, pid, "", point->function, point->reason, 0);
	}
	return ok ? FAY_OK : fay_error_set(error, FAY_E_LIMIT, "out of memory");
}

void fay_trace_would_deinit(struct fay_trace_estimate *estimate)
{
	for (size_t i = 0; i < estimate->would_count; i++) {
		free(estimate->would[i].function);
		free(estimate->would[i].reason);
	}
	free(estimate->would);
	estimate->would = NULL;
	estimate->would_count = 0;
}

void fay_trace_estimate_describe(const struct fay_trace_estimate *estimate, char *text, size_t size)
{
	snprintf(text, size,
		 "the probes would take about %.0f%% of its processor time (%zu function%s, %.0f "
		 "calls a second at %.0f ns, most of them of %s)",
		 estimate->share * 100, estimate->functions, estimate->functions == 1 ? "" : "s",
		 (double)estimate->calls * 1e9 / (double)estimate->ns, estimate->call_ns,
		 estimate->most);
}

void fay_trace_estimate_print(const struct trace *trace)
{
	const struct fay_trace_estimate *estimate = &trace->estimate;
	if (!estimate->made || !trace->json)
		return;
	fprintf(trace->json,
		"{\"type\":\"estimate\",\"share\":%.6f,\"functions\":%zu,\"calls\":%" PRIu64
		",\"ns\":%" PRIu64 ",\"call_ns\":%.2f}\n",
		estimate->share, estimate->functions, estimate->calls, estimate->ns,
		estimate->call_ns);
}

#define NAMED 3u

void fay_trace_name_most(struct fay_trace_estimate *estimate, const struct fay_session *session,
			 const uint64_t *calls)
{
	size_t most[NAMED + 1], named = 0, count = fay_session_point_count(session), used = 0;
	char *text = estimate->most;
	uint64_t all = 0;
	for (size_t i = 0; i < count; i++) {
		size_t at = named;
		all += calls[i];
		for (; at > 0 && calls[most[at - 1]] < calls[i]; at--)
			most[at] = most[at - 1];
		most[at] = i;
		named += named < NAMED;
	}
	for (size_t k = 0; k < named && calls[most[k]] && used < sizeof(estimate->most); k++) {
		const struct fay_function *function = fay_session_point(session, most[k]);
		int length = snprintf(text + used, sizeof(estimate->most) - used,
				      "%s%s!%s (%.0f%%)", k ? ", " : "", function->module,
				      function->name, 100.0 * (double)calls[most[k]] / (double)all);
		used += length > 0 ? (size_t)length : 0;
	}
}
