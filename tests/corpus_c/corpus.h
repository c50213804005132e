/* SPDX-License-Identifier: MIT */
/*
 * What the probes of this folder are written against. Each file is one probe on a function like write(fd, buffer, length, x, list, y):
 *
 *     STATE { uint64_t calls; };
 *     PROBE("libc!write") { state->calls++; }
 *
 * With fay cc, STATE is working memory (FAY_SCRATCH) and the code is guarded. With CORPUS_PLAIN any compiler makes the same function with
 * the probe calling convention, and the tables of an image around it, so that `ld -shared` is all that is missing; the same object, linked as
 * an ordinary library, is the unguarded reference that test_corpus.c compares with.
 *
 * A file says `// needs: nothing` if it is provably safe as it stands, or `// needs: guard (why)` if what keeps it safe is known to the author
 * only, for example that an index kept in state was small when it was stored.
 */
#ifndef CORPUS_H
#define CORPUS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define STATE struct state
#define SHARED struct shared

#ifndef CORPUS_PLAIN

#include <fay/probe.h>

#define PROBE_(pattern, shared_)                                                                                        \
	static inline void corpus_body(const struct fay_event *event, struct state *state, struct shared *shared);      \
	FAY_SCRATCH(struct state, corpus_state);                                                                        \
	FAY_ENTRY(pattern)                                                                                              \
	{                                                                                                               \
		corpus_body(event, &corpus_state, shared_);                                                             \
	}                                                                                                               \
	static inline void corpus_body(const struct fay_event *event __attribute__((unused)),                           \
				       struct state *state __attribute__((unused)),                                     \
				       struct shared *shared __attribute__((unused)))
#define PROBE(pattern)                                                                                                  \
	struct shared;                                                                                                  \
	PROBE_(pattern, NULL)
#define PROBE_SHARED(pattern)                                                                                           \
	FAY_SHARED_SCRATCH(struct shared, corpus_shared);                                                                       \
	PROBE_(pattern, &corpus_shared)

#else

#include <fay/event.h>
#include <fay/image.h>

__attribute__((visibility("default"))) int64_t fay_try_read(void *to, uint64_t size, uint64_t address);

/* What a compiler may call although nobody wrote it; a vendor without a C library brings it along. */
void *memcpy(void *to, const void *from, size_t size);
void *memcpy(void *to, const void *from, size_t size)
{
	uint8_t *t = to;
	const uint8_t *f = from;

	for (size_t i = 0; i < size; i++) {
		__asm__("" : "+r"(t)); /* or this loop becomes a call of memcpy */
		t[i] = f[i];
	}
	return to;
}

void *memset(void *to, int byte, size_t size);
void *memset(void *to, int byte, size_t size)
{
	uint8_t *t = to;

	for (size_t i = 0; i < size; i++) {
		__asm__("" : "+r"(t));
		t[i] = (uint8_t)byte;
	}
	return to;
}

int memcmp(const void *a, const void *b, size_t size);
int memcmp(const void *a, const void *b, size_t size)
{
	const uint8_t *x = a, *y = b;

	for (size_t i = 0; i < size; i++)
		if (x[i] != y[i])
			return x[i] - y[i];
	return 0;
}

#define CORPUS_BYTES(type) ((uint32_t)(sizeof(type) + 7) & ~7u)
#define CORPUS_IMAGE(pattern, shared_bytes)                                                                             \
	__attribute__((used, section(".fay.image"))) static const struct fay_image_header corpus_image = {              \
		.magic = {'F', 'A', 'Y', 'P', 'R', 'O', 'B', 'E'}, .version = FAY_IMAGE_VERSION,                        \
		.local_size = CORPUS_BYTES(struct state), .global_size = shared_bytes, .probe_count = 1,                \
	};                                                                                                              \
	__asm__(".pushsection .fay.strings, \"a\"\n"                                                                    \
		"0:\t.asciz \"" pattern "\"\n\t.popsection\n\t.pushsection .fay.probes, \"a\"\n"                        \
		"\t.long 0b - ., 1, probe - ., 0\n\t.quad 0, 0\n\t.popsection\n");                                      \
	void probe(const struct fay_event *event, struct state *state, struct shared *shared);                          \
	void probe(const struct fay_event *event __attribute__((unused)), struct state *state __attribute__((unused)),  \
		   struct shared *shared __attribute__((unused)))
#define PROBE(pattern)                                                                                                  \
	struct shared;                                                                                                  \
	CORPUS_IMAGE(pattern, 0)
#define PROBE_SHARED(pattern) CORPUS_IMAGE(pattern, CORPUS_BYTES(struct shared))

#endif

/* A probe's copy of bytes of the traced program: 0 if they could be read, else -1 and `to` is zero. */
static inline int64_t read_bytes(void *to, uint64_t size, uint64_t from)
{
	return fay_try_read(to, size, from);
}
#define READ(object, from) read_bytes(&(object), sizeof(object), (uint64_t)(from))

static inline uint16_t get_be16(const uint8_t *p)
{
	return (uint16_t)(p[0] << 8 | p[1]);
}

static inline uint32_t get_be32(const uint8_t *p)
{
	return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static inline uint32_t get_le32(const uint8_t *p)
{
	return (uint32_t)p[3] << 24 | (uint32_t)p[2] << 16 | (uint32_t)p[1] << 8 | p[0];
}

/* What the program's structures look like that arg[4] points to: a list, a tree of the same records, and a name. */
struct record {
	uint64_t next;       /* address of the next record, 0 at the end */
	uint64_t left, right;
	uint64_t name;       /* address of a string */
	uint32_t kind, size;
	int32_t weight;
	uint16_t flags, refs;
};

#endif
