/* SPDX-License-Identifier: MIT */
/*
 * Runs the corpus: hostile snippets that must be refused by the right rule, and their legal
 * neighbours that must pass.
 *
 *	run_corpus [-v] [-k NAME] [--cache DIR [--make]] [--first] PROLOGUE FILE...
 *
 * --cache: images are kept in DIR and taken from there next time; --make: that alone, and they are
 * not verified. --first: stops at the first failure (for mutation testing, as the cache: it runs
 * this hundreds of times).
 *
 * A corpus file is a list of sections
 *
 *	### name | classes D1,V6 | expect reject CFI-TARGET,CFI-OVERLAP unsafe | local=64 ld=-N
 *	assembly
 *
 * `expect` is `accept`, or `reject` with the rule that a user would call the cause (alternatives by
 * comma) and optionally the outcome. Each section becomes a whole image as a vendor would make it:
 * prologue.s, the snippet, the tables; assembled by as, linked by ld -shared. So what is tested is
 * fay_verify() on real files. Attributes:
 *
 *	local= global=        bytes of state (64, 0)
 *	tables=own            the snippet writes the .fay sections itself, with the prologue's
 *			      macros
 *	ld=FLAG,FLAG          more flags for the linker
 *	patch=WHERE:HEX       overwrite bytes of the file: WHERE is eh+N, ph:I+N, sh:NAME+N
 *			      (headers) or sec:NAME+N (contents); repeatable
 *	truncate=N            keep N bytes (negative: drop the last -N)
 *	max_instructions= max_stack= max_local= max_global= helpers= pattern= spec=1 vectors=1
 *	  rdtsc=1 certificate=1 fields= kinds= deny=NAME policy
 *	certified             a certificate is written for it (tests/verifier/checker)
 *	searched              the prover refuses it; a certificate is found without it
 *	smt2=hard             the proof written out is beyond a solver's patience (smt2_proofs
 *			      leaves it out)
 *	todo=REASON           known imprecision: an accept that is refused for now is reported, not
 *			      failed
 *
 * Limits: the sections run one after the other; about 25 ms each, nearly all of it as and ld.
 */
#include <ctype.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fay/verify.h"

extern char **environ;

#define MAX_PATCHES 8

struct snippet {
	char name[128], classes[128], expect[256], attributes[512];
	const char *body;
	size_t body_size;
};

static struct {
	const char *prologue, *only, *directory, *cache;
	bool verbose, make, first;
	unsigned run, failed, todo, rejects, accepts;
} corpus;

static char *read_whole(const char *path, size_t *size)
{
	FILE *file = fopen(path, "rb");
	char *data = NULL;
	size_t room = 0, used = 0;

	if (!file)
		return NULL;
	for (;;) {
		if (used + 1 >= room) {
			room = room ? 2 * room : 65536;
			data = realloc(data, room);
			if (!data)
				abort();
		}
		size_t got = fread(data + used, 1, room - used - 1, file);
		if (!got)
			break;
		used += got;
	}
	fclose(file);
	data[used] = '\0';
	*size = used;
	return data;
}

