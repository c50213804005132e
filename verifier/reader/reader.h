/* SPDX-License-Identifier: MIT */
/*
 * The room that reads image files for the checker. It finds in the ELF file what the checker wants
 * (struct check_subject) and refuses what docs/probe-image.md does not allow. What it says is not
 * believed: the checker looks at it again, and what is installed comes from there. In fay.ko, where
 * it runs as part of the kernel, it must do no harm either: nothing is allocated, and every byte is
 * read by check_span().
 */
#ifndef FAY_READER_H
#define FAY_READER_H

#include "fay/image.h"
#include "verifier/checker/checker.h"

/* Reads an image of probes. Of a refused one *subject means nothing. */
struct check_refusal fay_read_image(const uint8_t *file, size_t size,
				    struct check_subject *subject);
/* The same of an extension, for an interface that fay_read_interface() found right. */
struct check_refusal fay_read_extension(const uint8_t *file, size_t size,
					const struct fay_interface *interface,
					struct check_subject *subject);
/* Whether a host's interface says what interface.h and docs/internals/host-interface.md allow. */
bool fay_read_interface(const struct fay_interface *interface);
/* Column `i`; what a reference to a name at offset `field` of a table means, NULL if that is none
 * or not printable UTF-8. */
struct fay_image_column fay_read_column(const struct check_subject *subject, uint32_t i);
const char *fay_read_name(const struct check_subject *subject, const struct check_bytes *table,
			  uint64_t field, fay_rel32 rel);

/* What certificates are made for: everything that the checker reads of an image but its tables. */
void fay_read_fingerprint(const struct check_subject *s, uint8_t hash[FAY_CERTIFICATE_HASH]);

/*
 * Reads an image of `size` bytes and has it checked (check_parts()) with its certificate: the
 * section of the image, or that at `certificate` if it is not NULL. A certificate that was made for
 * another image is refused by its fingerprint.
 */
void check_image(const uint8_t *image, size_t size, const uint8_t *certificate,
		 size_t certificate_size, const struct fay_policy *policy, void *memory,
		 size_t memory_size, struct fay_probe_facts *facts, struct check_result *result);
/* The same of an extension for a host with this interface, which may be any bytes. They must not
 * change meanwhile. */
void check_extension(const struct fay_interface *interface, const uint8_t *image, size_t size,
		     const uint8_t *certificate, size_t certificate_size,
		     const struct fay_policy *policy, void *memory, size_t memory_size,
		     struct fay_probe_facts *facts, struct check_result *result);

#endif
