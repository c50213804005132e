/* SPDX-License-Identifier: MIT */
/*
 * storm [-q QUERY]... PID CYCLES [IMAGE...]: attaches the images' and queries' probes to a busy
 * process and detaches them, in turn, CYCLES times. Afterwards the text of all its modules must be
 * byte for byte what it was, and nothing of fay's be mapped. SIGINT ends it early. Prints what was
 * counted; exits with 1 if anything is not as it was. -e: the process may end; each cycle's text is
 * compared, and the cycles until the end count.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "fay/loader.h"
#include "fay/trace.h"

#define ASKED_MAX 8
#define KNOWN_MAX 4096u

static int fail(const char *what, const struct fay_error *error)
{
	fprintf(stderr, "storm: %s%s%s\n", what, error ? ": " : "", error ? error->message : "");
	return 1;
}

static int read_image(const char *path, struct fay_verdict *verdict)
{
	static unsigned char bytes[1 << 20];
	struct fay_policy policy;
	FILE *file = fopen(path, "re");
	size_t size = file ? fread(bytes, 1, sizeof(bytes), file) : 0;
	if (file)
		fclose(file);
	fay_policy_default(&policy);
	fay_verify(bytes, size, &policy, verdict);
	return verdict->outcome == FAY_ACCEPTED ? 0 : fail("the image was refused", NULL);
}

/* Whether a mapping was there when the text was first looked at: what a program loads later is its
 * own affair. */
static int is_known(unsigned long start, unsigned long end, int first)
{
	static struct {
		unsigned long start, end;
	} known[KNOWN_MAX];
	static size_t count;
	if (first && count < KNOWN_MAX) {
		known[count].start = start;
		known[count++].end = end;
	}
	for (size_t i = 0; i < count; i++)
		if (start >= known[i].start && end <= known[i].end)
			return 1;
	return 0;
}

/* Not so: the heap that SBCL maps from a file, and changes. */
static int is_elf(const char *path)
{
	char magic[4] = { 0 };
	FILE *file = fopen(path, "re");
	if (!file)
		return 1;
	size_t got = fread(magic, 1, sizeof(magic), file);
	fclose(file);
	return got == sizeof(magic) && !memcmp(magic, "\177ELF", sizeof(magic));
}

/* FNV-1a of everything executable that comes from an object file; 0: cannot be read. `ours`:
 * mappings of fay's. */
static uint64_t text_hash(pid_t pid, unsigned *ours)
{
	char path[64], line[1024], permissions[8], name[800];
	static unsigned char bytes[1 << 16];
	uint64_t hash = 0xcbf29ce484222325u;
	unsigned long start, end;
	snprintf(path, sizeof(path), "/proc/%d/mem", pid);
	int memory = open(path, O_RDONLY | O_CLOEXEC);
	snprintf(path, sizeof(path), "/proc/%d/maps", pid);
	FILE *maps = fopen(path, "re");
	static int calls;
	int first = !calls++;
	*ours = 0;
	while (maps && memory >= 0 && fgets(line, sizeof(line), maps)) {
		name[0] = 0;
		if (sscanf(line, "%lx-%lx %7s %*s %*s %*s %799s", &start, &end, permissions, name) <
		    3)
			continue;
		*ours += strstr(name, "memfd:fay-") != NULL;
		if (permissions[2] != 'x' || name[0] != '/' || strstr(name, "memfd:") ||
		    !is_elf(name) || !is_known(start, end, first))
			continue;
		for (unsigned long at = start; at < end;) {
			ssize_t got = pread(memory, bytes,
					    end - at < sizeof(bytes) ? end - at : sizeof(bytes),
					    (off_t)at);
			if (got <= 0)
				break;
			for (ssize_t i = 0; i < got; i++)
				hash = (hash ^ bytes[i]) * 0x100000001b3u;
			at += (unsigned long)got;
		}
	}
	if (maps)
		fclose(maps);
	if (memory >= 0)
		close(memory);
	return maps && memory >= 0 ? hash : 0;
}