static bool run_command(const char *const *argv)
{
	pid_t pid;
	int status;

	if (posix_spawnp(&pid, argv[0], NULL, NULL, (char *const *)argv, environ) != 0)
		return false;
	while (waitpid(pid, &status, 0) < 0) {
		if (errno != EINTR)
			return false;
	}
	return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* The value of attribute `name`, the `nth` of that name, in `value`. */
static bool attribute(const struct snippet *s, const char *name, unsigned nth, char *value,
		      size_t size)
{
	size_t length = strlen(name);

	for (const char *p = s->attributes; *p;) {
		size_t word;

		p += strspn(p, " \t");
		word = strcspn(p, " \t");
		if (word > length && !strncmp(p, name, length) && p[length] == '=' && nth-- == 0) {
			snprintf(value, size, "%.*s", (int)(word - length - 1), p + length + 1);
			return true;
		}
		p += word;
	}
	return false;
}

static uint64_t number_attribute(const struct snippet *s, const char *name, uint64_t otherwise)
{
	char value[64];

	return attribute(s, name, 0, value, sizeof(value)) ? strtoull(value, NULL, 0) : otherwise;
}

static void make_policy(const struct snippet *s, struct fay_policy *policy)
{
	char pattern[FAY_IMAGE_MAX_STRING];

	fay_policy_default(policy);
	policy->max_instructions =
		number_attribute(s, "max_instructions", policy->max_instructions);
	policy->max_stack = number_attribute(s, "max_stack", policy->max_stack);
	policy->max_local = number_attribute(s, "max_local", policy->max_local);
	policy->max_global = number_attribute(s, "max_global", policy->max_global);
	policy->allow_helpers = number_attribute(s, "helpers", policy->allow_helpers);
	policy->total_ms = (uint32_t)number_attribute(s, "total_ms", policy->total_ms);
	policy->speculation_confined = number_attribute(s, "spec", policy->speculation_confined);
	policy->allow_vectors = number_attribute(s, "vectors", policy->allow_vectors);
	policy->allow_rdtsc = number_attribute(s, "rdtsc", policy->allow_rdtsc);
	policy->require_certificate = number_attribute(s, "certificate", 0);
	policy->allow_fields = (uint32_t)number_attribute(s, "fields", policy->allow_fields);
	policy->allow_kinds = (uint32_t)number_attribute(s, "kinds", policy->allow_kinds);
	policy->denied_count =
		attribute(s, "deny", 0, policy->denied[0], sizeof(policy->denied[0]));
	if (attribute(s, "pattern", 0, pattern, sizeof(pattern)))
		strcpy(policy->patterns[policy->pattern_count++], pattern);
}

/* Where in the file "WHERE" of a patch is; SIZE_MAX if nowhere. */
static size_t patch_offset(const char *image, size_t size, const char *where)
{
	const Elf64_Ehdr *eh = (const void *)image;
	const Elf64_Shdr *sh = (const void *)(image + eh->e_shoff);
	const char *names = image + sh[eh->e_shstrndx].sh_offset;
	const char *plus = strrchr(where, '+');
	size_t add = plus ? strtoul(plus + 1, NULL, 0) : 0;
	size_t length = plus ? (size_t)(plus - where) : strlen(where);

	if (!strncmp(where, "eh", 2))
		return add;
	if (!strncmp(where, "ph:", 3))
		return eh->e_phoff + strtoul(where + 3, NULL, 0) * sizeof(Elf64_Phdr) + add;
	for (unsigned i = 0; i < eh->e_shnum; i++) {
		const char *name = names + sh[i].sh_name;

		if (!strncmp(where, "sh:", 3) && strlen(name) == length - 3 &&
		    !strncmp(where + 3, name, length - 3))
			return eh->e_shoff + i * sizeof(Elf64_Shdr) + add;
		if (!strncmp(where, "sec:", 4) && strlen(name) == length - 4 &&
		    !strncmp(where + 4, name, length - 4))
			return sh[i].sh_offset + add;
	}
	return SIZE_MAX;
}

static bool apply_patches(const struct snippet *s, char *image, size_t *size)
{
	char value[256];

	for (unsigned i = 0; attribute(s, "patch", i, value, sizeof(value)); i++) {
		char *hex = strrchr(value, ':');
		size_t at;

		*hex++ = '\0';
		at = patch_offset(image, *size, value);
		if (at == SIZE_MAX || at + strlen(hex) / 2 > *size)
			return false;
		for (; hex[0] && hex[1]; hex += 2) {
			char digits[3] = { hex[0], hex[1], 0 };
			image[at++] = (char)strtoul(digits, NULL, 16);
		}
	}
	if (attribute(s, "truncate", 0, value, sizeof(value))) {
		long keep = strtol(value, NULL, 0);
		*size = keep < 0 ? *size - (size_t)-keep : (size_t)keep;
	}
	return true;
}

/* The snippet as an image; NULL if it does not assemble or link. */
static char *build_image(const struct snippet *s, size_t *size)
{
	char source[256], object[256], image[256], local[64], global[64], flags[256];
	const char *ld[24] = { "ld",  "-shared", "-nostdlib",   "-z",
			       "now", "-z",      "noexecstack", "--build-id=none" };
	unsigned n = 8;
	FILE *file;
	char *bytes;

	snprintf(source, sizeof(source), "%s/snippet.s", corpus.directory);
	snprintf(object, sizeof(object), "%s/snippet.o", corpus.directory);
	snprintf(image, sizeof(image), "%s/snippet.fay", corpus.directory);
	snprintf(local, sizeof(local), "LOCAL=%llu",
		 (unsigned long long)number_attribute(s, "local", 64));
	snprintf(global, sizeof(global), "GLOBAL=%llu",
		 (unsigned long long)number_attribute(s, "global", 0));
	file = fopen(source, "w");
	if (!file)
		return NULL;
	fprintf(file, "\t.include \"%s\"\n%.*s\n", corpus.prologue, (int)s->body_size, s->body);
	if (!attribute(s, "tables", 0, flags, sizeof(flags)))
		fprintf(file, "\n\tTABLES\n");
	if (fclose(file) != 0)
		return NULL;
	if (!run_command((const char *const[]){ "as", "--defsym", local, "--defsym", global, "-o",
						object, source, NULL }))
		return NULL;
	if (attribute(s, "ld", 0, flags, sizeof(flags))) {
		for (char *word = strtok(flags, ","); word && n < 18; word = strtok(NULL, ","))
			ld[n++] = word;
	}
	ld[n++] = "-o";
	ld[n++] = image;
	ld[n++] = object;
	if (!run_command(ld))
		return NULL;
	bytes = read_whole(image, size);
	if (bytes && !apply_patches(s, bytes, size)) {
		free(bytes);
		return NULL;
	}
	return bytes;
}

static bool word_in(const char *list, const char *word)
{
	size_t length = strlen(word);

	for (const char *p = list; *p; p += strcspn(p, ","), p += *p == ',') {
		if (strcspn(p, ",") == length && !strncmp(p, word, length))
			return true;
	}
	return false;
}

static void judge(const struct snippet *s, const char *file, const struct fay_verdict *v)
{
	char verb[32] = "", rules[160] = "", outcome[32] = "", reason[256];
	const char *got = v->outcome == FAY_ACCEPTED ? "accepted" : fay_rule_id(v->rejection.rule);
	bool ok;

	sscanf(s->expect, "%31s %159s %31s", verb, rules, outcome);
	if (!strcmp(verb, "accept")) {
		corpus.accepts++;
		ok = v->outcome == FAY_ACCEPTED;
	} else {
		corpus.rejects++;
		ok = v->outcome != FAY_ACCEPTED && word_in(rules, got) &&
		     (!*outcome || word_in(outcome, fay_outcome_name(v->outcome)));
	}
	if (!ok && v->outcome != FAY_ACCEPTED && attribute(s, "todo", 0, reason, sizeof(reason))) {
		corpus.todo++;
		printf("todo %s: %s: %s (%s)\n", s->name, got, v->rejection.what, reason);
		return;
	}
	if (ok && !corpus.verbose)
		return;
	printf("%s %s: %s: expected %s; got %s", ok ? "ok  " : "FAIL", file, s->name, s->expect,
	       got);
	if (v->outcome != FAY_ACCEPTED)
		printf(" (%s): %s%s%s", fay_outcome_name(v->outcome), v->rejection.what,
		       v->rejection.missing ? "; missing: " : "",
		       v->rejection.missing ? v->rejection.missing : "");
	printf("\n");
	if (!ok && v->outcome == FAY_ACCEPTED && !strcmp(verb, "reject"))
		printf("     ^^^^ a hostile image was ACCEPTED\n");
	corpus.failed += !ok;
}

/* From the cache if there; else built, and kept there. */
static char *get_image(const struct snippet *s, const char *file, size_t *size)
{
	char path[512], *image;
	FILE *out;

	if (!corpus.cache)
		return build_image(s, size);
	snprintf(path, sizeof(path), "%s/%s-%u.fay", corpus.cache, file, corpus.run);
	image = read_whole(path, size);
	if (image)
		return image;
	image = build_image(s, size);
	out = image ? fopen(path, "wb") : NULL;
	if (out && (fwrite(image, 1, *size, out) != *size) | fclose(out)) {
		perror(path);
		exit(4);
	}
	return image;
}

static void run_snippet(const struct snippet *s, const char *file)
{
	struct fay_policy policy;
	struct fay_verdict verdict;
	size_t size = 0;
	char *image;

	if (corpus.only && !strstr(s->name, corpus.only))
		return;
	corpus.run++;
	image = get_image(s, file, &size);
	if (!image) {
		printf("FAIL %s: %s: does not assemble or link\n", file, s->name);
		corpus.failed++;
		return;
	}
	if (!corpus.make) {
		make_policy(s, &policy);
		fay_verify(image, size, &policy, &verdict);
		judge(s, file, &verdict);
		fay_verdict_deinit(&verdict);
	}
	free(image);
}

/* One field of a header line, up to the next '|', trimmed. */
static const char *take_field(const char *p, const char *end, const char *keyword, char *field,
			      size_t size)
{
	const char *bar = memchr(p, '|', (size_t)(end - p)), *stop = bar ? bar : end;

	while (p < stop && isspace((unsigned char)*p))
		p++;
	if (!strncmp(p, keyword, strlen(keyword)))
		p += strlen(keyword);
	while (p < stop && isspace((unsigned char)*p))
		p++;
	while (stop > p && isspace((unsigned char)stop[-1]))
		stop--;
	snprintf(field, size, "%.*s", (int)(stop - p), p);
	return bar ? bar + 1 : end;
}

static bool run_file(const char *path)
{
	size_t size = 0;
	char *text = read_whole(path, &size);
	const char *base = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;

	if (!text) {
		printf("FAIL %s: %s\n", path, strerror(errno));
		corpus.failed++;
		return false;
	}
	for (const char *p = strstr(text, "### "); p;) {
		struct snippet s = { 0 };
		const char *line_end = p + strcspn(p, "\n"), *next = strstr(line_end, "\n### ");
		const char *q = take_field(p, line_end, "###", s.name, sizeof(s.name));

		q = take_field(q, line_end, "classes", s.classes, sizeof(s.classes));
		q = take_field(q, line_end, "expect", s.expect, sizeof(s.expect));
		take_field(q, line_end, "", s.attributes, sizeof(s.attributes));
		s.body = line_end;
		s.body_size = next ? (size_t)(next - line_end) : strlen(line_end);
		run_snippet(&s, base);
		if (corpus.first && corpus.failed)
			break;
		p = next ? next + 1 : NULL;
	}
	free(text);
	return true;
}

int main(int argc, char **argv)
{
	char directory[] = "/tmp/fay-corpus-XXXXXX", path[256];
	int at = 1;

	for (; at < argc && argv[at][0] == '-'; at++) {
		if (!strcmp(argv[at], "-v")) {
			corpus.verbose = true;
		} else if (!strcmp(argv[at], "-k") && at + 1 < argc) {
			corpus.only = argv[++at];
		} else if (!strcmp(argv[at], "--cache") && at + 1 < argc) {
			corpus.cache = argv[++at];
		} else if (!strcmp(argv[at], "--make")) {
			corpus.make = true;
		} else if (!strcmp(argv[at], "--first")) {
			corpus.first = true;
		} else {
			break;
		}
	}
	if (argc - at < 2) {
		fprintf(stderr, "usage: run_corpus [-v] [-k NAME] [--cache DIR [--make]] [--first] "
				"PROLOGUE FILE...\n");
		return 2;
	}
	if (!mkdtemp(directory)) {
		perror(directory);
		return 4;
	}
	corpus.directory = directory;
	corpus.prologue = argv[at++];
	for (; at < argc && !(corpus.first && corpus.failed); at++)
		run_file(argv[at]);
	for (const char *const *name =
		     (const char *const[]){ "snippet.s", "snippet.o", "snippet.fay", NULL };
	     *name; name++) {
		snprintf(path, sizeof(path), "%s/%s", directory, *name);
		unlink(path);
	}
	rmdir(directory);
	printf("%u snippets (%u reject, %u accept), %u failed, %u known imprecisions\n", corpus.run,
	       corpus.rejects, corpus.accepts, corpus.failed, corpus.todo);
	return corpus.failed || !corpus.run ? 1 : 0;
}
