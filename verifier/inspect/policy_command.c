/* SPDX-License-Identifier: MIT */
/*
 * `fay policy init`: the tightest policy that admits an image, which is the manifest of the image
 * as limits. What is printed was read back and does admit it. `fay policy check`: whether a policy
 * file has errors, and what it says with what it leaves out, or which of its lines refuse an image.
 * `fay policy explain`: the same in sentences.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "command.h"
#include "fay/error.h"
#include "policy_write.h"
#include "verifier/explain/report.h"
#include "verifier/explain/report_names.h"
#include "verifier/image/policy.h"

struct image {
	const char *program, *path;
	uint8_t *bytes;
	size_t size;
};

/* The exit code, once all is printed. */
static int printed(const char *program)
{
	if (!fflush(stdout))
		return FAY_OK;
	fprintf(stderr, "%s: cannot write: %s\n", program, strerror(errno));
	return FAY_E_INTERNAL;
}

static void print_usage(FILE *out, const char *program)
{
	fprintf(out, "usage: %s init IMAGE | check FILE [IMAGE] | explain FILE\n", program);
}

static int help(const char *program)
{
	print_usage(stdout, program);
	printf("\n"
	       "  init IMAGE  prints the tightest policy that admits the probe image, with\n"
	       "              comments (docs/policy.md)\n"
	       "  check FILE  says what is wrong with a policy file, or prints what it says,\n"
	       "              with the defaults of what it leaves out\n"
	       "  check FILE IMAGE\n"
	       "              says line by line what the image needs, what the file allows, and\n"
	       "              which lines refuse it\n"
	       "  explain FILE\n"
	       "              says in sentences what a probe may do that the file admits\n"
	       "\n"
	       "exit codes: 0 done, 1 the image is not admitted, 2 usage or the file's errors,\n"
	       "            3 a limit was reached, 4 internal\n");
	return printed(program);
}

static bool admits(const struct image *image, const struct fay_policy *policy,
		   struct fay_verdict *verdict)
{
	fay_verify(image->bytes, image->size, policy, verdict);
	return verdict->outcome == FAY_ACCEPTED;
}

/* Keeps what `tighter` says if the image is admitted all the same; *verdict is by the policy. */
static void tighten(const struct image *image, struct fay_policy *policy,
		    const struct fay_policy *tighter, struct fay_verdict *verdict)
{
	struct fay_verdict tried;

	if (admits(image, tighter, &tried)) {
		*policy = *tighter;
		fay_verdict_deinit(verdict);
		*verdict = tried;
	} else {
		fay_verdict_deinit(&tried);
	}
}

/* What is permitted or not, beginning with all. False: nothing admits the image. */
static bool find_permissions(const struct image *image, struct fay_policy *policy,
			     struct fay_verdict *verdict)
{
	struct fay_policy tighter;

	fay_policy_default(policy);
	policy->allow_rdtsc = true;
	policy->max_stack = UINT64_MAX;
	if (!admits(image, policy, verdict)) {
		if (verdict->rejection.rule != FAY_RULE_POL_INSTRUCTIONS)
			return false;
		policy->max_instructions = UINT64_MAX;
		fay_verdict_deinit(verdict);
		if (!admits(image, policy, verdict))
			return false;
	}
	tighter = *policy;
	tighter.allow_rdtsc = false;
	tighten(image, policy, &tighter, verdict);
	tighter = *policy;
	tighter.allow_vectors = false;
	tighten(image, policy, &tighter, verdict);
	tighter = *policy;
	tighter.speculation_confined = true;
	tighten(image, policy, &tighter, verdict);
	tighter = *policy;
	tighter.require_certificate = true;
	tighten(image, policy, &tighter, verdict);
	return true;
}

#define PATTERNS_BYTES 900u /* of a line of a policy file */

/* Adds a pattern as one word of a policy file. False: there is no room. */
static bool add_pattern(struct fay_policy *policy, const char *pattern)
{
	char word[FAY_IMAGE_MAX_STRING];
	size_t used = 0;

	/* A probe without a place has none; that is the pattern of no function. */
	if (strlen(*pattern ? pattern : "*!") >= sizeof(word))
		return false;
	strcpy(word, *pattern ? pattern : "*!");
	for (char *c = word; *c; c++)
		if (strchr(" ,#", *c))
			*c = '?';
	for (uint32_t i = 0; i < policy->pattern_count; i++) {
		if (!strcmp(policy->patterns[i], word))
			return true;
		used += strlen(policy->patterns[i]) + 1;
	}
	if (policy->pattern_count == sizeof(policy->patterns) / sizeof(*policy->patterns) ||
	    used + strlen(word) > PATTERNS_BYTES)
		return false;
	strcpy(policy->patterns[policy->pattern_count++], word);
	return true;
}

