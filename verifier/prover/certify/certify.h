/* SPDX-License-Identifier: MIT */
/*
 * The room that writes certificates: it walks through a probe's graph with the checker's own
 * machine, and finds what each join's list has to say by trying. Nothing here is believed.
 */
#ifndef FAY_VERIFIER_CERTIFY_H
#define FAY_VERIFIER_CERTIFY_H

#include "verifier/prover/graph/cfg.h"
#include "verifier/reader/reader.h"

struct fay_bytes {
	uint8_t *at;
	size_t size, room;
};

struct machine;

/* What the prover knows of a place at a node, as bounds of its unsigned and signed reading. */
struct fay_hint {
	uint64_t umin, umax;
	int64_t smin, smax;
};
typedef bool fay_hint_function(const void *context, uint32_t node, uint64_t location,
			       struct fay_hint *hint);

/* The hints of an invariant that was found: context is its struct fay_analysis. */
fay_hint_function fay_hint_analysis;

struct fay_certify;
/* Per node of the graph a mask of the registers that are still read, to be freed; or NULL. */
uint32_t *fay_hint_live(const struct fay_certify *c);

struct fay_certify {
	const struct check_subject *subject;
	size_t size; /* of the image, without a certificate */
	const struct fay_policy *policy;
	const struct fay_cfg *cfg;
	const struct fay_graph *graph;
	fay_hint_function *hint;
	const void *context;
	uint32_t *live;    /* found here: per node a mask of registers still read; NULL: all */
	uint64_t runs;     /* of nodes, that a search may take at most; 0: as many as is usual */
	bool early;        /* what is found with this many runs in all; they are counted down */
	bool sums;         /* facts of sums, what quotients are of, forms of two numbers, too */
	bool last;         /* nothing else helped: facts of forms, ranges that facts end */
	uint64_t spent;    /* runs, by all attempts */
	uint64_t until;    /* so many of these for the searches of a probe; 0: no matter */
	bool mispredicted; /* branches tell nothing */
	struct check_refusal refusal; /* why it did not succeed */
	/* Without a hint: where an indirect jump may go, to be freed; if any, the graph lacks some
	 * of these places, and nothing was decided. */
	struct fay_jump *found;
	uint32_t found_count;
	struct machine *refused; /* what was known where it was last; or NULL */
};

/* *out := the certificate's header. */
void fay_certificate_begin(const struct check_subject *subject, bool confined,
			   struct fay_bytes *out);
/* Appends the probe's part. False: see refusal. */
bool fay_certify_probe(struct fay_certify *c, struct fay_bytes *out);
/* *out := a copy of the image that brings the certificate. False: its headers are no such. */
bool fay_certificate_attach(const uint8_t *image, size_t size, const struct fay_bytes *certificate,
			    struct fay_bytes *out);
/*
 * *out := a certificate of an extension's image (host.c), whose .fay.interface has the interface's
 * hash. False: *why says what an entry that has none was refused for, and `facts`, lines of text,
 * what was known there of the registers that the instruction names.
 */
bool fay_certify_extension(const struct fay_interface *interface, const uint8_t *image, size_t size,
			   const struct fay_policy *policy, struct fay_bytes *out,
			   struct check_refusal *why, char *facts, size_t facts_size);
void fay_bytes_put(struct fay_bytes *b, const void *from, size_t size);
void fay_bytes_number(struct fay_bytes *b, uint64_t n);
void fay_bytes_signed(struct fay_bytes *b, int64_t n);

#endif
