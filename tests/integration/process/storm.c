/* SPDX-License-Identifier: MIT */
/*
 * storm PID CYCLES IMAGE...: attaches the images' probes to a busy process and detaches them, in
 * turn, CYCLES times. Afterwards the text of all its modules must be byte for byte what it was, and
 * nothing of fay's be mapped. SIGINT ends it early. Prints what was counted; exits with 1 if
 * anything is not as it was. storm -e PID ...: the process may end; each cycle's text is compared,
 * and the cycles until the end count.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "fay/loader.h"

#define IMAGES_MAX 8
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

static int one_cycle(struct fay_target *target, const struct fay_verdict *verdict,
		     unsigned long cycle, struct figures *figures)
{
	struct fay_attach_options options = { .size = sizeof(options), .stop_timeout_ms = 20000 };
	struct fay_session *session;
	struct fay_error error;
	size_t size;
	uint64_t began = now_ns();
	int code = fay_session_attach(target, verdict, &options, &session, &error);
	/* threads that stay where they are in the way: allowed, and said */
	if (code == FAY_E_LIMIT) {
		figures->refused++;
		snprintf(figures->reason, sizeof(figures->reason), "%.200s", error.message);
		return 0;
	}
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

static volatile sig_atomic_t enough;

static void on_signal(int number)
{
	(void)number;
	enough = 1;
}

int main(int argc, char **argv)
{
	static struct fay_verdict verdicts[IMAGES_MAX];
	struct figures figures = { 0 };
	struct fay_target *target;
	struct fay_error error;
	unsigned ours_before, ours = 0;
	int may_end = argc > 1 && !strcmp(argv[1], "-e");
	argc -= may_end;
	argv += may_end;
	int images = argc - 3;
	if (images < 1 || images > IMAGES_MAX)
		return fail("usage: storm [-e] PID CYCLES IMAGE...", NULL);
	pid_t pid = atoi(argv[1]);
	unsigned long cycles = strtoul(argv[2], NULL, 10);
	for (int i = 0; i < images; i++)
		if (read_image(argv[3 + i], &verdicts[i]))
			return 1;
	uint64_t before = text_hash(pid, &ours_before);
	if (!before || fay_target_open_pid(pid, &target, &error))
		return may_end && is_ending(pid) ? ended_after(0)
						 : fail("the process cannot be read", NULL);
	signal(SIGINT, on_signal);
	for (unsigned long i = 0; i < cycles; i++) {
		if (enough)
			cycles = i;
		else if (one_cycle(target, &verdicts[i % (unsigned)images], i, &figures))
			return may_end && is_ending(pid) ? ended_after(i) : 1;
		if (may_end && text_hash(pid, &ours) != before)
			return is_ending(pid) ? ended_after(i) : fail("the text has CHANGED", NULL);
	}
	uint64_t after = text_hash(pid, &ours);
	fay_target_close(target);
	printf("%lu cycles: %lu attached (%zu functions in the last), %lu put off for good%s%s, "
	       "events in %lu of them, longest pause %.3f ms, "
	       "attaching %.1f ms, detaching %.1f ms on average, text %s, %u mappings left\n",
	       cycles, figures.attached, figures.points, figures.refused,
	       figures.reason[0] ? ", the last since " : "", figures.reason, figures.used,
	       (double)figures.pause / 1e6,
	       (double)figures.attaching / 1e6 / (double)(figures.attached + !figures.attached),
	       (double)figures.detaching / 1e6 / (double)(figures.attached + !figures.attached),
	       after == before ? "as it was" : "CHANGED", ours - ours_before);
	return after != before || ours != ours_before || figures.refused * 20 > cycles + 40 ||
	       (!figures.used && !may_end);
}
