/* SPDX-License-Identifier: MIT */
/*
 * The room that describes images, untrusted: what one is (`fay inspect`), what changed from one
 * version to the next (`fay diff`), and the tightest policy for one (`fay policy`). All that is
 * known of the code comes from a run of the prover, whatever it decided. A mistake here misleads a
 * reader; it admits nothing.
 */
#ifndef FAY_VERIFIER_INSPECT_H
#define FAY_VERIFIER_INSPECT_H

#include "verifier/explain/explain.h"

/* What holds whenever a block begins, as the prover describes it: of registers and stack slots.
 * What says little is left out: what is as when the probe began (rdi: the event, rsi: local state,
 * rdx: global state, saved registers), and any number. */
#define FAY_INSPECT_FACTS 12u
struct fay_inspected_facts {
	uint32_t count;
	struct fay_fact at[FAY_INSPECT_FACTS];
};
/* Images of more blocks are described without. */
#define FAY_INSPECT_FACTS_BLOCKS 4096u

/* What is known of a basic block, over all probes that were proved. */
struct fay_inspected_block {
	uint64_t start, end; /* virtual addresses */
	bool known;          /* some such probe's graph has it */
	uint64_t runs;       /* in one call of a probe, at most; UINT64_MAX: more */
	bool head;           /* of a loop */
	uint64_t bound;      /* then: rounds each time the loop is entered, at most */
	/* If they were asked for, and known; or NULL. Of refused probes as far as they went. */
	struct fay_inspected_facts *facts;
};

struct fay_inspected_function {
	const char *name;
	uint64_t start, end;  /* virtual addresses */
	uint32_t first, last; /* its blocks that probes reach: first <= block < last */
};

struct fay_inspected {
	struct fay_verdict verdict; /* under the loosest policy */
	struct fay_run *run;        /* image, instructions, blocks; as far as it came */
	bool facts;                 /* those of blocks are asked for */
	uint32_t block_count;       /* as in run->cfg; 0: the code could not be decoded */
	struct fay_inspected_block *blocks;
	uint32_t function_count;
	struct fay_inspected_function *functions; /* by address, without gaps */
};

/* The standard policy, and what it does not allow but can. */
void fay_inspect_policy(struct fay_policy *policy);
/* policy: what is to be proved; limits of instructions and stack are left out where they are not
 * kept. facts: those of blocks, too. False: out of memory. To be released in any case. */
bool fay_inspect_init(struct fay_inspected *in, const void *bytes, size_t size,
		      const struct fay_policy *policy, bool facts);
void fay_inspect_deinit(struct fay_inspected *in);

/* facts.c: of all that is reached of the probe in hand; in->blocks are those of run->cfg. */
void fay_inspect_facts(struct fay_inspected *in, const struct fay_run *run);

/* Whether the image has code that was read; its tables were read if run->placed or it is accepted.
 */
static inline bool fay_inspect_has_code(const struct fay_inspected *in)
{
	return in->run->image.layout.bytes && in->run->image.text.size;
}
static inline bool fay_inspect_has_tables(const struct fay_inspected *in)
{
	return in->verdict.probe_count != 0;
}
static inline uint64_t fay_inspect_offset(const struct fay_inspected *in, uint64_t address)
{
	return address - in->run->image.text.start;
}
/* The function that holds an address in .text; NULL if there is none. */
const struct fay_inspected_function *fay_inspect_function(const struct fay_inspected *in,
							  uint64_t address);
/* Block `block` may be followed by this many blocks; each of them, k below that. Calls are followed
 * by what comes after them. */
uint32_t fay_inspect_successors(const struct fay_inspected *in, uint32_t block);
uint32_t fay_inspect_successor(const struct fay_inspected *in, uint32_t block, uint32_t k);

/* The functions (as numbers) and helpers that a function calls, each once. False: out of memory. */
struct fay_inspected_calls {
	uint32_t count, *functions; /* to be freed */
	uint32_t helpers;           /* mask of enum fay_helper, called through their slots */
	bool by_register;           /* a helper whose address is in a register */
};
bool fay_inspect_calls(const struct fay_inspected *in, uint32_t function,
		       struct fay_inspected_calls *calls);

/* Constants of .rodata that read as text: at least FAY_INSPECT_TEXT characters, NUL at the end. */
#define FAY_INSPECT_TEXT 4u
#define FAY_INSPECT_TEXTS 1000u
/* From *at (an offset, first 0) on; false: no more. *offset: in .rodata; the text ends with NUL. */
bool fay_inspect_text(const struct fay_inspected *in, uint64_t *at, uint64_t *offset,
		      const char **text);

/* One line of a function's code: the instruction's length, at least 1. */
struct fay_inspected_line {
	char text[96];                       /* in Intel's or AT&T's syntax, or why there is none */
	char note[200];                      /* what it calls or reads; "" */
	const struct fay_image_line *source; /* or NULL */
};
unsigned fay_inspect_line(const struct fay_inspected *in, uint64_t address, bool att,
			  struct fay_inspected_line *line);

void fay_inspect_print(FILE *out, const char *name, bool att, const struct fay_inspected *in);
/* One object on one line: docs/cli-json.md. */
void fay_inspect_print_json(FILE *out, const char *name, bool att, const struct fay_inspected *in);

#endif
