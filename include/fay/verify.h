/* SPDX-License-Identifier: MIT */
/*
 * The verifier: from the bytes of an image alone, prove that its probes are confined, or say why
 * not.
 *
 * fay_verify() is a pure function of (image bytes, policy): no environment, no file, no clock
 * except for the limits. It depends on nothing of the project but include/fay/.
 */
#ifndef FAY_VERIFY_H
#define FAY_VERIFY_H

#include <stdio.h>

#include "fay/check.h"

#ifdef __cplusplus
extern "C" {
#endif

enum fay_outcome {
	FAY_ACCEPTED = 0,
	/* breaks a guarantee; with a counterexample where a solver found one */
	FAY_UNSAFE = 1,
	FAY_UNPROVED = 2,    /* could be safe; a fact is missing */
	FAY_UNSUPPORTED = 3, /* an instruction or construct that the verifier does not admit */
	FAY_MALFORMED = 4,   /* not an image */
	FAY_EXHAUSTED = 5,   /* a limit of the verifier or its solver was hit */
};

/*
 * The bytes that run: what the loader installs, and nothing else. `bytes` is the image's span from
 * its lowest to its highest used virtual address, gaps zeroed, helper slots zero. sha256 is over
 * exactly `bytes`; image_sha256 over the file.
 */
struct fay_layout {
	uint8_t *bytes; /* owned by the verdict */
	size_t size;
	uint32_t code_offset; /* .text in bytes */
	uint32_t code_size;
	uint32_t slot_count;
	struct {
		uint32_t offset; /* of the 8-byte slot */
		uint32_t helper; /* enum fay_helper */
	} slots[FAY_IMAGE_MAX_HELPERS];
	uint8_t sha256[32];
};

/* A state object with its strings resolved; columns[first_column ...] as in the image. */
struct fay_schema_column {
	const char *name;
	uint16_t type, merge;
	uint32_t offset, size;
	int64_t param[2];
};
struct fay_schema_state {
	const char *name;
	uint16_t kind, scope;
	uint32_t offset, size, rows, row_size, first_column;
	uint16_t keys, values;
};
struct fay_schema {
	uint32_t local_size, global_size;
	uint32_t state_count, column_count;
	struct fay_schema_state *states;
	struct fay_schema_column *columns;
};

#define FAY_MAX_PATH_STEPS 64
#define FAY_MAX_FACTS 24

struct fay_fact {
	const char *where, *value; /* "rax", "number in [0, 56], multiple of 8" */
};
enum fay_native { FAY_NATIVE_NOT_RUN, FAY_NATIVE_CONFIRMED, FAY_NATIVE_NOT_CONFIRMED };
struct fay_native_case;

/* Why an image was refused. Text members are NUL-terminated and owned by the verdict. */
struct fay_rejection {
	enum fay_rule rule;
	enum fay_outcome outcome;
	const char *function;     /* symbol or "probe N", may be NULL for a malformed image */
	uint64_t function_offset; /* bytes from that function's start */
	uint64_t text_offset;     /* bytes from the start of .text */
	const char *what;         /* one line: what is wrong here, concretely */
	/* UNPROVED: the fact that is missing and what is known instead; else NULL */
	const char *missing;
	/* lines around the place, the culprit marked with "=>"; may be NULL */
	const char *disassembly;
	/* one `name = value` a line: inputs that break the rule; NULL if none */
	const char *counterexample;
	bool replayed;           /* the counterexample was executed and did break the rule */
	const char *source_file; /* from .fay.lines; NULL if none */
	uint32_t source_line, source_column; /* from 1; 0 not known */
	/* that line of the source, if fay_verdict_source() found it; or NULL */
	const char *source_text;
	/* what to change, from docs/rules.md; NULL if the rule has none */
	const char *hint;
	const char *advice; /* what to change here, beyond the hint; or NULL */
	/* what is known of the registers and stack bytes that matter at this place */
	size_t fact_count;
	struct fay_fact facts[FAY_MAX_FACTS];
	/* the path in words, a line a block, repetitions together; or NULL */
	const char *steps;
	enum fay_native native;              /* what fay_verdict_replay() saw */
	const char *native_detail;           /* how, or why not; or NULL */
	struct fay_native_case *native_case; /* private */
	size_t path_length;                  /* text offsets of the basic blocks that lead there */
	uint64_t path[FAY_MAX_PATH_STEPS];
};

struct fay_verdict_jump {
	uint32_t from, to;
};

struct fay_verdict {
	enum fay_outcome outcome;
	uint8_t image_sha256[32];
	struct fay_rejection rejection; /* if not accepted */
	/* What else is refused, if it was looked for, as `fay verify` does: rule, place, what,
	 * missing, hint. */
	uint32_t other_count;
	struct fay_rejection *others;
	struct fay_layout layout; /* only if accepted */
	/* The manifest: of a refused image what its tables say, and of probes what was proved
	 * before the refusal. */
	struct fay_schema schema;
	uint32_t probe_count;
	struct fay_probe_facts *probes;
	/* Only if accepted: every place that an indirect jump may go to, both as offsets in the
	 * layout; in order. */
	uint32_t jump_count;
	struct fay_verdict_jump *jumps;
	/* Statistics, also for refused images as far as it went. */
	uint64_t instructions; /* decoded and reachable */
	uint64_t blocks;
	uint64_t loops;
	uint64_t obligations;           /* proof obligations raised */
	uint64_t obligations_by_solver; /* of these, proved by Z3 */
	/* questions that Z3 worked on; one asked again is not counted again */
	uint64_t solver_queries;
	uint64_t nanoseconds; /* of monotonic time */
	/* The checker accepted a certificate: one that the image brought (nothing was proved anew,
	 * and no solver was asked), or one that was found where the prover refuses. */
	bool certified;
	void *arena; /* private: owns all of the above */
};

/*
 * Verifies `size` bytes at `bytes`. policy may be NULL (default). If the policy allows
 * certificates, what brings one that the checker accepts is accepted by that alone. Never fails:
 * the outcome says all, out of memory included (EXHAUSTED). The verdict is the caller's, to be
 * released with fay_verdict_deinit().
 */
void fay_verify(const void *bytes, size_t size, const struct fay_policy *policy,
		struct fay_verdict *verdict);
/*
 * As fay_verify(); if the image is accepted, and the checker accepts the certificate that was made
 * of the proof, *image is a copy of the image that brings it (docs/certificate.md), *image_size
 * bytes, the caller's to free(). 0, or -1: the verdict says why the image is refused, or it is
 * accepted and *why says why there is no certificate (static text).
 */
int fay_verify_certify(const void *bytes, size_t size, const struct fay_policy *policy,
		       void **image, size_t *image_size, const char **why,
		       struct fay_verdict *verdict);
/*
 * As fay_verify(); writes every obligation as SMT-LIB 2 into directory smt2_dir (created;
 * docs/internals/smt2.md). Returns 0, or -1 with errno if it cannot write, EFBIG if there is more
 * than may be written; the verdict is there in any case.
 */
int fay_verify_smt2(const void *bytes, size_t size, const struct fay_policy *policy,
		    const char *smt2_dir, struct fay_verdict *verdict);
void fay_verdict_deinit(struct fay_verdict *verdict);
/*
 * Runs a counterexample that the interpreter replayed by the CPU, single-stepped in a child process
 * without system calls (verifier/explain/native.c). This runs hostile code: it is for commands, not
 * for those who only want a verdict, which it does not change.
 */
void fay_verdict_replay(struct fay_verdict *verdict);
/*
 * Looks in directory `source` for the source line that a rejection names, so that it is shown. The
 * name is the image's, so nothing outside `source` is opened, and nothing without this call.
 */
void fay_verdict_source(struct fay_verdict *verdict, const char *source);

/* "accepted" and the like; "?" out of range. */
const char *fay_outcome_name(enum fay_outcome outcome);

/* Report as people read it, or one JSON object on one line (docs/verify-json.md). `name` is the
 * image's name for messages. */
void fay_verdict_print(FILE *out, const char *name, const struct fay_verdict *verdict);
void fay_verdict_print_json(FILE *out, const char *name, const struct fay_verdict *verdict);

#ifdef __cplusplus
}
#endif

#endif
