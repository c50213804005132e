/* SPDX-License-Identifier: MIT */
/*
 * Runs one kernel in several builds, interleaved, over the same input, and compares results.
 *
 *     fay_bench_extensions ROUNDS KERNEL INPUT INTERFACE LABEL=BUILD...
 *     fay_bench_extensions --calls ROUNDS INTERFACE IMAGE LIBRARY
 *
 * The first BUILD is the base, a function `kernel` in a *.so. Others are images of extensions
 * (*.fay), *.so whose memory is their own (they have `place`), commands, which get INPUT as their
 * last word, and say for each line that they read the nanoseconds of one call and its result, and
 * process:*.so, native code in a process of its own under seccomp's strict mode, which shares the
 * memory with this one and is called through two pipes. Each round calls each
 * build twice, in changing order, and takes the time of the second call. One JSON object a build.
 * --calls: what a call costs beside one of the same function in the program, and beside one of
 * LIBRARY's in such a process; how long loading takes and what an instance needs.
 */
#include <dlfcn.h>
#include <linux/seccomp.h>
#include <malloc.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "fay/host/host.h"

#define BUILDS 8
#define ROOM ((size_t)1 << 20)
#define CALLS 100000u

typedef uint64_t kernel_function(const uint8_t *data, uint64_t size, uint8_t *out, uint64_t room,
				 void *state);

struct build {
	const char *label, *path;
	kernel_function *code; /* NULL: a command, or in a process of its own */
	uint8_t *data, *out, *state;
	int ask, answer; /* of such a process; 0: none */
	FILE *to, *from;
	uint64_t result, *ns;
};

static struct build builds[BUILDS];
static unsigned build_count, rounds;
static uint8_t *input;
static size_t input_size;

static void __attribute__((noreturn)) die(const char *what, const char *of)
{
	fprintf(stderr, "fay_bench_extensions: %s: %s\n", of, what);
	exit(1);
}

static uint64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static uint8_t *read_file(const char *path, size_t *size)
{
	FILE *file = fopen(path, "rb");
	uint8_t *bytes = aligned_alloc(64, ROOM);

	if (!file || !bytes)
		die("cannot be read", path);
	*size = fread(bytes, 1, ROOM, file);
	fclose(file);
	return bytes;
}

static void *zeroed(size_t size)
{
	void *p = aligned_alloc(64, size);

	if (!p)
		die("out of memory", "memory");
	return memset(p, 0, size);
}

static struct fay_host *open_host(const char *path)
{
	struct fay_error error;
	struct fay_host *host;
	size_t size;
	uint8_t *text = read_file(path, &size);

	if (fay_host_open((const char *)text, size, &host, &error))
		die(error.message, path);
	free(text);
	return host;
}

static struct fay_loaded *load_image(const struct fay_host *host, const char *path)
{
	struct fay_loaded *loaded;
	struct fay_error error;
	size_t size;
	uint8_t *image = read_file(path, &size);

	if (fay_host_load(host, image, size, &loaded, &error))
		die(error.message, path);
	free(image);
	return loaded;
}

/* ---- kernels ---- */

static void open_library(struct build *b)
{
	void *library = dlopen(b->path, RTLD_NOW | RTLD_LOCAL);
	uint8_t *(*place)(unsigned) = NULL;

	if (!library)
		die(dlerror(), b->path);
	b->code = (kernel_function *)dlsym(library, "kernel");
	place = (uint8_t *(*)(unsigned))dlsym(library, "place");
	if (!b->code)
		die("no function kernel", b->path);
	b->data = place ? place(0) : zeroed(ROOM);
	b->out = place ? place(1) : zeroed(ROOM);
	b->state = place ? place(2) : zeroed(65536);
}

static void open_image(struct build *b, const char *interface)
{
	struct fay_host *host = open_host(interface);
	struct fay_loaded *loaded = load_image(host, b->path);

	b->code = (kernel_function *)fay_loaded_entry(loaded, "kernel");
	if (!b->code)
		die("no function kernel", b->path);
	b->data = zeroed(ROOM);
	b->out = zeroed(ROOM);
	b->state = fay_loaded_instance(loaded);
	fay_host_close(host);
}

