/* SPDX-License-Identifier: MIT */
/*
 * How fast the verifier is, end to end, beside the mere decoding of the same bytes by Capstone and
 * Zydis.
 *
 *	verify_speed [--rounds N] [--json FILE] [--only SHAPE] PROLOGUE DIRECTORY [IMAGE...]
 *
 * Images of 1,000, 2,000, 10,000 and 100,000 instructions are made in DIRECTORY from assembly (as,
 * ld) in seven shapes: straight-line arithmetic, branches that join, counted loops, calls of small
 * functions, a mix of these with spills, masked table indices and helper calls, as compilers emit
 * for probes, loops that need a relation between two values, and nests of three loops. All are
 * accepted; an image that is not ends the program with status 1. IMAGEs named on the command line
 * are measured too.
 *
 * Each round takes each reader of each image once, in turn, so that a change of the machine's speed
 * hits all alike: fay_verify() on the whole file (parsing, hashing, decoding thrice, invariants,
 * obligations, bounds), the same of a copy with a certificate that is allowed to decide,
 * fay_check() alone on that copy (in memory that it is given; no hash of the file, and no verdict
 * is made of the answer), Zydis (decoder with all operands), Capstone without and with details.
 * Reported are medians with quartiles of processor time, the load of the machine (an average over a
 * minute, at the end), and the peak of memory of a child process that verifies the image once.
 *
 * Limits: one core; instructions are counted once each as they lie in the file, though a function
 * that is called from two places is analysed twice.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <Zydis/Zydis.h>
#include <capstone/capstone.h>

#include "fay/check.h"
#include "fay/clock.h"
#include "fay/verify.h"

#include "verify_shapes.h"

#define ROUNDS_MAX 101
#define IMAGES_MAX 64
#define READING_NS 100e6

enum reader {
	READER_FAY,
	READER_CERTIFIED,
	READER_CHECKER,
	READER_ZYDIS,
	READER_CAPSTONE,
	READER_CAPSTONE_DETAIL,
	READER_COUNT
};
static const char *const reader_names[READER_COUNT] = { "fay_verify", "by_certificate",
							"fay_check",  "zydis",
							"capstone",   "capstone_detail" };

struct subject {
	char name[64];
	void *file;
	size_t size;
	void *certified; /* the same with its certificate; NULL: there is none */
	size_t certified_size, certificate_size;
	void *memory;  /* of the checker, for it */
	uint8_t *code; /* .text */
	size_t code_size;
	uint64_t instructions, by_solver, obligations;
	long kilobytes; /* peak of a child that verifies it, less that of one that does not */
	double ns[READER_COUNT][ROUNDS_MAX];
};

static struct subject subjects[IMAGES_MAX];
static unsigned subject_count;

/* This process's processor time: it has one thread, and others' share of the machine is not
 * counted. */
static double now_ns(void)
{
	return (double)fay_clock(CLOCK_PROCESS_CPUTIME_ID);
}

/* ---- measuring ---- */

static void *read_whole(const char *path, size_t *size)
{
	FILE *file = fopen(path, "rb");
	void *bytes = malloc(64 << 20);

	if (!file || !bytes)
		die(strerror(errno), path);
	*size = fread(bytes, 1, 64 << 20, file);
	fclose(file);
	return bytes;
}

static void make_policy(struct fay_policy *policy)
{
	fay_policy_default(policy);
	policy->max_instructions = UINT64_MAX;
	policy->total_ms = 0;
}

static void certify(struct subject *s)
{
	struct fay_policy policy;
	struct fay_verdict verdict;
	const char *why;

	make_policy(&policy);
	if (fay_verify_certify(s->file, s->size, &policy, &s->certified, &s->certified_size, &why,
			       &verdict))
		fprintf(stderr, "verify_speed: %s has no certificate: %s\n", s->name, why);
	else
		s->certificate_size = s->certified_size - s->size;
	if (s->certified && !(s->memory = malloc(fay_check_room(s->certified_size))))
		die("out of memory", s->name);
	fay_verdict_deinit(&verdict);
}

