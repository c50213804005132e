/* SPDX-License-Identifier: MIT */
/*
 * What is checked: the parts of an image that matter to the checker, as a reader found them in the
 * file. The reader is not believed: check_read() looks at all that follows is built on, and what is
 * installed is what stands here, too. So where a reader found it in the file matters for what the
 * image does, not for what it can do.
 *
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
	uint64_t start, size; /* size 0: the image has none, and start is 0 */
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
	struct check_bytes columns; /* struct fay_image_column[], unaligned */
	struct check_bytes strings;
};

#define FAY_SUBJECT_ROW 4096u /* bytes of a row at most */

/* What probes may see and call: enum fay_helper are its helpers, enum fay_event_field its
 * fields. */
extern const struct fay_interface check_probe_interface;

/*
 * Whether all that was read lies in the file, what runs in its span and apart, the slots in .got,
 * the probes in .text, and the states in their regions (IMG-*). What follows is for subjects of
 * which that holds, with i below the count.
 */
struct check_refusal check_read(const uint8_t *file, size_t size, const struct check_subject *s);
struct check_probe check_probe(const struct check_subject *subject, uint32_t i);
struct fay_image_state check_state(const struct check_subject *subject, uint32_t i);

/* The only way to the file's bytes: [offset, offset + size) of `in`; NULL if it has not all. */
static inline const uint8_t *check_span(const struct check_bytes *in, uint64_t offset,
					uint64_t size)
{
	return offset <= in->size && size <= in->size - offset ? in->bytes + offset : NULL;
}
/* The string at `offset` of a string table, if it ends there within 256 bytes; else NULL. */
const char *check_string(const struct check_bytes *table, uint64_t offset);

/* Whether a name is the pattern, or begins with what stands before the pattern's `*`. */
bool check_matches(const char *pattern, const char *name);
/* Whether the policy admits the image's sizes, kinds and patterns (POL-*). */
struct check_refusal check_policy(const struct check_subject *subject,
				  const struct fay_policy *policy);

#endif