static void open_command(struct build *b, const char *path)
{
	int to[2], from[2];
	char line[4096];

	snprintf(line, sizeof(line), "exec %s %s", b->path, path);
	if (pipe(to) || pipe(from))
		die("no pipe", b->label);
	if (!fork()) {
		dup2(to[0], 0);
		dup2(from[1], 1);
		close(to[1]);
		close(from[0]);
		execl("/bin/sh", "sh", "-c", line, (char *)NULL);
		_exit(127);
	}
	close(to[0]);
	close(from[1]);
	b->to = fdopen(to[1], "w");
	b->from = fdopen(from[0], "r");
}

/* The pipe's other ends: a size comes, the result goes. */
static void __attribute__((noreturn)) serve(const struct build *b, int ask, int answer)
{
	uint64_t size;

	if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT))
		die("no seccomp", b->label);
	while (read(ask, &size, sizeof(size)) == sizeof(size)) {
		uint64_t result = b->code(b->data, size, b->out, ROOM - 64, b->state);

		if (write(answer, &result, sizeof(result)) != sizeof(result))
			break;
	}
	for (;;)
		syscall(SYS_exit, 0);
}

static void open_process(struct build *b)
{
	struct build inner = { .label = b->label, .path = b->path + strlen("process:") };
	uint8_t *shared =
		mmap(NULL, 2 * ROOM, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int to[2], from[2];

	if (shared == MAP_FAILED || pipe(to) || pipe(from))
		die("no pipe or memory", b->label);
	b->data = shared;
	b->out = shared + ROOM;
	if (!fork()) {
		close(to[1]);
		close(from[0]);
		open_library(&inner);
		inner.data = shared;
		inner.out = shared + ROOM;
		serve(&inner, to[0], from[1]);
	}
	close(to[0]);
	close(from[1]);
	b->ask = to[1];
	b->answer = from[0];
}

static uint64_t call_process(const struct build *b, uint64_t size)
{
	uint64_t result;

	if (write(b->ask, &size, sizeof(size)) != sizeof(size) ||
	    read(b->answer, &result, sizeof(result)) != sizeof(result))
		die("its process does not answer", b->label);
	return result;
}

static bool ends(const char *text, const char *with)
{
	size_t n = strlen(text), m = strlen(with);

	return n >= m && !strcmp(text + n - m, with);
}

static void open_build(struct build *b, char *word, const char *path, const char *interface)
{
	char *equals = strchr(word, '=');

	if (!equals)
		die("LABEL=BUILD is wanted", word);
	*equals = 0;
	b->label = word;
	b->path = equals + 1;
	b->ns = calloc(rounds, sizeof(*b->ns));
	if (!b->ns)
		die("out of memory", b->label);
	if (!strncmp(b->path, "process:", strlen("process:")))
		open_process(b);
	else if (ends(b->path, ".so"))
		open_library(b);
	else if (ends(b->path, ".fay"))
		open_image(b, interface);
	else
		open_command(b, path);
	if (b->data)
		memcpy(b->data, input, input_size);
}

static uint64_t call(struct build *b)
{
	uint64_t start = now();

	if (b->code) {
		b->result = b->code(b->data, input_size, b->out, ROOM - 64, b->state);
		return now() - start;
	}
	if (b->ask) {
		b->result = call_process(b, input_size);
		return now() - start;
	}
	fputs("\n", b->to);
	fflush(b->to);
	if (fscanf(b->from, "%lu %lu", &start, &b->result) != 2)
		die("says no time and result", b->label);
	return start;
}

static void run_round(unsigned round)
{
	for (unsigned i = 0; i < build_count; i++) {
		struct build *b = &builds[(i + round) % build_count];

		call(b);
		b->ns[round] = call(b);
		if (b->out && memcmp(b->out, builds[0].out, round ? 65536 : 0))
			die("other output than the base", b->label);
	}
	for (unsigned i = 1; i < build_count; i++)
		if (builds[i].result != builds[0].result)
			die("another result than the base", builds[i].label);
}

/* ---- figures ---- */

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static void print_quartiles(const char *name, double *v)
{
	qsort(v, rounds, sizeof(*v), compare);
	printf(",\"%s\":%.4f,\"%s_q1\":%.4f,\"%s_q3\":%.4f", name, v[rounds / 2], name,
	       v[rounds / 4], name, v[rounds - 1 - rounds / 4]);
}

static void print(const char *kernel, const struct build *b, double *v)
{
	printf("{\"kernel\":\"%s\",\"build\":\"%s\",\"bytes\":%zu", kernel, b->label, input_size);
	for (unsigned i = 0; i < rounds; i++)
		v[i] = (double)b->ns[i];
	print_quartiles("ns", v);
	for (unsigned i = 0; i < rounds; i++)
		v[i] = (double)builds[0].ns[i] / (double)b->ns[i];
	print_quartiles("of_base", v); /* throughput */
	printf("}\n");
}

/* ---- calls ---- */

static uint64_t __attribute__((noinline)) direct(const uint8_t *data, uint64_t size, uint8_t *out,
						 uint64_t room, void *state)
{
	__asm__ volatile("" : : "r"(data), "r"(out), "r"(room), "r"(state));
	return size + 1;
}

/* Nanoseconds of one call, of many. */
static double time_calls(kernel_function *code, const uint8_t *data, uint8_t *out, void *state)
{
	uint64_t start = now(), n = 1;

	for (unsigned i = 0; i < CALLS; i++)
		n = code(data, n & 63, out, 64, state); /* each waits for the one before */
	__asm__ volatile("" : : "r"(n));
	return (double)(now() - start) / CALLS;
}

static double time_direct(const uint8_t *data, uint8_t *out, void *state)
{
	uint64_t start = now(), n = 1;

	for (unsigned i = 0; i < CALLS; i++)
		n = direct(data, n & 63, out, 64, state);
	__asm__ volatile("" : : "r"(n));
	return (double)(now() - start) / CALLS;
}

static double time_load(const struct fay_host *host, const uint8_t *image, size_t size)
{
	uint64_t start = now();
	struct fay_loaded *loaded;
	struct fay_error error;

	if (fay_host_load(host, image, size, &loaded, &error))
		die(error.message, "load");
	start = now() - start;
	fay_host_unload(loaded);
	return (double)start / 1e3;
}

/* Microseconds of one call into the process, of some. */
static double time_process(const struct build *b)
{
	enum { SOME = 200 };
	uint64_t start = now(), n = 1;

	for (unsigned i = 0; i < SOME; i++)
		n = call_process(b, n & 63);
	return (double)(now() - start) / 1e3 / SOME;
}

static int calls(const char *interface, const char *path, const char *library)
{
	enum { INSTANCES = 1000 };
	struct build process = { .label = "process", .path = library };
	static uint8_t data[64], out[64];
	struct fay_host *host = open_host(interface);
	struct fay_loaded *loaded = load_image(host, path);
	kernel_function *code = (kernel_function *)fay_loaded_entry(loaded, "kernel");
	size_t size, before;
	uint8_t *image = read_file(path, &size);
	void *state = fay_loaded_instance(loaded);
	double *v[4];

	open_process(&process);
	for (unsigned i = 0; i < 4; i++)
		v[i] = zeroed((rounds * sizeof(double) + 63) / 64 * 64);
	for (unsigned i = 0; i < rounds; i++) {
		v[0][i] = time_direct(data, out, state);
		v[1][i] = time_calls(code, data, out, state) - v[0][i];
		v[2][i] = time_load(host, image, size);
		v[3][i] = time_process(&process);
	}
	before = mallinfo2().uordblks;
	for (unsigned i = 0; i < INSTANCES; i++)
		fay_loaded_instance(loaded);
	printf("{\"image\":%zu", size);
	print_quartiles("direct_ns", v[0]);
	print_quartiles("above_ns", v[1]);
	print_quartiles("load_us", v[2]);
	print_quartiles("process_us", v[3]);
	printf(",\"instance_bytes\":%.1f,\"local_bytes\":%zu}\n",
	       (double)(mallinfo2().uordblks - before) / INSTANCES, fay_loaded_local_size(loaded));
	return 0;
}

int main(int argc, char **argv)
{
	double *v;

	if (argc == 6 && !strcmp(argv[1], "--calls")) {
		rounds = (unsigned)atoi(argv[2]);
		return rounds ? calls(argv[3], argv[4], argv[5]) : 2;
	}
	rounds = argc > 5 ? (unsigned)atoi(argv[1]) : 0;
	if (!rounds || argc - 5 > BUILDS) {
		fputs("usage: fay_bench_extensions ROUNDS KERNEL INPUT INTERFACE LABEL=BUILD...\n",
		      stderr);
		return 2;
	}
	input = read_file(argv[3], &input_size);
	for (int i = 5; i < argc; i++)
		open_build(&builds[build_count++], argv[i], argv[3], argv[4]);
	for (unsigned round = 0; round < rounds; round++)
		run_round(round);
	v = zeroed((rounds * sizeof(*v) + 63) / 64 * 64);
	for (unsigned i = 0; i < build_count; i++)
		print(argv[2], &builds[i], v);
	return 0;
}