static void add_subject(const char *name, const char *path)
{
	struct subject *s = &subjects[subject_count++];
	struct fay_policy policy;
	struct fay_verdict verdict;

	snprintf(s->name, sizeof(s->name), "%s", name);
	s->file = read_whole(path, &s->size);
	make_policy(&policy);
	fay_verify(s->file, s->size, &policy, &verdict);
	if (verdict.outcome != FAY_ACCEPTED) {
		fprintf(stderr, "verify_speed: %s is refused: %s: %s (%s)\n", name,
			fay_rule_id(verdict.rejection.rule), verdict.rejection.what,
			verdict.rejection.disassembly ? verdict.rejection.disassembly : "");
		exit(1);
	}
	s->instructions = verdict.instructions;
	s->by_solver = verdict.obligations_by_solver;
	s->obligations = verdict.obligations;
	s->code_size = verdict.layout.code_size;
	s->code = malloc(s->code_size);
	if (!s->code)
		die("out of memory", name);
	memcpy(s->code, verdict.layout.bytes + verdict.layout.code_offset, s->code_size);
	fay_verdict_deinit(&verdict);
	certify(s);
}

static void verify_once(const struct subject *s)
{
	struct fay_policy policy;
	struct fay_verdict verdict;

	make_policy(&policy);
	fay_verify(s->file, s->size, &policy, &verdict);
	fay_verdict_deinit(&verdict);
}

static void check_once(const struct subject *s)
{
	struct fay_policy policy;
	struct fay_verdict verdict;

	make_policy(&policy);
	policy.allow_certificates = true;
	fay_verify(s->certified, s->certified_size, &policy, &verdict);
	if (!verdict.certified)
		die("its certificate does not hold", s->name);
	fay_verdict_deinit(&verdict);
}

static void checker_once(const struct subject *s)
{
	static struct fay_probe_facts probes[FAY_IMAGE_MAX_PROBES];
	struct fay_check_result result;
	struct fay_policy policy;

	make_policy(&policy);
	fay_check(s->certified, s->certified_size, NULL, 0, &policy, s->memory,
		  fay_check_room(s->certified_size), probes, &result);
	if (result.rule != FAY_RULE_NONE)
		die(result.what, s->name);
}

/* Peak of resident memory of a child that runs verify_once(), in KiB; s NULL: of one that does
 * nothing. */
static long child_kilobytes(const struct subject *s)
{
	struct rusage usage;
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		if (s)
			verify_once(s);
		_exit(0);
	}
	if (pid < 0 || wait4(pid, &status, 0, &usage) != pid || status != 0)
		die("the child that is to measure memory failed", s ? s->name : "baseline");
	return usage.ru_maxrss;
}

static uint64_t decode_zydis(const struct subject *s)
{
	ZydisDecoder decoder;
	ZydisDecodedInstruction insn;
	ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
	uint64_t count = 0;

	ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	for (size_t at = 0; at < s->code_size; at += insn.length, count++) {
		if (ZYAN_FAILED(ZydisDecoderDecodeFull(&decoder, s->code + at, s->code_size - at,
						       &insn, operands)))
			die("Zydis does not decode it", s->name);
	}
	return count;
}

static uint64_t decode_capstone(const struct subject *s, bool detail)
{
	const uint8_t *code = s->code;
	size_t left = s->code_size;
	uint64_t address = 0, count = 0;
	csh handle;
	cs_insn *insn;

	if (cs_open(CS_ARCH_X86, CS_MODE_64, &handle) != CS_ERR_OK)
		die("no Capstone", s->name);
	cs_option(handle, CS_OPT_DETAIL, detail ? CS_OPT_ON : CS_OPT_OFF);
	insn = cs_malloc(handle);
	while (cs_disasm_iter(handle, &code, &left, &address, insn))
		count++;
	if (left)
		die("Capstone does not decode it", s->name);
	cs_free(insn, 1);
	cs_close(&handle);
	return count;
}