/* No such process, or one that nobody has waited for, or that has given up its memory. */
static int has_ended(pid_t pid)
{
	char path[64], link[2], state = 'X';
	snprintf(path, sizeof(path), "/proc/%d/exe", pid);
	if (readlink(path, link, sizeof(link)) < 0)
		return 1;
	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	FILE *file = fopen(path, "re");
	if (!file)
		return 1;
	if (fscanf(file, "%*d (%*[^)]) %c", &state) != 1)
		state = 'X';
	fclose(file);
	return state == 'Z' || state == 'X';
}

/* One that is about to be gone is waited for. */
static int is_ending(pid_t pid)
{
	for (unsigned i = 0; i < 100; i++) {
		if (has_ended(pid))
			return 1;
		usleep(20000);
	}
	return 0;
}

static int ended_after(unsigned long cycles)
{
	printf("%lu cycles, then the process ended\n", cycles);
	return 0;
}

struct figures {
	unsigned long attached, refused, used;
	unsigned long asked, answered;        /* queries, and those that had rows */
	uint64_t asking;                      /* ns until they were attached */
	uint64_t pause, attaching, detaching; /* ns; the longest, and sums */
	size_t points;
	char reason[256]; /* of the last refusal */
};

static uint64_t now_ns(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Threads that stay where they are in the way: allowed, and said. */
static int put_off(struct figures *figures, const struct fay_error *error)
{
	figures->refused++;
	snprintf(figures->reason, sizeof(figures->reason), "%.200s", error->message);
	return 0;
}

static int one_cycle(struct fay_target *target, const struct fay_verdict *verdict,
		     unsigned long cycle, struct figures *figures)
{
	struct fay_attach_options options = { .size = sizeof(options), .stop_timeout_ms = 20000 };
	struct fay_session *session;
	struct fay_error error;
	size_t size;
	uint64_t began = now_ns();
	int code = fay_session_attach(target, verdict, &options, &session, &error);
	if (code == FAY_E_LIMIT)
		return put_off(figures, &error);
	if (code)
		return fail("attach", &error);
	figures->attaching += now_ns() - began;
	figures->attached++;
	figures->points = fay_session_point_count(session);
	usleep(cycle * 7919 % 2000);
	began = now_ns();
	if (fay_session_detach(session, &error))
		return fail("detach", &error);
	figures->detaching += now_ns() - began;
	figures->used +=
		__atomic_load_n(&fay_session_shm(session, &size)->slot_next, __ATOMIC_RELAXED) != 0;
	uint64_t pause = fay_session_longest_pause(session);
	figures->pause = pause > figures->pause ? pause : figures->pause;
	fay_session_destroy(session);
	return 0;
}

static void count_row(void *events, const struct fay_row *row)
{
	*(uint64_t *)events += row->final;
}

/* As `fay trace` does it, with what the session's side does for queries: tables for stacks. */
static int one_query(pid_t pid, const char *query, unsigned long cycle, struct figures *figures)
{
	uint64_t rows = 0;
	struct fay_tracer_options options = { .size = sizeof(options),
					      .pids = &pid,
					      .pid_count = 1,
					      .context = &rows,
					      .row = count_row };
	struct fay_tracer *tracer;
	struct fay_error error;
	uint64_t began = now_ns();
	int code = fay_tracer_open(query, &options, &tracer, &error);
	if (code == FAY_E_LIMIT)
		return put_off(figures, &error);
	if (code)
		return fail("attach a query", &error);
	figures->asking += now_ns() - began;
	figures->asked++;
	usleep(cycle * 7919 % 2000);
	code = fay_tracer_step(tracer, 0, &error);
	if (!code)
		code = fay_tracer_finish(tracer, &error);
	fay_tracer_close(tracer);
	figures->answered += rows != 0;
	return code ? fail("a query", &error) : 0;
}

static volatile sig_atomic_t enough;

static void on_signal(int number)
{
	(void)number;
	enough = 1;
}

struct asked {
	size_t images, queries;
	struct fay_verdict verdicts[ASKED_MAX];
	const char *texts[ASKED_MAX];
};

/* Leaves optind at PID. */
static int read_arguments(int argc, char **argv, struct asked *asked, int *may_end)
{
	for (int option; (option = getopt(argc, argv, "eq:")) != -1;) {
		if (option == 'q' && asked->queries < ASKED_MAX)
			asked->texts[asked->queries++] = optarg;
		else if (option == 'e')
			*may_end = 1;
		else
			return 1;
	}
	int images = argc - optind - 2;
	if (images < 0 || images > ASKED_MAX || !(images + (int)asked->queries))
		return 1;
	asked->images = (size_t)images;
	return 0;
}

static int next_cycle(struct fay_target *target, pid_t pid, const struct asked *asked,
		      unsigned long cycle, struct figures *figures)
{
	size_t turn = cycle % (asked->images + asked->queries);
	return turn < asked->images
		       ? one_cycle(target, &asked->verdicts[turn], cycle, figures)
		       : one_query(pid, asked->texts[turn - asked->images], cycle, figures);
}

static void print_figures(const struct figures *f, unsigned long cycles)
{
	unsigned long attached = f->attached + !f->attached, asked = f->asked + !f->asked;
	printf("%lu cycles: %lu attached (%zu functions in the last), %lu put off for good%s%s, "
	       "events in %lu of them, longest pause %.3f ms, "
	       "attaching %.1f ms, detaching %.1f ms on average, ",
	       cycles, f->attached + f->asked, f->points, f->refused,
	       f->reason[0] ? ", the last since " : "", f->reason, f->used + f->answered,
	       (double)f->pause / 1e6, (double)f->attaching / 1e6 / (double)attached,
	       (double)f->detaching / 1e6 / (double)attached);
	if (f->asked)
		printf("%lu of them queries, rows in %lu, attaching %.1f ms, ", f->asked,
		       f->answered, (double)f->asking / 1e6 / (double)asked);
}

int main(int argc, char **argv)
{
	static struct asked asked;
	struct figures figures = { 0 };
	struct fay_target *target;
	struct fay_error error;
	unsigned ours_before, ours = 0;
	int may_end = 0;
	if (read_arguments(argc, argv, &asked, &may_end))
		return fail("usage: storm [-e] [-q QUERY]... PID CYCLES [IMAGE...]", NULL);
	pid_t pid = atoi(argv[optind]);
	unsigned long cycles = strtoul(argv[optind + 1], NULL, 10);
	for (size_t i = 0; i < asked.images; i++)
		if (read_image(argv[optind + 2 + (int)i], &asked.verdicts[i]))
			return 1;
	uint64_t before = text_hash(pid, &ours_before);
	if (!before || fay_target_open_pid(pid, &target, &error))
		return may_end && is_ending(pid) ? ended_after(0)
						 : fail("the process cannot be read", NULL);
	signal(SIGINT, on_signal);
	for (unsigned long i = 0; i < cycles; i++) {
		if (enough)
			cycles = i;
		else if (next_cycle(target, pid, &asked, i, &figures))
			return may_end && is_ending(pid) ? ended_after(i) : 1;
		if (may_end && text_hash(pid, &ours) != before)
			return is_ending(pid) ? ended_after(i) : fail("the text has CHANGED", NULL);
	}
	uint64_t after = text_hash(pid, &ours);
	fay_target_close(target);
	print_figures(&figures, cycles);
	printf("text %s, %u mappings left\n", after == before ? "as it was" : "CHANGED",
	       ours - ours_before);
	return after != before || ours != ours_before || figures.refused * 20 > cycles + 40 ||
	       (!figures.used && !figures.answered && !may_end);
}
