/* SPDX-License-Identifier: MIT */
/* A query's probe, run in this process by LLVM's JIT. */
#ifndef FAY_TESTS_QUERY_RUNNING_H
#define FAY_TESTS_QUERY_RUNNING_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <llvm-c/Core.h>
#include <llvm-c/ExecutionEngine.h>
#include <llvm-c/Target.h>

#include "fay/event.h"
#include "fay/query.h"

#define NOW 1700000000000000000u

typedef void probe_function(const struct fay_event *event, void *local, void *global);

/* A query compiled and ready to run, with its LOCAL. */
struct running {
	struct fay_plan *plan;
	LLVMContextRef context;
	LLVMExecutionEngineRef engine;
	probe_function *probe, *right, *third; /* right, third: of a join's other sources */
	unsigned char *local;
};

extern unsigned char *handed_on; /* rows of fay_flush and fay_emit */
extern size_t handed_count;
extern unsigned flushes;
extern bool no_room; /* for tables and texts */
/* If not NULL, called with what fay_emit gets. */
extern void (*on_emit)(uint64_t state, const uint8_t *row);
/* If not NULL, what fay_try_read does; else nothing can be read. */
extern int64_t (*on_try_read)(void *to, uint64_t size, uint64_t address);

void start(struct running *r, const char *text);
/* Its strings are read whole. */
void start_with_texts(struct running *r, const char *text);
void stop(struct running *r);
int64_t word(const void *row, uint32_t offset);
/* Once, before anything is started. */
int prepare_jit(void);
/* With random_state from FAY_SEED, which is printed; to set a group of tests up. */
int seed_and_prepare_jit(void **state);

#endif
