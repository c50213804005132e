/* SPDX-License-Identifier: MIT */
/* A target process under command, and verdicts made by hand: what the verifier would say of the
 * probes in probes.S. */
#ifndef FAY_TESTS_LOADER_HARNESS_H
#define FAY_TESTS_LOADER_HARNESS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

#include <cmocka.h>

#include "fay/loader.h"

struct victim {
	pid_t pid;
	FILE *to, *from;
	char program[32];
	char answer[128];
};
void victim_start(struct victim *victim);
/* Another program that answers every line. */
void victim_start_program(struct victim *victim, const char *program);
void victim_end(struct victim *victim);
/* Sends a command; ask() also waits for the answer and returns its first number. */
void victim_tell(struct victim *victim, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
uint64_t victim_answer(struct victim *victim);
uint64_t victim_ask(struct victim *victim, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* One probe of probes.S with its facts, on `pattern`. */
struct hand_verdict {
	struct fay_verdict verdict;
	struct fay_probe_facts probes[4];
	struct fay_schema_state states[1];
	uint8_t bytes[1024];
};
enum hand_probe { PROBE_COUNT, PROBE_SLOW, PROBE_GREEDY, PROBE_EVENT, PROBE_EMIT };
void hand_verdict(struct hand_verdict *hand, enum hand_probe which, const char *pattern);
/* A further entry for the same code. */
void hand_verdict_also(struct hand_verdict *hand, const char *pattern);

/* Sum of local[0] over all slots; of pid only, if not 0. */
uint64_t total(struct fay_session *session, uint32_t pid);
uint64_t lost_reentrant(struct fay_session *session);
uint32_t slots_used(struct fay_session *session);
uint64_t *local_of(struct fay_session *session, uint32_t slot);

/* Attaches and asserts success. */
struct fay_session *attach(struct victim *victim, struct fay_target **target,
			   const struct hand_verdict *hand);
/* files NULL: the process is planned for itself. */
struct fay_session *attach_sharing(struct fay_files *files, pid_t pid,
				   const struct hand_verdict *hand,
				   struct fay_attach_options options, struct fay_target **target);
void detach(struct fay_session *session, struct fay_target *target);
size_t point_named(const struct fay_session *session, const char *name);
/* Mappings in the process whose line contains `text`. */
unsigned mappings(pid_t pid, const char *text);
/* The target's text is what it was, and nothing of ours is mapped there. */
void assert_clean(struct victim *victim, uint64_t checksum);

/* One session on a target of its own. */
struct scene {
	struct victim victim;
	struct fay_target *target;
	struct fay_session *session;
	struct hand_verdict hand;
	uint64_t checksum; /* of the target's text before */
};
void scene_start(struct scene *scene, enum hand_probe which, const char *pattern);
/* Detaches, asserts that the target is clean, ends it. */
void scene_end(struct scene *scene);

#endif