/* Small images repeat until a reading takes a while. */
static double measure(const struct subject *s, enum reader reader)
{
	unsigned most = s->instructions < 20000 ? 20000 / (unsigned)s->instructions + 1 : 1,
		 repeat = 0;
	double begin, end;

	if ((reader == READER_CERTIFIED || reader == READER_CHECKER) && !s->certified)
		return INFINITY;
	if (most > 40)
		most = 40;
	begin = now_ns();

	do {
		if (reader == READER_FAY)
			verify_once(s);
		else if (reader == READER_CERTIFIED)
			check_once(s);
		else if (reader == READER_CHECKER)
			checker_once(s);
		else if (reader == READER_ZYDIS)
			decode_zydis(s);
		else
			decode_capstone(s, reader == READER_CAPSTONE_DETAIL);
		end = now_ns();
	} while (++repeat < most && end - begin < READING_NS);
	return (end - begin) / repeat;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static double quantile(const double *sorted, unsigned n, double p)
{
	double at = p * (n - 1);
	unsigned i = (unsigned)at;

	return i + 1 < n ? sorted[i] + (at - i) * (sorted[i + 1] - sorted[i]) : sorted[i];
}

static void print_table(unsigned rounds)
{
	printf("%-18s %8s %8s %6s  %9s %22s %21s %21s %9s %9s %9s %9s\n", "image", "insns",
	       "obligat.", "solver", "ms", "million insns/s [q1,q3]", "by certificate [q1,q3]",
	       "checker alone [q1,q3]", "zydis", "capstone", "cs detail", "peak KiB");
	for (unsigned i = 0; i < subject_count; i++) {
		const struct subject *s = &subjects[i];
		double n = (double)s->instructions * 1e3; /* ns to million a second */

		printf("%-18s %8llu %8llu %6llu  %9.3f %8.3f [%.3f, %.3f] %7.3f [%.3f, %.3f] "
		       "%7.3f [%.3f, %.3f] %9.2f %9.2f %9.2f %9ld\n",
		       s->name, (unsigned long long)s->instructions,
		       (unsigned long long)s->obligations, (unsigned long long)s->by_solver,
		       quantile(s->ns[READER_FAY], rounds, .5) / 1e6,
		       n / quantile(s->ns[READER_FAY], rounds, .5),
		       n / quantile(s->ns[READER_FAY], rounds, .75),
		       n / quantile(s->ns[READER_FAY], rounds, .25),
		       s->certified ? n / quantile(s->ns[READER_CERTIFIED], rounds, .5) : 0,
		       s->certified ? n / quantile(s->ns[READER_CERTIFIED], rounds, .75) : 0,
		       s->certified ? n / quantile(s->ns[READER_CERTIFIED], rounds, .25) : 0,
		       s->certified ? n / quantile(s->ns[READER_CHECKER], rounds, .5) : 0,
		       s->certified ? n / quantile(s->ns[READER_CHECKER], rounds, .75) : 0,
		       s->certified ? n / quantile(s->ns[READER_CHECKER], rounds, .25) : 0,
		       n / quantile(s->ns[READER_ZYDIS], rounds, .5),
		       n / quantile(s->ns[READER_CAPSTONE], rounds, .5),
		       n / quantile(s->ns[READER_CAPSTONE_DETAIL], rounds, .5), s->kilobytes);
	}
}

static void write_json(const char *path, unsigned rounds)
{
	FILE *out = fopen(path, "w");
	time_t now = time(NULL);
	char date[32];
	double load = 0;

	if (getloadavg(&load, 1) != 1)
		load = -1;
	if (!out)
		die(strerror(errno), path);
	strftime(date, sizeof(date), "%F", gmtime(&now));
	fprintf(out, "{\"date\":\"%s\",\"rounds\":%u,\"load\":%.1f,\"results\":[", date, rounds,
		load);
	for (unsigned i = 0; i < subject_count; i++) {
		const struct subject *s = &subjects[i];

		fprintf(out,
			"%s\n{\"image\":\"%s\",\"instructions\":%llu,\"code_bytes\":%zu,"
			"\"obligations\":%llu,\"by_solver\":%llu,\"peak_kib\":%ld,"
			"\"certificate_bytes\":%zu,\"ns\":{",
			i ? "," : "", s->name, (unsigned long long)s->instructions, s->code_size,
			(unsigned long long)s->obligations, (unsigned long long)s->by_solver,
			s->kilobytes, s->certificate_size);
		for (unsigned r = 0, shown = 0; r < READER_COUNT; r++)
			if (isfinite(s->ns[r][0]))
				fprintf(out, "%s\"%s\":{\"median\":%.0f,\"q1\":%.0f,\"q3\":%.0f}",
					shown++ ? "," : "", reader_names[r],
					quantile(s->ns[r], rounds, .5),
					quantile(s->ns[r], rounds, .25),
					quantile(s->ns[r], rounds, .75));
		fprintf(out, "}}");
	}
	fprintf(out, "\n]}\n");
	if (fclose(out))
		die(strerror(errno), path);
}

static void make_subjects(const char *prologue, const char *directory, const char *only)
{
	static const unsigned sizes[] = { 1000, 2000, 10000, 100000 };
	char path[512], name[64];

	for (unsigned i = 0; i < shape_count; i++) {
		for (unsigned k = 0; k < sizeof(sizes) / sizeof(*sizes); k++) {
			if (only && strcmp(only, shapes[i].name))
				continue;
			make_image(prologue, directory, &shapes[i], sizes[k], path, sizeof(path));
			snprintf(name, sizeof(name), "%s %u", shapes[i].name, sizes[k]);
			add_subject(name, path);
		}
	}
}

static void measure_all(unsigned rounds)
{
	long baseline = child_kilobytes(NULL);

	for (unsigned i = 0; i < subject_count; i++)
		subjects[i].kilobytes = child_kilobytes(&subjects[i]) - baseline;
	for (unsigned round = 0; round < rounds; round++) {
		for (unsigned i = 0; i < subject_count; i++)
			for (unsigned r = 0; r < READER_COUNT; r++)
				subjects[i].ns[r][round] = measure(&subjects[i], r);
		fprintf(stderr, "\rround %u of %u", round + 1, rounds);
	}
	fprintf(stderr, "\n");
	for (unsigned i = 0; i < subject_count; i++)
		for (unsigned r = 0; r < READER_COUNT; r++)
			qsort(subjects[i].ns[r], rounds, sizeof(double), by_value);
}

int main(int argc, char **argv)
{
	const char *json = NULL, *only = NULL;
	unsigned rounds = 7;
	int at = 1;

	for (; at + 1 < argc && !strncmp(argv[at], "--", 2); at += 2) {
		if (!strcmp(argv[at], "--json"))
			json = argv[at + 1];
		else if (!strcmp(argv[at], "--only"))
			only = argv[at + 1];
		else if (!strcmp(argv[at], "--rounds"))
			rounds = (unsigned)strtoul(argv[at + 1], NULL, 0);
		else
			break;
	}
	if (argc - at < 2 || rounds < 1 || rounds > ROUNDS_MAX) {
		fprintf(stderr, "usage: verify_speed [--rounds N] [--json FILE] [--only SHAPE] "
				"PROLOGUE DIRECTORY [IMAGE...]\n");
		return 2;
	}
	make_subjects(argv[at], argv[at + 1], only);
	for (int i = at + 2; i < argc && subject_count < IMAGES_MAX; i++)
		add_subject(strrchr(argv[i], '/') ? strrchr(argv[i], '/') + 1 : argv[i], argv[i]);
	measure_all(rounds);
	print_table(rounds);
	if (json)
		write_json(json, rounds);
	return 0;
}
