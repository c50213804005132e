/* SPDX-License-Identifier: MIT */
/*
 * Saved traces as a CTF trace (Common Trace Format 1.8.3, https://diamon.org/ctf/), which
 * babeltrace2, Trace Compass and others read: a directory with a description of the events,
 * `metadata`, and files of events. docs/saved-trace.md says what becomes of what.
 */
#ifndef FAY_CLI_CTF_H
#define FAY_CLI_CTF_H

#include "fay/error.h"
#include "fay/saved.h"

struct fay_ctf;

/* The directory is made, for its owner alone; one that is there must be empty, and keeps its mode.
 * */
int fay_ctf_create(const char *directory, struct fay_ctf **ctf, struct fay_error *error);
/* All events of a saved trace. FAY_E_REFUSED: it has none, or no times; `name` is for people. */
int fay_ctf_add(struct fay_ctf *ctf, struct fay_saved *saved, const char *name,
		struct fay_error *error);
/* Writes what is left, and the description; *events: how many there are. */
int fay_ctf_finish(struct fay_ctf *ctf, uint64_t *events, struct fay_error *error);
/* Without fay_ctf_finish(), or after it failed, what was written is removed. */
void fay_ctf_destroy(struct fay_ctf *ctf);

#endif
