/* SPDX-License-Identifier: MIT */
/*
 * Whose turn it is to begin something in a process. A plan is made while the process runs, of code
 * that is read piece by piece, and rests on which traces are there: a jump of one that begins
 * meanwhile would be taken for the program's own. So while one session is planned and installed no
 * other one begins. One may end, and places that it has taken out may come back: what was under its
 * jumps is in its records, as they were when planning began.
 *
 * The turn is a lock (flock(2)) on the process's /proc/PID/task/PID/mem, which only those can open
 * who may trace it. It is in no file of anybody's, and goes with the last of those who hold it: if
 * fay is killed, with the keeper that finishes what fay began.
 *
 * Nobody waits for ever: one that is stopped, or is not ours, may hold it. Who has waited long
 * enough goes on without, and may find functions refused; the bytes are compared as always. So it
 * is for those who see the process through another /proc, as from another container.
 */
#include "session.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include "loader/process/process.h"

#define WAIT_MS 20000u
#define WAIT_LOADING_MS 500u /* the program waits, too */
#define STEP_US 1000u

/* What is returned is to be closed; -1: nothing. The turn may not have come. */
static int take(const struct fay_session *session)
{
	uint32_t wait_ms = session->plan.options.loading ? WAIT_LOADING_MS : WAIT_MS;
	uint64_t until = fay_loader_clock_ns() + wait_ms * 1000000ull;
	int turn = fay_process_memory(session->plan.pid, O_RDONLY);

	while (turn >= 0 && flock(turn, LOCK_EX | LOCK_NB) &&
	       (errno == EWOULDBLOCK || errno == EINTR) && fay_loader_clock_ns() < until &&
	       !fay_plan_abandoned(&session->plan))
		usleep(STEP_US);
	return turn;
}

int fay_turn_begin(struct fay_session *session,
		   int (*begin)(struct fay_session *session, struct fay_error *error),
		   struct fay_error *error)
{
	int turn = take(session);
	int code = fay_plan_abandoned(&session->plan)
			   ? fay_error_set(error, FAY_E_REFUSED, "interrupted")
			   : begin(session, error);

	if (turn >= 0)
		close(turn);
	return code;
}
