/* SPDX-License-Identifier: MIT */
/* What a trace writes into the log: each verdict, and each process before anything is installed in
 * it. Where the log cannot be written, nothing is traced. */
#include <string.h>

#include "process/process.h"
#include "trust.h"

int fay_trust_log_begin(struct fay_trust_log *log, struct fay_error *error)
{
	struct fay_trust_store store;
	int result;
	if (log->begun)
		return FAY_OK;
	result = fay_trust_store_read(FAY_TRUST_STORE, &store, error);
	if (!result)
		strcpy(log->path, store.log);
	fay_trust_store_deinit(&store);
	log->begun = !result;
	return result;
}

static int add(const struct fay_trust_log *log, const char *event, const char *text,
	       struct fay_error *error)
{
	struct fay_log_entry entry = {
		.event = event, .image = log->image, .policy = log->policy, .text = text
	};
	return *log->path ? fay_log_add(log->path, &entry, error) : FAY_OK;
}

int fay_trust_log_verdict(struct fay_trust_log *log, const uint8_t image[FAY_TRUST_DIGEST],
			  const char *what, const struct fay_error *refusal,
			  struct fay_error *error)
{
	char text[2700]; /* longer than a line has room for */
	memcpy(log->image, image, sizeof(log->image));
	snprintf(text, sizeof(text), "%.1000s%s%s%s%s%s%.1000s", what, *log->who ? " for " : "",
		 log->who, *log->by ? ", signed by " : "", log->by, refusal ? ": " : "",
		 refusal ? refusal->message : "");
	return add(log, refusal ? "refused" : "accepted", text, error);
}

int fay_trust_log_install(const struct fay_trust_log *log, const char *where,
			  struct fay_error *error)
{
	char text[1280];
	snprintf(text, sizeof(text), "%s%s%s", where, *log->who ? " for " : "", log->who);
	return add(log, "install", text, error);
}

int fay_trust_log_permit(void *context, pid_t pid, struct fay_error *error)
{
	char comm[FAY_COMM_SIZE] = "", where[64];
	fay_process_name(pid, comm);
	snprintf(where, sizeof(where), "process %d %s", (int)pid, comm);
	return fay_trust_log_install(context, where, error);
}
