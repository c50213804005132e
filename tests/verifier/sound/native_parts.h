/* SPDX-License-Identifier: MIT */
/* What native.c, which places images and starts probes, and native_steps.c, which looks at each
 * instruction in a signal handler, share. */
#ifndef FAY_TESTS_NATIVE_PARTS_H
#define FAY_TESTS_NATIVE_PARTS_H

#include <signal.h>
#include <stdbool.h>
#include <ucontext.h>

#include "native.h"
#include "soundness.h"
#include "verifier/prover/graph/cfg.h"

#define PAGE 4096u
#define INT3 0xccu
#define NOWHERE 0x400000000000u /* helpers and the caller: nothing is mapped here */
#define RETURN_ADDRESS (NOWHERE + PAGE)

enum { AT_EVENT, AT_LOCAL, AT_GLOBAL, AT_STACK, AT_COUNT };

/* A region's pages between two that are not accessible. */
struct place {
	uint8_t *pages;
	size_t page_bytes;
	uint8_t *bytes; /* where the region begins now */
	size_t size;
	bool writable;
};

struct native_run {
	struct place at[AT_COUNT];
	uint8_t *code;  /* the layout, in place: .text is int3 but for one instruction */
	uint8_t *patch; /* the same, writable */
	const struct fay_image *image;
	const struct fay_cfg *cfg;
	const struct fay_probe_facts *facts;
	struct soundness_random random, secret; /* secret: what must not show in the results */
	bool vectors_used;
	uint64_t rsp; /* at entry */
	uint64_t steps;
	const struct fay_insn *last; /* which instruction is there */
	greg_t entry[NGREG];
	uint8_t vectors[256];
	uint32_t mxcsr, control;
	volatile bool armed, running;
	gregset_t home;
	char complaint[512]; /* the broken promise, or empty */
};
extern struct native_run now;

/* All of .text is int3 again. */
void native_hide(void);
void native_scramble(struct soundness_random *random, void *bytes, size_t size);

#endif
