/* SPDX-License-Identifier: MIT */
/* What is left of traces, process by process. */
#include <inttypes.h>
#include <stdio.h>

#include "process/process.h"

#include "doctor_parts.h"

void fay_doctor_leftovers(const struct fay_leftovers *all, bool json)
{
	static const char *const states[] = { [FAY_OWNER_DEAD] = "is gone",
					      [FAY_OWNER_UNKNOWN] = "may still run",
					      [FAY_OWNER_LIVES] = "runs" };
	static const char *const words[] = { [FAY_OWNER_DEAD] = "dead",
					     [FAY_OWNER_UNKNOWN] = "unknown",
					     [FAY_OWNER_LIVES] = "lives" };
	for (size_t i = 0; i < all->count; i++) {
		const struct fay_installed_session *session = &all->items[i].session;
		char space[64] = "";
		if (all->items[i].foreign) {
			printf(json ? "{\"type\":\"session\",\"pid\":%d,\"state\":\"foreign\"}\n"
				    : "                     process %d: code of another version of "
				      "fay, whose `fay doctor` shows more\n",
			       all->items[i].pid);
			continue;
		}
		if (json) {
			printf("{\"type\":\"session\",\"pid\":%d,\"places\":%zu,\"fay\":%d,\"pid_"
			       "namespace\":%" PRIu64 ",\"state\":\"%s\"}\n",
			       all->items[i].pid, session->points, session->owner,
			       session->owner_namespace, words[session->owner_state]);
			continue;
		}
		if (session->owner_namespace)
			snprintf(space, sizeof(space), " of PID namespace %" PRIu64,
				 session->owner_namespace);
		printf("                     process %d, %zu patch point%s: fay %d%s %s\n",
		       all->items[i].pid, session->points, session->points == 1 ? "" : "s",
		       session->owner, space, states[session->owner_state]);
	}
}
