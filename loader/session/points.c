/* SPDX-License-Identifier: MIT */
/* What a session's plan came to: the points that are patched, those that are not, and where the
 * kernel may trap instead. */
#include "fay/bpf.h"
#include "session.h"

size_t fay_session_point_count(const struct fay_session *session)
{
	return session->points;
}

size_t fay_session_cost_count(const struct fay_session *session)
{
	return session->points + session->beside;
}

const struct fay_function *fay_session_point(const struct fay_session *session, size_t index)
{
	static const struct fay_function unknown = { .module = "?", .name = "?", .path = "?" };

	return fay_session_own(session) ? &session->plan.points[index].function : &unknown;
}

bool fay_session_point_is_shared(const struct fay_session *session, size_t index)
{
	return fay_session_own(session) && session->plan.points[index].shared;
}

size_t fay_session_skipped_count(const struct fay_session *session)
{
	return session->plan.skipped_count;
}

const struct fay_skipped_point *fay_session_skipped(const struct fay_session *session, size_t index)
{
	return &session->plan.skipped[index];
}

size_t fay_session_trap_count(const struct fay_session *session)
{
	return session->plan.trap_count;
}

const struct fay_trap *fay_session_trap(const struct fay_session *session, size_t index)
{
	return &session->plan.traps[index];
}

size_t fay_session_shared_points(const struct fay_session *session)
{
	return session->plan.shared_points;
}
