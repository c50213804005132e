/* SPDX-License-Identifier: MIT */
/*
 * The small checker against those who want it to accept what it must not.
 *
 *	test_certificates MUTATIONS LIES SEED IMAGES FILE...
 *
 * FILE is a corpus file (run_corpus.c), whose images corpus_images left in IMAGES, or an image.
 *
 *   - what the verifier accepts is accepted with the certificate that the prover writes, and not
 *     without one
 *   - what the corpus calls hostile is refused without a certificate, with those of a lying prover
 *     (lying.c: at most LIES of each image), and with the one that hostile.s.txt writes beside it
 *   - malformed certificates are refused by a rule, in linear time (bad_certificates.c)
 *   - MUTATIONS changed certificates of each, and as often changed code under the honest one: what
 *     is still accepted is executed on the CPU, each step looked at, and keeps its promises
 *     (mutations.c, ../sound/native.c)
 *
 * Every check is made with exactly the memory that check_room() says, and every buffer ends where a
 * page begins that is not accessible.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../sound/native.h"
#include "certificates.h"
#include "tests/xorshift.h"

struct image images[IMAGES_MAX];
unsigned image_count;
unsigned long checked, accepted, failures;
uint64_t seed, steps;
unsigned long honest, layouts;
static unsigned long hostile;

size_t below(size_t n)
{
	return n ? (size_t)(xorshift(&seed) >> 16) % n : 0;
}

static void keep(const char *name, const uint8_t *bytes, size_t size)
{
	FILE *f = bytes ? fopen(name, "wb") : NULL;

	if (f) {
		fwrite(bytes, 1, size, f);
		fclose(f);
	}
}

void fail(const struct image *of, const char *what, const uint8_t *file, size_t size,
	  const uint8_t *certificate, size_t certificate_size)
{
	char name[64];

	if (failures++ >= 20)
		return;
	printf("FAIL %s: %s (kept as failure-%lu.fay, .crt)\n", of->name, what, failures);
	snprintf(name, sizeof(name), "failure-%lu.fay", failures);
	keep(name, file, size);
	snprintf(name, sizeof(name), "failure-%lu.crt", failures);
	keep(name, certificate, certificate_size);
	fflush(stdout);
}

/* ---- checking ---- */

#define PAGE 4096u

