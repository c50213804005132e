/* SPDX-License-Identifier: MIT */
/*
 * What is checked: the parts of an image that matter to the checker, found in the file's bytes.
 * Nothing is copied: every pointer leads into the caller's file, which must stay.
 */
#ifndef FAY_CHECKER_SUBJECT_H
#define FAY_CHECKER_SUBJECT_H

#include "fay/facts.h"
#include "fay/host/interface.h"

/* Why something is refused: a rule and where. rule FAY_RULE_NONE: it is not. */
struct check_refusal {
	enum fay_rule rule;
	uint64_t place;   /* virtual address, or offset in the file or the certificate */
	const char *what; /* one line, static text */
};

/* A section: virtual addresses [start, start + size), bytes[0] is the one at `start`. */
struct check_bytes {
	uint64_t start, size; /* size 0: the image has none */
	const uint8_t *bytes;
};

struct check_probe {
	uint64_t code; /* virtual address of the entry, in .text */
	uint64_t parameter;
	const char *pattern; /* NUL-terminated, in the file */
	uint32_t kind;       /* enum fay_probe_kind */
};

struct check_subject {
	const struct fay_interface *interface; /* what its code may see and call */
	struct check_bytes text, rodata, got;
	struct check_bytes certificate; /* .fay.certificate; not part of what runs */
	struct check_bytes hash;        /* .fay.interface; of probes none */
	uint64_t base;                  /* of what runs: the page of the lowest of the three */
	uint64_t span;                  /* bytes from there to the end of the highest */
	uint32_t local_size, global_size;
	uint32_t slot_count;
	struct {
		uint64_t address; /* virtual, of the 8-byte slot */
		uint32_t helper;  /* its number in the interface */
	} slots[FAY_IMAGE_MAX_HELPERS];
	uint32_t probe_count, state_count, column_count;
	struct check_bytes probes;  /* struct fay_image_probe[], unaligned: check_probe() */
	struct check_bytes states;  /* struct fay_image_state[], unaligned: check_state() */
	struct check_bytes columns; /* struct fay_image_column[], unaligned: check_column() */
	struct check_bytes strings;
};

/* What probes may see and call: enum fay_helper are its helpers, enum fay_event_field its
 * fields. */
extern const struct fay_interface check_probe_interface;

/*
 * Parses and validates all of docs/probe-image.md. Of a refused image *subject means nothing. What
 * follows is for accepted ones, with i below the image's count.
 */
struct check_refusal check_parse(const uint8_t *file, size_t size, struct check_subject *subject);
/* The same of an extension, for an interface that check_interface() found right. */
struct check_refusal check_parse_extension(const uint8_t *file, size_t size,
					   const struct fay_interface *interface,
					   struct check_subject *subject);
/* Whether a host's interface says what interface.h and docs/internals/host-interface.md allow. */
bool check_interface(const struct fay_interface *interface);
/* Probe `i` of a parsed image. */
struct check_probe check_probe(const struct check_subject *subject, uint32_t i);
/* State `i`, column `i`; what a reference to a name at offset `field` of a table means. */
struct fay_image_state check_state(const struct check_subject *subject, uint32_t i);
struct fay_image_column check_column(const struct check_subject *subject, uint32_t i);
const char *check_name(const struct check_subject *subject, const struct check_bytes *table,
		       uint64_t field, fay_rel32 rel);

/* Whether a name is the pattern, or begins with what stands before the pattern's `*`. */
bool check_matches(const char *pattern, const char *name);
/* Whether the policy admits the image's sizes, kinds and patterns (POL-*). */
struct check_refusal check_policy(const struct check_subject *subject,
				  const struct fay_policy *policy);

#endif