/* The manifest as limits. False: it has more patterns than a policy can name. */
static bool find_limits(const struct fay_verdict *verdict, struct fay_policy *policy)
{
	bool named = true;

	policy->allow_kinds = policy->allow_fields = 0;
	policy->allow_helpers = policy->max_instructions = policy->max_stack = 0;
	policy->max_local = verdict->schema.local_size;
	policy->max_global = verdict->schema.global_size;
	for (uint32_t i = 0; i < verdict->probe_count; i++) {
		const struct fay_probe_facts *probe = &verdict->probes[i];

		policy->allow_kinds |= 1u << probe->kind;
		policy->allow_fields |= probe->event_fields;
		policy->allow_helpers |= probe->helpers;
		if (probe->worst_instructions > policy->max_instructions)
			policy->max_instructions = probe->worst_instructions;
		if (probe->worst_stack > policy->max_stack)
			policy->max_stack = probe->worst_stack;
		named &= add_pattern(policy, probe->pattern);
	}
	if (!named)
		policy->pattern_count = 0;
	return named;
}

static void write_all(FILE *out, const struct image *image, const struct fay_policy *policy,
		      bool named)
{
	fay_report_text(out, "# The tightest policy that admits ", image->path, false);
	fputs("\n", out);
	if (!named)
		fputs("# Any function may be traced: the image names more patterns than a policy "
		      "can\n",
		      out);
	fay_policy_write(out, policy, true);
}

/* Whether the text is a policy that admits the image. */
static bool read_back(const struct image *image, const char *text, size_t size)
{
	struct fay_verdict verdict;
	struct fay_policy policy;
	char path[64], message[512];
	int fd = memfd_create("policy", MFD_CLOEXEC);
	bool ok = fd >= 0 && write(fd, text, size) == (ssize_t)size;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	ok = ok && !fay_policy_read(path, &policy, message, sizeof(message));
	if (ok) {
		ok = admits(image, &policy, &verdict);
		fay_verdict_deinit(&verdict);
	}
	if (fd >= 0)
		close(fd);
	return ok;
}

static char *text_of(const struct fay_policy *policy, bool named)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return NULL;
	fay_policy_write(out, policy, named);
	return fclose(out) ? NULL : text;
}

/* The line "key = value" of the text, without its end; NULL: there is none. */
static const char *line_of(const char *text, const char *key, size_t length)
{
	for (const char *at = text; at && *at; at = strchr(at, '\n'), at += at != NULL)
		if (!strncmp(at, key, length) && at[length] == ' ')
			return at;
	return NULL;
}

/* Whether the image is admitted by what it needs, but for one line, which is the file's. */
static bool admits_line(const struct image *image, const char *needed, const char *key,
			size_t length, const char *line)
{
	const char *at = line_of(needed, key, length);
	size_t before = at ? (size_t)(at - needed) : strlen(needed);
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return false;
	fprintf(out, "%.*s", (int)before, needed);
	if (line)
		fprintf(out, "%.*s", (int)strcspn(line, "\n"), line);
	fputs(at ? at + strcspn(at, "\n") : "", out);
	bool admitted = !fclose(out) && read_back(image, text, size);
	free(text);
	return admitted;
}

/* One line of the file, or one that only the image has; returns whether it refuses. */
static bool print_line(const struct image *image, const char *needed, const char *allowed,
		       const char *key)
{
	size_t length = strcspn(key, " ");
	const char *needs = line_of(needed, key, length), *allows = line_of(allowed, key, length);
	bool refuses = !admits_line(image, needed, key, length, allows);

	fputs(refuses ? "refused   " : "admitted  ", stdout);
	if (allows)
		printf("%.*s", (int)strcspn(allows, "\n"), allows);
	else
		printf("%.*s = any", (int)length, key);
	if (needs)
		printf("; needed:%.*s", (int)strcspn(needs + length + 2, "\n"), needs + length + 2);
	putchar('\n');
	return refuses;
}

