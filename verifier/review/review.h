/* SPDX-License-Identifier: MIT */
/*
 * The room of the reviewer, untrusted: the case for or against an image as a page (`fay verify
 * --html`), for code-scanning services (`--sarif`) and for other machines (`--attest`), and the
 * command `fay verify`. A mistake here misleads a reader; it admits nothing.
 */
#ifndef FAY_VERIFIER_REVIEW_H
#define FAY_VERIFIER_REVIEW_H

#include "verifier/inspect/inspect.h"

/* What a review is about. */
struct fay_review {
	const char *image;                 /* the file's name */
	const char *policy;                /* of the policy's file, or NULL */
	const struct fay_verdict *verdict; /* with what else is refused */
	const struct fay_inspected *in;    /* of the same bytes, with facts; or NULL */
	/* Of the certificate that the image brings; size 0: it brings none. */
	uint8_t certificate_sha256[32];
	size_t certificate_size;
	uint8_t policy_sha256[32]; /* of the policy's file, if there is one */
	bool kernel;               /* held to what probes in the kernel need, too */
};

/* A file beyond the format's limit is refused for that, and has no hash. */
static inline bool fay_review_hashed(const struct fay_verdict *verdict)
{
	uint8_t any = 0;

	for (size_t i = 0; i < sizeof(verdict->image_sha256); i++)
		any |= verdict->image_sha256[i];
	return any != 0;
}

/* One page of HTML that needs no other file and no script: names of the image are shown, never
 * obeyed. */
void fay_review_page(FILE *out, const struct fay_review *review);
/* The refusals as a log of SARIF 2.1.0. */
void fay_review_sarif(FILE *out, const struct fay_review *review);

/* An envelope begins with the one, then the statement in base64, and the other. */
#define FAY_ATTESTED_HEAD "{\"payloadType\":\"application/vnd.in-toto+json\",\"payload\":\""
#define FAY_ATTESTED_TAIL "\",\"signatures\":["
#define FAY_ATTESTED_TYPE "urn:fay:verdict:1"
/* The verdict as an unsigned attestation. */
void fay_review_attestation(FILE *out, const struct fay_review *review);
/* Whether that attestation, signed or not, is the same byte for byte; it is said, with the first
 * difference. */
bool fay_review_reproduces(FILE *out, const struct fay_review *review, const char *attested,
			   size_t size);

#endif
