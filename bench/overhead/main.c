/* SPDX-License-Identifier: MIT */
/*
 * Runs one kernel in several builds, interleaved, over the same bytes of state, and compares what
 * they leave there.
 *
 *     fay_bench_overhead ROUNDS KERNEL LABEL=FILE...
 *
 * The first FILE is the base. *.so is a plain function made by clang from kernel.h; anything else
 * is an image, which is verified first (under `speculation: confined` if its label begins with
 * "confined"); exactly the bytes of the verifier's layout are mapped and run. Each round sets the
 * state up, calls once to warm up, sets it up again and takes the time of one call, for every
 * build, in changing order. One JSON object a build is printed: cycles are those of the time stamp
 * counter; `instructions` are counted by single-stepping one call.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <x86intrin.h>

#include "fay/event.h"
#include "fay/verify.h"

#define BUILDS 8
#define PAGE 4096u

typedef void kernel_function(const struct fay_event *event, void *local, void *global);
typedef void setup_function(void *state, struct fay_event *event, uint64_t *seed);

struct build {
	const char *label, *path;
	kernel_function *code;
	uint8_t *local;
	size_t size; /* of the code, 0 if not known */
	uint64_t *cycles, instructions;
	double verify_ms;
};

static struct build builds[BUILDS];
static unsigned build_count;
static setup_function *setup;
static size_t state_size;
static uint8_t global[64] __attribute__((aligned(64)));

static void die(const char *what, const char *path)
{
	fprintf(stderr, "fay_bench_overhead: %s: %s\n", path, what);
	exit(1);
}

