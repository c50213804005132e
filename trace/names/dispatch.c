/* SPDX-License-Identifier: MIT */
/* How probes are dispatched: what `fay explain`, `fay trace --verbose` and `--timing` say of it. */
#include <stdio.h>
#include <string.h>

#include "fay/bpf.h"
#include "loader/suggest/suggest.h"
#include "names.h"

static bool runs_in_fay(const struct fay_probe_facts *facts)
{
	return facts->kind == FAY_PROBE_BEGIN || facts->kind == FAY_PROBE_END ||
	       facts->kind == FAY_PROBE_TIMER;
}

void fay_dispatch_print(FILE *out, const char *indent, const struct fay_verdict *verdict)
{
	struct fay_dispatch dispatch;
	fay_dispatch_choose(verdict, &dispatch);
	for (uint32_t i = 0; i < verdict->probe_count; i++) {
		fprintf(out, "%sprobe %u: ", indent, i);
		if (runs_in_fay(&verdict->probes[i]))
			fprintf(out, "runs in fay itself\n");
		else if (dispatch.inlined[i])
			fprintf(out, "inlined into the trampoline, %u bytes%s; %s\n",
				dispatch.size[i], dispatch.leaves[i] ? ", the rest called" : "",
				dispatch.unguarded ? "needs no guard against reentrance"
						   : "guarded against reentrance");
		else
			fprintf(out, "called from the trampoline; guarded against reentrance\n");
	}
}

void fay_dispatch_print_json(FILE *out, const struct fay_verdict *verdict)
{
	struct fay_dispatch dispatch;
	fay_dispatch_choose(verdict, &dispatch);
	for (uint32_t i = 0; i < verdict->probe_count; i++) {
		const struct fay_probe_facts *facts = &verdict->probes[i];
		fprintf(out,
			"{\"type\":\"probe\",\"probe\":%u,\"kind\":\"%s\",\"strategy\":\"%s\","
			"\"bytes\":%u,\"guarded\":%s}\n",
			i, fay_probe_kind_name(facts->kind),
			runs_in_fay(facts)    ? "in fay"
			: dispatch.inlined[i] ? "inlined"
					      : "called",
			dispatch.size[i],
			dispatch.unguarded || runs_in_fay(facts) ? "false" : "true");
	}
}

static void print_point(FILE *out, pid_t pid, const struct fay_function *function, bool shared)
{
	fprintf(out, "{\"type\":\"point\",\"process\":%d,\"module\":", (int)pid);
	fay_json_string(out, function->module, strlen(function->module));
	fay_json_text(out, ",\"function\":", function->name);
	fprintf(out, ",\"trampoline\":\"%s\"}\n", shared ? "shared" : "own");
}

/* Points that have traps, which follow each other. */
static size_t count_trapped(const struct fay_session *session)
{
	size_t count = 0;
	for (size_t i = 0; i < fay_session_trap_count(session); i++)
		count += !i || fay_session_trap(session, i)->skipped !=
				       fay_session_trap(session, i - 1)->skipped;
	return count;
}

static bool has_trap(const struct fay_session *session, size_t skipped)
{
	for (size_t i = 0; i < fay_session_trap_count(session); i++)
		if (fay_session_trap(session, i)->skipped == skipped)
			return true;
	return false;
}

static void print_skipped(FILE *out, pid_t pid, const struct fay_skipped_point *skipped, bool trap)
{
	fprintf(out, "{\"type\":\"not_traced\",\"process\":%d,\"function\":", (int)pid);
	fay_json_string(out, skipped->function, strlen(skipped->function));
	fay_json_text(out, ",\"reason\":", skipped->reason);
	fputs(trap ? ",\"trap\":true}\n" : "}\n", out);
}

static void print_planned(FILE *out, bool json, pid_t pid, const struct fay_session *session)
{
	size_t points = fay_session_point_count(session),
	       skipped = fay_session_skipped_count(session), traps = count_trapped(session),
	       shared = fay_session_shared_points(session);
	if (!json) {
		fprintf(out,
			"  process %d: %zu trampolines of one function each, %zu functions that "
			"share one, %zu by traps in the kernel, %zu that cannot be traced\n",
			(int)pid, points - shared, shared, traps, skipped - traps);
		return;
	}
	for (size_t i = 0; i < points; i++)
		print_point(out, pid, fay_session_point(session, i),
			    fay_session_point_is_shared(session, i));
	for (size_t i = 0; i < skipped; i++)
		print_skipped(out, pid, fay_session_skipped(session, i), has_trap(session, i));
}

/* What would be done there; both are to be given back, whatever comes. */
static int plan_points(pid_t pid, const struct fay_verdict *verdict, uint32_t traps,
		       struct fay_target **target, struct fay_session **session,
		       struct fay_error *error)
{
	struct fay_attach_options options = { .size = sizeof(options),
					      .plan_only = true,
					      .traps = traps };
	int code = fay_target_open_pid(pid, target, error);
	if (!code && (code = fay_session_attach(*target, verdict, &options, session, error)))
		fay_suggest(*target, error);
	return code;
}

int fay_points_count(pid_t pid, const struct fay_verdict *verdict, uint32_t traps,
		     struct fay_points *points, struct fay_error *error)
{
	struct fay_target *target = NULL;
	struct fay_session *session = NULL;
	int code = plan_points(pid, verdict, traps, &target, &session, error);
	if (!code) {
		size_t trapped = count_trapped(session);
		points->functions += fay_session_point_count(session) + trapped;
		points->traps += trapped;
		points->untraced += fay_session_skipped_count(session) - trapped;
	}
	fay_session_destroy(session);
	fay_target_close(target);
	return code;
}

void fay_points_print(FILE *out, FILE *messages, bool json, pid_t pid,
		      const struct fay_verdict *verdict, uint32_t traps)
{
	struct fay_target *target = NULL;
	struct fay_session *session = NULL;
	struct fay_error error;
	if (plan_points(pid, verdict, traps, &target, &session, &error))
		fprintf(messages, "fay: %s\n", error.message);
	else
		print_planned(out, json, pid, session);
	fay_session_destroy(session);
	fay_target_close(target);
}