/* Each line of the file, beside what the image needs. */
static int compare(const struct image *image, const struct fay_policy *policy, const char *path)
{
	struct fay_policy tight;
	struct fay_verdict verdict;
	bool found = find_permissions(image, &tight, &verdict);
	bool named = found && find_limits(&verdict, &tight);
	char *needed = found ? text_of(&tight, named) : NULL, *allowed = text_of(policy, false);
	unsigned refusals = 0;

	fay_verdict_deinit(&verdict);
	if (!found)
		fprintf(stderr, "%s: no policy admits '%s'\n", image->program, image->path);
	for (const char *at = needed; at && allowed && *at; at = strchr(at, '\n'), at += at != NULL)
		if (*at != '#')
			refusals += print_line(image, needed, allowed, at);
	for (const char *at = allowed; at && needed && *at; at = strchr(at, '\n'), at += at != NULL)
		if (*at != '#' && !line_of(needed, at, strcspn(at, " ")))
			refusals += print_line(image, needed, allowed, at);
	bool whole = needed && allowed && admits(image, policy, &verdict);
	if (needed && allowed) {
		fay_verdict_deinit(&verdict);
		printf("%s %s %s", path, whole ? "admits" : "refuses", image->path);
		if (!whole)
			printf(": `fay verify --policy` says where");
		putchar('\n');
	}
	free(needed);
	free(allowed);
	int result = printed(image->program);
	return result ? result : whole ? FAY_OK : FAY_E_REFUSED;
}

static int print_policy(const struct image *image, const struct fay_policy *policy, bool named)
{
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);
	int result = FAY_E_INTERNAL;

	if (out)
		write_all(out, image, policy, named);
	if (!out || fclose(out)) {
		fprintf(stderr, "%s: out of memory\n", image->program);
	} else if (!read_back(image, text, size)) {
		fprintf(stderr, "%s: '%s' cannot be said in a policy file\n", image->program,
			image->path);
		result = FAY_E_REFUSED;
	} else {
		fwrite(text, 1, size, stdout);
		result = printed(image->program);
	}
	free(text);
	return result;
}

static int init(const char *program, const char *path)
{
	struct image image = { .program = program, .path = path };
	struct fay_policy policy;
	struct fay_verdict verdict;
	int result = fay_command_read(program, path, &image.bytes, &image.size);

	if (result)
		return result;
	if (find_permissions(&image, &policy, &verdict)) {
		bool named = find_limits(&verdict, &policy);

		result = print_policy(&image, &policy, named);
	} else {
		fprintf(stderr, "%s: no policy admits '%s': %s: %s\n", program, path,
			fay_rule_id(verdict.rejection.rule),
			fay_rule_title(verdict.rejection.rule));
		result = verdict.outcome == FAY_EXHAUSTED ? FAY_E_LIMIT : FAY_E_REFUSED;
	}
	fay_verdict_deinit(&verdict);
	free(image.bytes);
	return result;
}

static int explain(const char *program, const char *path)
{
	struct fay_policy policy;
	uint8_t digest[32];
	char message[512];

	if (fay_policy_read_named(path, &policy, digest, message, sizeof(message))) {
		fprintf(stderr, "%s: %s\n", program, message);
		return FAY_E_USAGE;
	}
	fay_policy_explain(stdout, &policy);
	fputs("Signatures name it by the digest ", stdout);
	print_hex(stdout, digest, sizeof(digest));
	fputs(".\n", stdout);
	return printed(program);
}

static int check(const char *program, const char *path, const char *image_path)
{
	struct image image = { .program = program, .path = image_path };
	struct fay_policy policy;
	char message[512];

	if (fay_policy_read(path, &policy, message, sizeof(message))) {
		fprintf(stderr, "%s: %s\n", program, message);
		return FAY_E_USAGE;
	}
	if (image_path) {
		int result = fay_command_read(program, image_path, &image.bytes, &image.size);

		result = result ? result : compare(&image, &policy, path);
		free(image.bytes);
		return result;
	}
	fay_report_text(stdout, "# ", path, false);
	fputs(" has no errors, and says, with defaults (behind it an IMAGE: what refuses that):\n",
	      stdout);
	fay_policy_write(stdout, &policy, false);
	return printed(program);
}

int fay_policy_main(int argc, char **argv)
{
	if (argc == 2 && !strcmp(argv[1], "--help"))
		return help(argv[0]);
	if (argc == 3 && !strcmp(argv[1], "init"))
		return init(argv[0], argv[2]);
	if ((argc == 3 || argc == 4) && !strcmp(argv[1], "check"))
		return check(argv[0], argv[2], argc == 4 ? argv[3] : NULL);
	if (argc == 3 && !strcmp(argv[1], "explain"))
		return explain(argv[0], argv[2]);
	print_usage(stderr, argv[0]);
	return FAY_E_USAGE;
}
