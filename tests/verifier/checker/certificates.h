/* SPDX-License-Identifier: MIT */
/* What the parts of test_certificates share. */
#ifndef FAY_TESTS_CERTIFICATES_H
#define FAY_TESTS_CERTIFICATES_H

#include "verifier/prover/certify/certify.h"
#include "verifier/reader/reader.h"

#define IMAGES_MAX 4096u
#define FILE_MOST (2u << 20)
#define HEADER_SIZE FAY_CERTIFICATE_HEADER

struct image {
	char name[96];
	uint8_t *bytes;
	size_t size;
	struct fay_policy policy;
	const struct fay_interface *interface;
	uint8_t *certificate; /* the honest one; NULL: none */
	size_t certificate_size;
	const char *text; /* hostile.s.txt: its certificate, NUL-terminated */
	bool legal;       /* the verifier accepts it */
};

extern struct image images[IMAGES_MAX];
extern unsigned image_count;
/* How many there are of each. */
extern unsigned long checked, accepted, failures, honest, layouts;
extern uint64_t seed, steps;

size_t below(size_t n);
/* Counts and tells a failure; what was tried is kept in the working directory. */
void fail(const struct image *of, const char *what, const uint8_t *file, size_t size,
	  const uint8_t *certificate, size_t certificate_size);

/*
 * check_image() with exactly check_room() bytes, and every buffer between pages that are not
 * accessible. Instructions that it looked at and the size of its input are compared.
 */
enum fay_rule check(const uint8_t *file, size_t size, const uint8_t *certificate,
		    size_t certificate_size, const struct fay_policy *policy,
		    struct fay_probe_facts *facts, struct check_result *result);
/* Executes what was accepted; NULL, or the promise that was broken. */
const char *execute(const uint8_t *file, size_t size, const uint8_t *certificate,
		    size_t certificate_size, const struct check_result *result,
		    struct fay_probe_facts *facts);

/* ---- certificate_images.c ---- */

/* An image with the attributes of its section's first line; `accept`: the prover certifies it. */
void add_image(const char *path, const char *name, const char *line, const char *text, bool accept);
/* Adds where tables lead, as far as the prover finds out, to the code. */
bool find_tables(const struct image *of, struct fay_cfg *cfg);
/* All of a corpus file, whose images lie in the directory. */
void read_corpus(const char *path, const char *directory);

/* ---- certificate_text.c ---- */

/* The starts of the instructions from the beginning of .text on; how many. */
uint32_t sweep(const struct check_subject *s, uint32_t *starts, uint32_t most);
void put_header(const struct check_subject *s, bool confined, struct fay_bytes *out);
/* What the lines of `text` say: see hostile.s.txt. False: they make no sense. */
bool text_certificate(const struct check_subject *s, const char *text, struct fay_bytes *out);

/* ---- lying.c ---- */

/* Every certificate that claims one thing too many, or `most` of these by chance. */
void lie(const struct image *of, unsigned most);

/* ---- bad_certificates.c ---- */

void bad_certificates(const struct image *of);

/* ---- mutations.c ---- */

enum mutation { MUTATION_CERTIFICATE, MUTATION_CODE, MUTATION_KINDS };
struct mutation_counts {
	unsigned long tried, accepted, executed;
};
extern struct mutation_counts mutation_counts[MUTATION_KINDS];

/* `n` mutants of one kind; of large images fewer. */
void mutate(const struct image *of, enum mutation kind, unsigned n);

#endif