static void *map(size_t size)
{
	void *p = mmap(NULL, (size + PAGE - 1) / PAGE * PAGE, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		die("out of memory", "mmap");
	return p;
}

static void load_plain(struct build *b)
{
	void *handle = dlopen(b->path, RTLD_NOW | RTLD_LOCAL);
	const size_t *size = handle ? dlsym(handle, "state_size") : NULL;

	if (!size)
		die(dlerror(), b->path);
	b->code = (kernel_function *)dlsym(handle, "kernel");
	setup = (setup_function *)dlsym(handle, "setup");
	if (!b->code || !setup)
		die("no kernel() or setup()", b->path);
	state_size = *size;
	b->local = map(state_size);
}

static uint8_t *read_file(const char *path, size_t *size)
{
	struct stat st;
	FILE *f = fopen(path, "rb");
	uint8_t *bytes;

	if (!f || fstat(fileno(f), &st))
		die("cannot be read", path);
	*size = (size_t)st.st_size;
	bytes = malloc(*size);
	if (!bytes || fread(bytes, 1, *size, f) != *size)
		die("cannot be read", path);
	fclose(f);
	return bytes;
}

static double milliseconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static void load_image(struct build *b)
{
	size_t size;
	uint8_t *bytes = read_file(b->path, &size), *place;
	struct fay_policy policy;
	struct fay_verdict verdict;
	double start = milliseconds();

	fay_policy_default(&policy);
	policy.speculation_confined = !strncmp(b->label, "confined", 8);
	fay_verify(bytes, size, &policy, &verdict);
	b->verify_ms = milliseconds() - start;
	if (verdict.outcome != FAY_ACCEPTED) {
		fay_verdict_print(stderr, b->path, &verdict);
		die("not accepted by the verifier", b->path);
	}
	if (verdict.layout.slot_count || verdict.probe_count != 1)
		die("helpers or several probes: not a kernel", b->path);
	place = map(verdict.layout.size);
	memcpy(place, verdict.layout.bytes, verdict.layout.size);
	if (mprotect(place, (verdict.layout.size + PAGE - 1) / PAGE * PAGE, PROT_READ | PROT_EXEC))
		die("cannot be made executable", b->path);
	b->code = (kernel_function *)(place + verdict.probes[0].code_offset);
	b->size = verdict.layout.code_size;
	if (verdict.schema.local_size < state_size)
		die("less state than the base", b->path);
	b->local = map(verdict.schema.local_size);
	fay_verdict_deinit(&verdict);
	free(bytes);
}

static void prepare(struct build *b, struct fay_event *event, uint64_t seed)
{
	memset(b->local, 0, state_size);
	memset(event, 0, sizeof(*event));
	setup(b->local, event, &seed);
}

static uint64_t time_call(struct build *b, const struct fay_event *event)
{
	unsigned unused;
	uint64_t start;

	_mm_lfence();
	start = __rdtsc();
	_mm_lfence();
	b->code(event, b->local, global);
	start = __rdtscp(&unused) - start;
	_mm_lfence();
	return start;
}

static void run_round(unsigned round)
{
	static struct fay_event event __attribute__((aligned(64)));
	uint64_t seed = 0x9e3779b97f4a7c15u + round % 8;

	for (unsigned i = 0; i < build_count; i++) {
		struct build *b = &builds[(i + round) % build_count];

		for (unsigned n = 0; n < 3; n++) {
			prepare(b, &event, seed);
			b->cycles[round] = time_call(b, &event);
		}
	}
	for (unsigned i = 1; i < build_count; i++)
		if (memcmp(builds[i].local, builds[0].local, state_size))
			die("leaves other results than the base", builds[i].path);
}

/* Instructions of one call: from the first one of the kernel to the return. */
static uint64_t count_instructions(struct build *b)
{
	static struct fay_event event;
	struct user_regs_struct r;
	uint64_t count = 0, back = 0;
	int status;
	pid_t child;

	prepare(b, &event, 0x9e3779b97f4a7c15u);
	child = fork();
	if (!child) {
		ptrace(PTRACE_TRACEME, 0, NULL, NULL);
		raise(SIGSTOP);
		b->code(&event, b->local, global);
		_exit(0);
	}
	while (waitpid(child, &status, 0) == child && WIFSTOPPED(status)) {
		ptrace(PTRACE_GETREGS, child, NULL, &r);
		if (!back && r.rip == (uint64_t)b->code)
			back = (uint64_t)ptrace(PTRACE_PEEKDATA, child, (void *)r.rsp, NULL);
		if (back && r.rip == back) {
			ptrace(PTRACE_KILL, child, NULL, NULL);
			waitpid(child, &status, 0);
			return count;
		}
		count += back != 0;
		ptrace(PTRACE_SINGLESTEP, child, NULL, NULL);
	}
	return 0;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

struct quartiles {
	double low, median, high;
};

static struct quartiles quartiles_of(double *v, unsigned n)
{
	qsort(v, n, sizeof(*v), compare);
	return (struct quartiles){ v[n / 4], v[n / 2], v[n - 1 - n / 4] };
}

static void print(const char *kernel, const struct build *b, unsigned rounds)
{
	double *v = malloc(rounds * sizeof(*v));
	struct quartiles q;

	if (!v)
		exit(4);
	for (unsigned i = 0; i < rounds; i++)
		v[i] = (double)b->cycles[i];
	q = quartiles_of(v, rounds);
	printf("{\"kernel\":\"%s\",\"build\":\"%s\",\"cycles\":%.0f,\"cycles_q1\":%.0f,\"cycles_"
	       "q3\":%.0f,\"instructions\":%lu",
	       kernel, b->label, q.median, q.low, q.high, b->instructions);
	for (unsigned k = 0; k < build_count && strchr(builds[k].path, '.') &&
			     !strcmp(strrchr(builds[k].path, '.'), ".so");
	     k++) {
		for (unsigned i = 0; i < rounds; i++)
			v[i] = (double)b->cycles[i] / (double)builds[k].cycles[i];
		q = quartiles_of(v, rounds);
		printf(",\"to_%s\":%.4f,\"to_%s_q1\":%.4f,\"to_%s_q3\":%.4f", builds[k].label,
		       q.median, builds[k].label, q.low, builds[k].label, q.high);
	}
	if (b->size)
		printf(",\"code_bytes\":%zu,\"verify_ms\":%.2f", b->size, b->verify_ms);
	printf("}\n");
	free(v);
}

int main(int argc, char **argv)
{
	unsigned rounds = argc > 3 ? (unsigned)atoi(argv[1]) : 0;

	if (!rounds || argc - 3 > BUILDS) {
		fputs("usage: fay_bench_overhead ROUNDS KERNEL LABEL=FILE...\n", stderr);
		return 2;
	}
	for (int i = 3; i < argc; i++) {
		struct build *b = &builds[build_count++];
		char *equals = strchr(argv[i], '=');

		if (!equals)
			die("expected LABEL=FILE", argv[i]);
		*equals = 0;
		b->label = argv[i];
		b->path = equals + 1;
		b->cycles = calloc(rounds, sizeof(*b->cycles));
		if (!b->cycles)
			exit(4);
		if (strlen(b->path) > 3 && !strcmp(b->path + strlen(b->path) - 3, ".so"))
			load_plain(b);
		else
			load_image(b);
	}
	for (unsigned round = 0; round < rounds; round++)
		run_round(round);
	for (unsigned i = 0; i < build_count; i++) {
		builds[i].instructions = count_instructions(&builds[i]);
		print(argv[2], &builds[i], rounds);
	}
	return 0;
}
