/* SPDX-License-Identifier: MIT */
/*
 * Accepted images on the CPU, without our interpreter: the code consists of int3 but for the
 * instruction that is to run next, and after each instruction a signal handler looks at it. (The
 * trap flag would do, but a virtual machine takes ten times as long for each trap.)
 *
 *   - every region is a mapping of its own between inaccessible pages, EVENT and read-only data
 *     without write permission. In one run its last byte is the last of
 *     a page, in the next its first byte is the first: an access past either end faults
 *   - rip is always the start of an instruction that the verifier decoded, after an indirect jump
 *     one that the report names for it, until the return to the caller or a call of a helper, which
 *     are
 *     addresses that nothing is mapped at: the fault shows that one was reached
 *   - helpers are played by the fault handler: alignment of rsp and arguments are checked against
 *     their contract, then scratch registers, flags and all below
 *     rsp get random contents
 *   - the direction flag is clear at every step, rsp within the promised stack, the x87 control
 *     word and MXCSR as at entry (its sticky flags where the
 *     report names floating point)
 *   - at return: rsp, callee-saved registers, every register that the report does not call
 *     clobbered, the lower halves of vector
 *     registers likewise, the return address itself, and the bytes below the promised stack
 *   - not more instructions than promised
 *   - non-interference: each run is made twice, with other registers (vector registers too), stack
 *     garbage, places of regions, and event fields that
 *     are said not to be read. LOCAL, GLOBAL and the number of instructions must come out the same
 *
 * GLOBAL changes between instructions as if by other threads. Limits: reads of the code as data and
 * reads below rsp do not fault, nor do jumps into read-only data of the code's page; the
 * interpreter's check (soundness.c) sees those.
 */
#include "native_parts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define STACK_BYTES (5 * PAGE)
#define SECONDS_MOST 60 /* an instruction that jumps to itself does not trap */

static const char *const region_names[AT_COUNT] = { "event", "local", "global", "stack" };
struct native_run now;

void native_scramble(struct soundness_random *random, void *bytes, size_t size)
{
	uint8_t *b = bytes;
	size_t i = 0;

	for (; i + 8 <= size; i += 8) {
		uint64_t value = soundness_next(random);
		memcpy(b + i, &value, 8);
	}
	for (; i < size; i++)
		b[i] = (uint8_t)soundness_next(random);
}

