/* SPDX-License-Identifier: MIT */
/*
 * The concrete interpreter of normalised instructions: replays counterexamples, and is compared
 * with the CPU by tests/verifier. Undefined flags come out as the CPU-independent marker in
 * flags_undefined.
 */
#ifndef FAY_VERIFIER_EXEC_H
#define FAY_VERIFIER_EXEC_H

#include "verifier/image/image.h"
#include "verifier/isa/isa.h"

/* One contiguous piece of memory in the interpreter's address space. */
struct fay_exec_region {
	uint64_t base;
	uint64_t size;
	uint8_t *bytes;
	bool writable;
	const char *name;
};

struct fay_machine {
	uint64_t gpr[16];
	uint64_t rip;
	uint8_t flags;           /* FLAG_* */
	uint8_t flags_undefined; /* FLAG_* whose value is not defined */
	struct fay_exec_region regions[8];
	unsigned region_count;
	uint64_t fault_address;
	unsigned fault_size;
};

enum fay_exec_status {
	EXEC_OK,
	/* outside every region (or not writable); fault_address, fault_size set */
	EXEC_FAULT_READ,
	EXEC_FAULT_WRITE,
	EXEC_DIVIDE,          /* #DE */
	EXEC_UNDEFINED_FLAGS, /* a condition read an undefined flag */
	EXEC_NOT_MODELLED,    /* a vector instruction: its numbers are not modelled */
	/* about to call a helper, through slot insn->target or register insn->src; rip not
	 * advanced: the caller emulates it */
	EXEC_CALL_HELPER,
};

/* Executes one instruction; advances rip. CALL pushes, RET pops through the regions. */
enum fay_exec_status fay_exec_step(struct fay_machine *machine, const struct fay_insn *insn);

struct fay_graph;
struct fay_cfg;
/* The node that a machine which has just run `node` is at, or FAY_NONE. */
uint32_t fay_exec_successor(const struct fay_graph *graph, const struct fay_cfg *cfg, uint32_t node,
			    const struct fay_machine *m);

#endif
