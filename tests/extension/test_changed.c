/* SPDX-License-Identifier: MIT */
/*
 * Changed certificates of extensions, and changed code under honest ones, as
 * ../verifier/checker/mutations.c makes them. What the checker still accepts is called: with sizes
 * from 0 on, every region between pages that are not accessible, flush with one or the other. It
 * must come back, with the saved registers as they were, a result in the interface's range, and
 * arguments of helpers within their contracts. A region that a helper ended cannot be accessed.
 *
 *	test_changed CHANGES SEED CASES.HOST IMAGE...
 */
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <unistd.h>

#include "../verifier/checker/certificates.h"
#include "../xorshift.h"
#include "verifier/accept/accept.h"
#include "verifier/host/host.h"

#define PAGE 4096u
#define STACK 65536u
#define CODE (1u << 20)
#define RUNS 12
#define RESULT_MOST 255 /* cases.host */

void call(void (*entry)(void), const uint64_t arguments[6], void *stack, uint64_t results[7]);

struct image images[IMAGES_MAX];
unsigned image_count;
unsigned long checked, accepted, failures;
uint64_t seed, steps;
static struct fay_interface interface;

size_t below(size_t n)
{
	return n ? (size_t)(xorshift(&seed) >> 16) % n : 0;
}

static void keep(const char *name, const uint8_t *bytes, size_t size)
{
	FILE *f = fopen(name, "wb");

	if (!f)
		return;
	fwrite(bytes, 1, size, f);
	fclose(f);
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

enum fay_rule check(const uint8_t *file, size_t size, const uint8_t *certificate,
		    size_t certificate_size, const struct fay_policy *policy,
		    struct fay_probe_facts *facts, struct check_result *result)
{
	static struct fay_probe_facts all[FAY_IMAGE_MAX_PROBES];
	static void *memory;

	memory = realloc(memory, check_room(size));
	if (!memory)
		abort();
	check_extension(&interface, file, size, certificate, certificate_size, policy, memory,
			check_room(size), all, result);
	checked++;
	accepted += result->refusal.rule == FAY_RULE_NONE;
	if (facts)
		memcpy(facts, all, 4 * sizeof(*facts));
	return result->refusal.rule;
}

/* ---- memory ---- */

struct place {
	uint8_t *pages, *at;
	size_t room, size;
};
static struct place data, out, header, state;
static uint8_t *stack, *code;

static void *map_pages(size_t size, int protection)
{
	void *at = mmap(NULL, size, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (at == MAP_FAILED)
		abort();
	return at;
}

static void make_place(struct place *p, size_t room)
{
	p->room = room;
	p->pages = (uint8_t *)map_pages(room + 2 * STACK, PROT_NONE) + STACK;
	mprotect(p->pages, room, PROT_READ | PROT_WRITE);
}

static void lay(struct place *p, size_t size, size_t alignment, bool at_end)
{
	p->size = size;
	p->at = p->pages + (at_end ? (p->room - size) & ~(alignment - 1) : 0);
}

static bool lies_in(const struct place *p, const uint8_t *at, uint64_t n)
{
	return at >= p->at && at <= p->at + p->size && n <= (uint64_t)(p->at + p->size - at);
}

static bool on_stack(const uint8_t *at, uint64_t n)
{
	return at >= stack && at + n <= stack + STACK - 64;
}

/* ---- helpers ---- */

static const char *wrong;

static uint64_t find(const uint8_t *at, uint64_t n)
{
	volatile uint8_t sum = 0;

	if (n > 64 || !(lies_in(&data, at, n) || lies_in(&out, at, n) || lies_in(&state, at, n) ||
			lies_in(&header, at, n) || on_stack(at, n))) {
		wrong = "what find is given";
		return 0;
	}
	for (uint64_t i = 0; i < n; i++)
		sum += at[i];
	return below(64);
}

static void fill(uint8_t *at)
{
	if (!lies_in(&out, at, 16) && !lies_in(&state, at, 16) && !on_stack(at, 16)) {
		wrong = "what fill is given";
		return;
	}
	for (unsigned i = 0; i < 16; i++)
		at[i] = (uint8_t)below(256);
}

static int64_t note(const uint8_t *at, int64_t n)
{
	if (at != state.at || n < -5 || n > 5)
		wrong = "what note is given";
	return -(int64_t)below(2);
}

/* Nothing of it may be touched any more. */
static void end_place(struct place *p)
{
	mprotect(p->pages, p->room, PROT_NONE);
	p->at = NULL;
	p->size = 0;
}

static void release(void)
{
	end_place(&data);
	end_place(&header);
}

static void discard(const uint8_t *at)
{
	if (!at || at != out.at)
		wrong = "what discard is given";
	end_place(&out);
}

/* ---- calls ---- */

static sigjmp_buf back;
static volatile sig_atomic_t running;

static void ended(int number, siginfo_t *info, void *context)
{
	static char text[64];

	(void)context;
	if (!running)
		_exit(99);
	snprintf(text, sizeof(text), "signal %d at %p", number, info->si_addr);
	wrong = text;
	siglongjmp(back, 1);
}

static void limit(time_t seconds)
{
	setitimer(ITIMER_REAL, &(struct itimerval){ .it_value = { seconds, 0 } }, NULL);
}

static uint64_t word(uint64_t size)
{
	static const uint64_t words[] = { 0,     1,     7,          8,
					  15,    16,    17,         63,
					  64,    255,   1ull << 31, 1ull << 32,
					  ~0ull, ~7ull, 1ull << 63, INT64_MAX };

	return below(2) ? words[below(16)] : size - below(20);
}

/* What is in memory: bytes by chance, or numbers near the size. */
static void lay_out(uint64_t arguments[6], size_t local)
{
	static const uint16_t sizes[] = { 0, 1, 2, 7, 8, 9, 15, 16, 17, 31, 63, 64, 65, 300, 4096 };
	size_t size = below(3) ? sizes[below(15)] : below(40) ? below(70) : 65536;
	size_t room = below(2) ? 16 : 16 + below(60);
	bool at_end = below(3), plain = below(2);
	uint64_t n;

	mprotect(data.pages, data.room, PROT_READ | PROT_WRITE);
	mprotect(header.pages, header.room, PROT_READ | PROT_WRITE);
	mprotect(out.pages, out.room, PROT_READ | PROT_WRITE);
	lay(&data, size, 1, at_end);
	lay(&out, room, 8, at_end);
	lay(&state, local, 64, at_end);
	lay(&header, 64, 8, false);
	header.at = header.pages + PAGE - 16; /* of it 16 bytes may be touched */
	for (size_t i = 0; i < size; i++)
		data.at[i] = (uint8_t)(plain ? below(256) : 0xff);
	n = word(size);
	if (size >= 8)
		memcpy(data.at, &n, 8);
	for (size_t i = 0; i < local; i++)
		state.at[i] = (uint8_t)below(256);
	for (unsigned i = 0; i < 2; i++) {
		n = word(size);
		memcpy(header.at + 8 * i, &n, 8);
	}
	mprotect(data.pages, data.room, PROT_READ);
	memset(stack, (int)below(256), STACK);
	arguments[0] = (uint64_t)data.at;
	arguments[1] = size;
	arguments[2] = (uint64_t)out.at;
	arguments[3] = room;
	arguments[4] = (uint64_t)header.at;
	arguments[5] = (uint64_t)state.at;
}

static const char *run(void (*entry)(void), size_t local)
{
	static const uint64_t saved[] = { 1, 2, 3, 4, 5, 6 };
	uint64_t arguments[6], results[7] = { 0 };

	lay_out(arguments, local);
	wrong = NULL;
	limit(3);
	running = 1;
	if (!sigsetjmp(back, 1)) {
		call(entry, arguments, stack + STACK - 64, results);
		steps++;
		if (memcmp(results + 1, saved, sizeof(saved)))
			wrong = "a saved register is another";
		else if (!wrong && results[0] > RESULT_MOST)
			wrong = "the result is not in its range";
	}
	running = 0;
	limit(0);
	return wrong;
}

const char *execute(const uint8_t *file, size_t size, const uint8_t *certificate,
		    size_t certificate_size, const struct check_result *result,
		    struct fay_probe_facts *facts)
{
	static void (*const helpers[])(void) = { (void (*)(void))find, (void (*)(void))fill,
						 (void (*)(void))note, (void (*)(void))release,
						 (void (*)(void))discard };
	struct fay_arena *arena = fay_arena_create((size_t)16 << 20);
	const char *what = NULL;
	struct check_subject s;
	struct fay_layout l;

	if (fay_read_extension(file, size, &interface, &s).rule == FAY_RULE_NONE &&
	    fay_accept_layout(arena, &s, &l) && l.size <= CODE) {
		mprotect(code, CODE, PROT_READ | PROT_WRITE);
		memcpy(code, l.bytes, l.size);
		for (uint32_t i = 0; i < l.slot_count; i++)
			memcpy(code + l.slots[i].offset, &helpers[l.slots[i].helper], 8);
		mprotect(code, CODE, PROT_READ | PROT_EXEC);
		for (unsigned i = 0; i < RUNS && !what; i++)
			what = run((void (*)(void))(uintptr_t)(code + facts[0].code_offset),
				   s.local_size);
	}
	fay_arena_destroy(arena);
	return what;
}

/* ---- all together ---- */

static uint8_t *slurp(const char *path, size_t *size)
{
	FILE *f = fopen(path, "rb");
	uint8_t *bytes = malloc(FILE_MOST);

	if (!f || !bytes)
		abort();
	*size = fread(bytes, 1, FILE_MOST, f);
	fclose(f);
	return bytes;
}

static void take(const char *path)
{
	struct image *m = &images[image_count];
	struct fay_probe_facts facts[4];
	struct check_subject s;
	struct check_result r;
	const char *what;

	snprintf(m->name, sizeof(m->name), "%s", path);
	m->bytes = slurp(path, &m->size);
	m->interface = &interface;
	fay_host_policy(&interface, &m->policy);
	if (fay_read_extension(m->bytes, m->size, &interface, &s).rule != FAY_RULE_NONE)
		return;
	m->certificate_size = s.certificate.size;
	m->certificate = malloc(s.certificate.size + 1);
	memcpy(m->certificate, s.certificate.bytes, s.certificate.size);
	if (check(m->bytes, m->size, m->certificate, m->certificate_size, &m->policy, facts, &r) !=
	    FAY_RULE_NONE)
		return;
	image_count++;
	what = execute(m->bytes, m->size, m->certificate, m->certificate_size, &r, facts);
	if (what)
		fail(m, what, m->bytes, m->size, m->certificate, m->certificate_size);
}

static void prepare(void)
{
	static const int signals[] = { SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP, SIGALRM };
	struct sigaction action = { .sa_sigaction = ended,
				    .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER };
	stack_t other = { .ss_sp = map_pages(STACK, PROT_READ | PROT_WRITE), .ss_size = STACK };

	make_place(&data, 65536);
	make_place(&out, PAGE);
	make_place(&header, PAGE);
	make_place(&state, PAGE);
	stack = map_pages(STACK, PROT_READ | PROT_WRITE);
	code = map_pages(CODE, PROT_READ);
	sigaltstack(&other, NULL);
	for (unsigned i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
		sigaction(signals[i], &action, NULL);
}

int main(int argc, char **argv)
{
	char message[256], *text;
	size_t size;

	if (argc < 5) {
		fprintf(stderr, "usage: test_changed CHANGES SEED CASES.HOST IMAGE...\n");
		return 2;
	}
	seed = strtoull(argv[2], NULL, 0) * 2 + 1;
	text = (char *)slurp(argv[3], &size);
	if (!fay_host_compile(text, size, &interface, NULL, message, sizeof(message))) {
		fprintf(stderr, "%s:%s\n", argv[3], message);
		return 2;
	}
	prepare();
	for (int i = 4; i < argc && image_count < IMAGES_MAX; i++)
		take(argv[i]);
	for (unsigned k = 0; k < MUTATION_KINDS; k++) {
		const struct mutation_counts *count = &mutation_counts[k];

		for (unsigned i = 0; i < image_count; i++)
			mutate(&images[i], k, (unsigned)strtoul(argv[1], NULL, 0));
		printf("%s: %lu tried, %lu refused, %lu accepted, %lu of these called\n",
		       k == MUTATION_CODE ? "changed code" : "changed certificates", count->tried,
		       count->tried - count->accepted, count->accepted, count->executed);
	}
	printf("%u extensions, %llu calls; %lu failures\n", image_count, (unsigned long long)steps,
	       failures);
	return failures != 0 || image_count < 20;
}