static bool make_place(struct place *place, size_t size, bool writable)
{
	size_t pages = (size + PAGE - 1) / PAGE * PAGE;
	uint8_t *all = mmap(NULL, pages + 2 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	*place = (struct place){ .size = size, .page_bytes = pages, .writable = writable };
	if (all == MAP_FAILED)
		return false;
	place->pages = all + PAGE;
	place->bytes = place->pages;
	return true;
}

/* Fills the region anew, flush with one end of its pages; where vectors are used state begins at a
 * multiple of 64, as docs/probe-image.md says. */
static void fill_place(struct place *place, bool at_end, const struct fay_image *image)
{
	size_t room =
		place->writable && now.vectors_used ? (place->size + 63) / 64 * 64 : place->size;

	if (!place->page_bytes)
		return;
	mprotect(place->pages, place->page_bytes, PROT_READ | PROT_WRITE);
	place->bytes = place->pages + (at_end ? place->page_bytes - room : 0);
	memset(place->pages, 0xa5, place->page_bytes);
	for (size_t i = 0; i + 8 <= place->size; i += 8) {
		uint64_t value = soundness_number(&now.random, image);
		memcpy(place->bytes + i, &value, 8);
	}
	for (unsigned i = 0; place == &now.at[AT_EVENT] && i < place->size; i++)
		if (!(now.facts->event_fields & soundness_field_of(i)))
			place->bytes[i] = (uint8_t)soundness_next(&now.secret);
	if (!place->writable)
		mprotect(place->pages, place->page_bytes, PROT_READ);
}

/* Between inaccessible pages, and once more where it can be written. */
static bool place_code(const struct fay_image *image, const struct fay_layout *layout)
{
	size_t bytes = (layout->size + PAGE - 1) / PAGE * PAGE;
	size_t first = image->text.start - image->layout_base, end = first + image->text.size;
	uint8_t *all = mmap(NULL, bytes + 2 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int fd = memfd_create("code", 0);

	now.patch = MAP_FAILED;
	if (all != MAP_FAILED && fd >= 0 && !ftruncate(fd, (off_t)bytes) &&
	    mmap(all + PAGE, bytes, PROT_READ, MAP_SHARED | MAP_FIXED, fd, 0) != MAP_FAILED)
		now.patch = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	if (now.patch == MAP_FAILED)
		return false;
	now.code = all + PAGE;
	memcpy(now.patch, layout->bytes, layout->size);
	for (uint32_t i = 0; i < layout->slot_count; i++) {
		uint64_t address = NOWHERE + layout->slots[i].helper;
		memcpy(now.patch + layout->slots[i].offset, &address, 8);
	}
	memset(now.patch + first, INT3, image->text.size);
	now.last = NULL;
	return !mprotect(now.code + first / PAGE * PAGE,
			 (end + PAGE - 1) / PAGE * PAGE - first / PAGE * PAGE,
			 PROT_READ | PROT_EXEC);
}

static void run_once(const struct fay_image *image, bool at_end)
{
	struct place *stack = &now.at[AT_STACK];
	uint64_t address = RETURN_ADDRESS;

	for (unsigned i = 0; i < AT_STACK; i++)
		fill_place(&now.at[i], at_end, image);
	mprotect(stack->pages, stack->page_bytes, PROT_READ | PROT_WRITE);
	memset(stack->pages, 0xa5, PAGE);
	native_scramble(&now.secret, stack->pages + PAGE, stack->page_bytes - PAGE);
	/* rsp is 8 modulo 16 at entry; the return address is the last thing on its page. */
	now.rsp = (uint64_t)stack->pages + stack->page_bytes - 8;
	memcpy((void *)now.rsp, &address, 8);
	now.steps = 0;
	native_hide();
	now.armed = true;
	alarm(SECONDS_MOST);
	raise(SIGTRAP); /* whose handler enters the probe and in the end returns here */
	alarm(0);
}

/* LOCAL and GLOBAL as the last run left them. */
static void collect(uint8_t *bytes)
{
	for (unsigned i = AT_LOCAL; i <= AT_GLOBAL; i++) {
		memcpy(bytes, now.at[i].bytes, now.at[i].size);
		bytes += now.at[i].size;
	}
}

/* The run of `seed` twice, with other secrets. */
static void run_twice(const struct fay_image *image, uint64_t seed, uint8_t *first, uint8_t *second,
		      uint64_t *steps)
{
	uint64_t before = 0;

	for (unsigned which = 0; which < 2 && !*now.complaint; which++) {
		now.random.state = seed;
		now.secret.state = seed ^ (which ? 0xa5a5a5a5deadbeefu : 0x1111);
		run_once(image, which);
		*steps += now.steps;
		collect(which ? second : first);
		if (which && !*now.complaint && now.steps != before)
			snprintf(now.complaint, sizeof(now.complaint),
				 "%llu instructions, or %llu with other secrets",
				 (unsigned long long)before, (unsigned long long)now.steps);
		before = now.steps;
	}
	if (!*now.complaint &&
	    memcmp(first, second, now.at[AT_LOCAL].size + now.at[AT_GLOBAL].size))
		snprintf(now.complaint, sizeof(now.complaint),
			 "state depends on what the probe must not read");
}

static void release(size_t code_bytes)
{
	for (unsigned i = 0; i < AT_COUNT; i++)
		if (now.at[i].pages)
			munmap(now.at[i].pages - PAGE, now.at[i].page_bytes + 2 * PAGE);
	code_bytes = (code_bytes + PAGE - 1) / PAGE * PAGE;
	if (now.code) {
		munmap(now.code - PAGE, code_bytes + 2 * PAGE);
		munmap(now.patch, code_bytes);
	}
	memset(&now.at, 0, sizeof(now.at));
	now.code = NULL;
}

static const char *run_probes(const struct fay_image *image, const struct fay_verdict *verdict,
			      uint64_t seed, unsigned runs, uint64_t *steps)
{
	const size_t sizes[AT_COUNT] = { sizeof(struct fay_event), image->header.local_size,
					 image->header.global_size, STACK_BYTES };
	uint8_t *state;

	for (unsigned i = 0; i < AT_COUNT; i++)
		if (!make_place(&now.at[i], sizes[i], i != AT_EVENT)) {
			snprintf(now.complaint, sizeof(now.complaint), "no memory for %s",
				 region_names[i]);
			return now.complaint;
		}
	if (!place_code(image, &verdict->layout))
		return "no memory for the code";
	state = malloc(2 * (sizes[AT_LOCAL] + sizes[AT_GLOBAL]) + 1);
	for (uint32_t probe = 0; state && probe < verdict->probe_count && !*now.complaint;
	     probe++) {
		now.facts = &verdict->probes[probe];
		now.vectors_used = now.facts->clobbered_vectors || now.facts->uses_mxcsr;
		for (unsigned run = 0; run < runs && !*now.complaint; run += 2)
			run_twice(image, seed + run, state,
				  state + sizes[AT_LOCAL] + sizes[AT_GLOBAL], steps);
	}
	free(state);
	return *now.complaint ? now.complaint : NULL;
}

/* The instructions that the report is about: those reached also through its indirect jumps. */
static bool decode_all(struct fay_cfg *cfg, struct fay_arena *arena, const struct fay_image *image,
		       const struct fay_verdict *verdict)
{
	struct fay_jump *jumps;
	bool ok = fay_cfg_build(cfg, arena, image, 0).rule == FAY_RULE_NONE;

	if (!ok || !verdict->jump_count)
		return ok;
	jumps = calloc(verdict->jump_count, sizeof(*jumps));
	for (uint32_t i = 0; jumps && i < verdict->jump_count; i++) {
		jumps[i] = (struct fay_jump){ .from = image->layout_base + verdict->jumps[i].from,
					      .to = image->layout_base + verdict->jumps[i].to };
		ok &= jumps[i].to - image->text.start < image->text.size;
	}
	ok = ok && jumps &&
	     fay_cfg_extend(cfg, jumps, verdict->jump_count, 0).rule == FAY_RULE_NONE;
	free(jumps);
	return ok;
}

const char *native_check(const void *file, size_t size, const struct fay_verdict *verdict,
			 uint64_t seed, unsigned runs, uint64_t *steps)
{
	struct fay_arena *arena = fay_arena_create((size_t)64 << 20);
	struct fay_image image;
	struct fay_cfg cfg = { 0 };
	const char *result;

	*now.complaint = '\0';
	if (!arena || fay_image_parse(arena, file, size, &image).rule != FAY_RULE_NONE ||
	    !decode_all(&cfg, arena, &image, verdict)) {
		result = "accepted, but does not parse or decode";
	} else {
		now.image = &image;
		now.cfg = &cfg;
		result = run_probes(&image, verdict, seed, runs, steps);
		release(verdict->layout.size);
	}
	fay_cfg_deinit(&cfg);
	fay_arena_destroy(arena);
	return result;
}
