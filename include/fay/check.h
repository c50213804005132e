/* SPDX-License-Identifier: MIT */
/*
 * The checker: whether an image with the certificate that it brings, or that comes beside it, is
 * confined. It is all that an acceptance rests on (docs/verifier.md), and needs nothing but memory:
 * no allocation, no file, no clock, no solver; time is linear in image and certificate.
 * fay_verify_certify() and `fay verify --certify` make certificates; docs/certificate.md is the
 * format.
 *
 * No function has any state of its own: each may be called by any number of threads at a time.
 */
#ifndef FAY_CHECK_H
#define FAY_CHECK_H

#include "fay/facts.h"
#include "fay/image.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A section that runs: `size` bytes, which lie in the image, `offset` bytes from the start of what
 * runs. size 0: the image has none. */
struct fay_check_section {
	const uint8_t *bytes;
	uint32_t offset, size;
};

/* What the checker says of an image. What points into the image is valid as long as that is. */
struct fay_check_result {
	/* FAY_RULE_NONE: accepted. Else of what follows only `place` and `what` mean anything. */
	enum fay_rule rule;
	uint64_t place;   /* virtual address, or offset in the file or the certificate */
	const char *what; /* one line, static text; NULL if accepted */
	/*
	 * What runs, and nothing else: `span` bytes, zero but for the two sections. The loader puts
	 * the helper's address into each slot, makes all of it executable or read-only, and gives
	 * probes `local_size` and `global_size` bytes of state (docs/probe-image.md).
	 */
	uint32_t span, local_size, global_size;
	struct fay_check_section text, rodata;
	uint32_t slot_count;
	struct {
		uint32_t offset; /* of the 8-byte slot */
		uint32_t helper; /* enum fay_helper */
	} slots[FAY_IMAGE_MAX_HELPERS];
	uint32_t probe_count;
	uint64_t instructions; /* looked at, those of several contexts several times */
};

/* Bytes of memory that fay_check() needs at most for an image of `size` bytes. */
size_t fay_check_room(size_t size);
/*
 * Checks an image of `size` bytes by the certificate of `certificate_size` bytes, or by that which
 * the image brings if `certificate` is NULL. policy NULL: that of fay_policy_default().
 * `memory`: memory_size bytes, at least fay_check_room(size) of them, aligned as by malloc(3); used
 * until the function returns. `probes` has room for FAY_IMAGE_MAX_PROBES; what is proved of each
 * probe of an accepted image is put there. Never fails: every doubt is a refusal.
 */
void fay_check(const void *image, size_t size, const void *certificate, size_t certificate_size,
	       const struct fay_policy *policy, void *memory, size_t memory_size,
	       struct fay_probe_facts *probes, struct fay_check_result *result);

/* The built-in user-mode policy. */
void fay_policy_default(struct fay_policy *policy);
/*
 * Tightens any policy to what may run in a kernel: general registers only, speculation confined, at
 * most FAY_KERNEL_MAX_INSTRUCTIONS and FAY_KERNEL_MAX_STACK, entry, return, begin, end and timer
 * probes, no field that only vector registers have. (Nothing below rsp is for all images.)
 */
void fay_policy_restrict_kernel(struct fay_policy *policy);
/* Reads a policy file (docs/policy.md). Returns 0, or -1 with a message in message:
 * "FILE:LINE:COLUMN: ...", the line, a caret. */
int fay_policy_read(const char *path, struct fay_policy *policy, char *message,
		    size_t message_size);

/*
 * Whether all that `pattern` ("module!function", both globs of fnmatch(3); "function" means
 * "*!function") can match is matched by one of the policy's patterns. False in any doubt: a
 * policy's glob with brackets allows single names and its own text only.
 */
bool fay_policy_allows(const struct fay_policy *policy, const char *pattern);

/* "entry" ... of enum fay_probe_kind, "arg[0]" ... of the bits of enum fay_event_field; NULL past
 * the end. */
const char *fay_probe_kind_name(unsigned kind);
const char *fay_event_field_name(unsigned bit);
/* "fay_flush" ...; NULL past the end. */
const char *fay_helper_name(unsigned helper);

/* "sse4.1" and the like of one bit; NULL past the last. */
const char *fay_cpu_feature_name(unsigned bit);
/* "MEM-BOUNDS" and the like; "?" out of range. */
const char *fay_rule_id(enum fay_rule rule);
const char *fay_rule_title(enum fay_rule rule);

#ifdef __cplusplus
}
#endif

#endif