/* Room for `most` bytes between inaccessible pages; its end. */
static uint8_t *guarded(size_t most)
{
	uint8_t *all = mmap(NULL, most + 2 * PAGE, PROT_NONE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (all == MAP_FAILED || mprotect(all + PAGE, most, PROT_READ | PROT_WRITE))
		abort();
	return all + PAGE + most;
}

enum fay_rule check(const uint8_t *file, size_t size, const uint8_t *certificate,
		    size_t certificate_size, const struct fay_policy *policy,
		    struct fay_probe_facts *facts, struct check_result *result)
{
	static uint8_t *image_end, *certificate_end, *memory_end;
	static struct fay_probe_facts all[FAY_IMAGE_MAX_PROBES];
	size_t room = check_room(size);
	uint8_t *image, *copy = NULL, *memory;
	bool touched = false;

	if (!image_end) {
		image_end = guarded(FILE_MOST);
		certificate_end = guarded(4 * FILE_MOST);
		memory_end = guarded(check_room(FILE_MOST) + PAGE);
	}
	image = image_end - size;
	memcpy(image, file, size);
	if (certificate) {
		copy = certificate_end - certificate_size;
		memcpy(copy, certificate, certificate_size);
	}
	memory = memory_end - (room + 15) / 16 * 16;
	memset(memory - 64, 0xa5,
	       room > PAGE ? 64 + PAGE : 64); /* the checker clears what it uses */
	memset(memory + room, 0xa5, (size_t)(memory_end - memory) - room);
	check_image(image, size, copy, certificate_size, policy, memory, room, all, result);
	checked++;
	for (uint8_t *b = memory - 64; b < memory; b++)
		touched |= *b != 0xa5;
	for (uint8_t *b = memory + room; b < memory_end; b++)
		touched |= *b != 0xa5;
	if (touched) {
		printf("FAIL the checker writes outside of its memory\n");
		failures++;
	}
	if (result->refusal.rule == FAY_RULE_NONE)
		accepted++;
	else if (!result->refusal.what || result->refusal.rule >= FAY_RULE_COUNT)
		abort();
	if (facts)
		memcpy(facts, all, 4 * sizeof(*facts)); /* of the first four */
	return result->refusal.rule;
}

/* The certificate beside a hostile image. In a process of its own: it may end the checker. */
static void try_text(const struct image *m)
{
	struct check_subject s;
	struct check_result r = { 0 };
	struct fay_bytes c = { 0 };
	int status = 0;
	pid_t child;

	hostile++;
	if (fay_read_image(m->bytes, m->size, &s).rule != FAY_RULE_NONE ||
	    !text_certificate(&s, m->text, &c)) {
		fail(m, "its certificate makes no sense", m->bytes, m->size, c.at, c.size);
		return;
	}
	fflush(stdout);
	child = fork();
	if (!child) {
		check(m->bytes, m->size, c.at, c.size, &m->policy, NULL, &r);
		if (getenv("FAY_TELL"))
			printf("%s: %s at %llx: %s\n", m->name, fay_rule_id(r.refusal.rule),
			       (unsigned long long)r.refusal.place, r.refusal.what);
		fflush(stdout);
		_exit(r.refusal.rule == FAY_RULE_NONE);
	}
	waitpid(child, &status, 0);
	checked++;
	if (!WIFEXITED(status))
		fail(m, "the checker ends by a signal", m->bytes, m->size, c.at, c.size);
	else if (WEXITSTATUS(status) && !m->legal)
		fail(m, "ACCEPTED", m->bytes, m->size, c.at, c.size);
	free(c.at);
}

int main(int argc, char **argv)
{
	unsigned mutations, lies;

	if (argc < 6) {
		fprintf(stderr, "usage: test_certificates MUTATIONS LIES SEED IMAGES FILE...\n");
		return 2;
	}
	mutations = (unsigned)strtoul(argv[1], NULL, 0);
	lies = (unsigned)strtoul(argv[2], NULL, 0);
	seed = strtoull(argv[3], NULL, 0) * 2 + 1;
	for (int i = 5; i < argc; i++) {
		if (strstr(argv[i], ".s.txt"))
			read_corpus(argv[i], argv[4]);
		else
			add_image(argv[i], argv[i], "", NULL, true);
	}
	for (unsigned i = 0; i < image_count; i++)
		if (images[i].text)
			try_text(&images[i]);
	printf("%u images, %lu with a certificate (%lu layouts compared), %lu with a hostile one\n",
	       image_count, honest, layouts, hostile);
	for (unsigned i = 0; i < image_count; i++)
		if (!images[i].certificate)
			lie(&images[i], lies);
	printf("%lu checks, %lu accepted\n", checked, accepted);
	if (native_init())
		return 2;
	for (unsigned i = 0; i < image_count; i++)
		if (images[i].legal && (images[i].text || i % 8 == 0))
			bad_certificates(&images[i]);
	for (unsigned k = 0; k < MUTATION_KINDS; k++) {
		const struct mutation_counts *count = &mutation_counts[k];

		for (unsigned i = 0; i < image_count; i++)
			if (images[i].certificate)
				mutate(&images[i], k, mutations);
		printf("%s: %lu tried, %lu refused, %lu accepted, %lu of these executed\n",
		       k == MUTATION_CODE ? "changed code" : "changed certificates", count->tried,
		       count->tried - count->accepted, count->accepted, count->executed);
	}
	printf("%llu instructions on the CPU; %lu failures\n", (unsigned long long)steps, failures);
	return failures != 0;
}
