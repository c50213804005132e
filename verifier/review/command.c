/* SPDX-License-Identifier: MIT */
/*
 * The command `fay-verify`, and `fay verify`: reads a file, verifies, reports.
 */
#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "review.h"
#include "verifier/image/policy.h"
#include "verifier/image/sha256.h"
#include "verifier/inspect/command.h"
#include "verifier/reader/reader.h"

enum { EXIT_ACCEPTED = 0, EXIT_REJECTED = 1, EXIT_USAGE = 2, EXIT_LIMIT = 3, EXIT_INTERNAL = 4 };

struct options {
	const char *program;
	const char *image;
	const char *policy;
	const char *smt2;
	const char *source;
	const char *certify;
	const char *interface;
	const char *html, *sarif, *attest; /* files, or NULL */
	const char *reproduce;
	bool json, no_replay, kernel, first, help;
};

static void print_usage(FILE *out, const char *program)
{
	fprintf(out,
		"usage: %s [--json] [--html FILE] [--sarif FILE]\n"
		"                  [--attest FILE | --reproduce FILE] [--policy FILE] [--kernel]\n"
		"                  [--smt2 DIR] [--certify FILE] [--interface FILE]\n"
		"                  [--source DIR] [--no-replay] [--first] IMAGE\n",
		program);
}

static int usage(const char *program)
{
	print_usage(stderr, program);
	return EXIT_USAGE;
}

static int help(const char *program)
{
	print_usage(stdout, program);
	printf("\n"
	       "Proves that a probe image keeps to its regions, its code and its bounds, or says\n"
	       "which rule it breaks, where, and how.\n"
	       "\n"
	       "  --json         one JSON object instead of text (docs/verify-json.md)\n"
	       "  --html FILE    also write a page for reviewers: verdict, what the image can\n"
	       "                 do, control flow, code\n"
	       "  --sarif FILE   also write the refusals for code-scanning services (SARIF\n"
	       "                 2.1.0)\n"
	       "  --attest FILE  also write the verdict as an attestation (in-toto, DSSE), which\n"
	       "                 `fay sign` signs\n"
	       "  --reproduce FILE\n"
	       "                 only compare with an attestation that was written elsewhere:\n"
	       "                 exit code 0 if the verdict here is the same, byte for byte\n"
	       "  --policy FILE  limits and permissions for the probe (docs/policy.md)\n"
	       "  --kernel       also require what probes in the kernel need\n"
	       "  --smt2 DIR     also write every obligation as SMT-LIB 2, for another solver\n"
	       "                 (docs/internals/smt2.md)\n"
	       "  --certify FILE if it is accepted, also write it with a certificate of the\n"
	       "                 proof, which the checker accepts without proving anything anew\n"
	       "                 (docs/certificate.md)\n"
	       "  --interface FILE\n"
	       "                 the image is an extension for the host with this interface\n"
	       "                 (docs/internals/host-interface.md)\n"
	       "  --source DIR   directory of the source files that the image's line information\n"
	       "                 names\n"
	       "  --no-replay    do not run the counterexample of a refusal on the CPU, in a\n"
	       "                 child process\n"
	       "  --first        end at the first refusal instead of looking for all of them\n"
	       "\n"
	       "exit codes: 0 accepted, 1 rejected, 2 usage or policy file, 3 a limit was\n"
	       "            reached, 4 internal\n");
	return fflush(stdout) ? EXIT_INTERNAL : 0;
}

static int parse(int argc, char **argv, struct options *options)
{
	static const struct option table[] = {
		{ "json", no_argument, NULL, 'j' },
		{ "html", required_argument, NULL, 'H' },
		{ "sarif", required_argument, NULL, 'S' },
		{ "attest", required_argument, NULL, 'a' },
		{ "reproduce", required_argument, NULL, 'r' },
		{ "policy", required_argument, NULL, 'p' },
		{ "smt2", required_argument, NULL, 's' },
		{ "source", required_argument, NULL, 'd' },
		{ "certify", required_argument, NULL, 'c' },
		{ "interface", required_argument, NULL, 'i' },
		{ "kernel", no_argument, NULL, 'k' },
		{ "no-replay", no_argument, NULL, 'n' },
		{ "first", no_argument, NULL, 'f' },
		{ "help", no_argument, NULL, 'h' },
		{ 0 },
	};
	int option;

	options->program = argv[0];
	optind = 1;
	while ((option = getopt_long(argc, argv, "", table, NULL)) != -1) {
		switch (option) {
		case 'j': options->json = true; break;
		case 'H': options->html = optarg; break;
		case 'S': options->sarif = optarg; break;
		case 'a': options->attest = optarg; break;
		case 'r': options->reproduce = optarg; break;
		case 'p': options->policy = optarg; break;
		case 's': options->smt2 = optarg; break;
		case 'd': options->source = optarg; break;
		case 'c': options->certify = optarg; break;
		case 'i': options->interface = optarg; break;
		case 'k': options->kernel = true; break;
		case 'n': options->no_replay = true; break;
		case 'f': options->first = true; break;
		case 'h': options->help = true; return 0;
		default: return usage(argv[0]);
		}
	}
	if (argc - optind != 1) {
		fprintf(stderr, "%s: %s\n", argv[0],
			argc == optind ? "no image: name its file" : "only one image at a time");
		return usage(argv[0]);
	}
	if (options->certify && options->smt2) {
		fprintf(stderr, "%s: --certify and --smt2 do not go together\n", argv[0]);
		return usage(argv[0]);
	}
	if (options->reproduce &&
	    (options->attest || options->json || options->html || options->sarif || options->smt2 ||
	     options->certify || options->first || options->source)) {
		fprintf(stderr, "%s: with --reproduce only --policy and --kernel go\n", argv[0]);
		return usage(argv[0]);
	}
	if (options->attest && (options->smt2 || options->first)) {
		fprintf(stderr, "%s: --attest does not go with --smt2 or --first\n", argv[0]);
		return usage(argv[0]);
	}
	if (options->interface &&
	    (options->json || options->html || options->sarif || options->attest ||
	     options->reproduce || options->policy || options->smt2 || options->source ||
	     options->kernel || options->first || options->no_replay)) {
		fprintf(stderr, "%s: with --interface only --certify goes\n", argv[0]);
		return usage(argv[0]);
	}
	options->image = argv[optind];
	return 0;
}

static int exit_code(enum fay_outcome outcome)
{
	if (outcome == FAY_ACCEPTED)
		return EXIT_ACCEPTED;
	return outcome == FAY_EXHAUSTED ? EXIT_LIMIT : EXIT_REJECTED;
}

static bool fail_write(const struct options *options, const char *path)
{
	fprintf(stderr, "%s: cannot write '%s': %s\n", options->program, path, strerror(errno));
	return false;
}

/* Closes the file that was written; false, after a message, if not all of it is there. */
static bool close_written(const struct options *options, const char *path, FILE *file)
{
	bool ok = !ferror(file);

	ok = !fclose(file) && ok;
	return ok ? true : fail_write(options, path);
}

static bool write_file(const struct options *options, const void *bytes, size_t size)
{
	FILE *file = fopen(options->certify, "we");

	if (!file)
		return fail_write(options, options->certify);
	fwrite(bytes, 1, size, file);
	return close_written(options, options->certify, file);
}

/* Verifies, and writes the image with its certificate if there is one. */
static int certify(const struct options *options, const void *bytes, size_t size,
		   const struct fay_policy *policy, struct fay_verdict *verdict)
{
	void *image;
	size_t image_size;
	const char *why;
	int result = 0;

	if (fay_verify_certify(bytes, size, policy, &image, &image_size, &why, verdict)) {
		if (verdict->outcome != FAY_ACCEPTED)
			return 0;
		fprintf(stderr, "%s: '%s' is accepted, but there is no certificate: %s\n",
			options->program, options->image, why);
		return EXIT_LIMIT;
	}
	if (!write_file(options, image, image_size))
		result = EXIT_INTERNAL;
	free(image);
	return result;
}

static bool write_review(const struct options *options, const struct fay_review *review,
			 const char *path, void (*put)(FILE *, const struct fay_review *))
{
	FILE *file = fopen(path, "we");

	if (!file)
		return fail_write(options, path);
	put(file, review);
	return close_written(options, path, file);
}

/* What the image brings. */
static void find_certificate(const void *bytes, size_t size, struct fay_review *review)
{
	struct check_subject subject;

	if (size > FAY_IMAGE_MAX_FILE ||
	    fay_read_image(bytes, size, &subject).rule != FAY_RULE_NONE)
		return;
	review->certificate_size = subject.certificate.size;
	fay_sha256(subject.certificate.bytes, subject.certificate.size, review->certificate_sha256);
}

/* The page and the log, as far as they are asked for. The page tells what holds in the code, so
 * that is proved once more, whatever the policy allows. False: after a message. */
static bool write_reviews(const struct options *options, const void *bytes, size_t size,
			  const struct fay_policy *policy, const struct fay_review *given)
{
	struct fay_review review = *given;
	struct fay_policy loose;
	struct fay_inspected in;
	bool ok = true;

	if (options->sarif)
		ok = write_review(options, &review, options->sarif, fay_review_sarif);
	if (!options->html)
		return ok;
	fay_inspect_policy(&loose);
	loose.solver_ms = policy->solver_ms;
	loose.total_ms = policy->total_ms;
	if (fay_inspect_init(&in, bytes, size, &loose, true))
		review.in = &in;
	find_certificate(bytes, size, &review);
	ok = write_review(options, &review, options->html, fay_review_page) && ok;
	fay_inspect_deinit(&in);
	return ok;
}

static int report(const struct options *options, const struct fay_verdict *verdict)
{
	if (options->json)
		fay_verdict_print_json(stdout, options->image, verdict);
	else
		fay_verdict_print(stdout, options->image, verdict);
	if (fflush(stdout) || ferror(stdout)) {
		fprintf(stderr, "%s: cannot write the report: %s\n", options->program,
			strerror(errno));
		return EXIT_INTERNAL;
	}
	return exit_code(verdict->outcome);
}

/* The attestation, or the comparison with one. What a limit ended says more of the machine than of
 * the image. Exit code. */
static int attest(const struct options *options, const struct fay_review *review)
{
	uint8_t *attested = NULL;
	size_t size;
	int result;

	if (review->verdict->outcome == FAY_EXHAUSTED) {
		fprintf(stderr, "%s: no attestation: the verification has reached a limit (%s)\n",
			options->program, fay_rule_id(review->verdict->rejection.rule));
		return EXIT_LIMIT;
	}
	if (options->attest)
		return write_review(options, review, options->attest, fay_review_attestation)
			       ? 0
			       : EXIT_INTERNAL;
	result = fay_command_read(options->program, options->reproduce, &attested, &size);
	if (!result)
		result = fay_review_reproduces(stdout, review, (const char *)attested, size)
				 ? 0
				 : EXIT_REJECTED;
	free(attested);
	return fflush(stdout) ? EXIT_INTERNAL : result;
}

/* Whatever is told of a verdict, to whoever. Exit code. */
static int tell(const struct options *options, const void *bytes, size_t size,
		const struct fay_policy *policy, const struct fay_review *review)
{
	int result = 0, attested = 0;

	if (!options->reproduce)
		result = report(options, review->verdict);
	if (!write_reviews(options, bytes, size, policy, review))
		result = EXIT_INTERNAL;
	if (options->attest || options->reproduce)
		attested = attest(options, review);
	return result ? result : attested;
}

/* Verifies, and tells. Exit code. */
static int judge(const struct options *options, const void *bytes, size_t size,
		 const struct fay_policy *policy, struct fay_review *review)
{
	struct fay_verdict verdict;
	int result, certified = 0;

	if (options->certify)
		certified = certify(options, bytes, size, policy, &verdict);
	else
		fay_verify(bytes, size, policy, &verdict);
	if (!options->first)
		fay_others_fill(bytes, size, policy, &verdict);
	if (!options->no_replay && !options->reproduce)
		fay_verdict_replay(&verdict);
	if (options->source)
		fay_verdict_source(&verdict, options->source);
	review->verdict = &verdict;
	result = tell(options, bytes, size, policy, review);
	fay_verdict_deinit(&verdict);
	return result ? result : certified;
}

/* With every obligation written to a folder. */
static int judge_written(const struct options *options, const void *bytes, size_t size,
			 const struct fay_policy *policy, struct fay_review *review)
{
	struct fay_verdict verdict;
	int result;

	if (!fay_verify_smt2(bytes, size, policy, options->smt2, &verdict)) {
		if (!options->no_replay)
			fay_verdict_replay(&verdict);
		if (options->source)
			fay_verdict_source(&verdict, options->source);
		review->verdict = &verdict;
		result = tell(options, bytes, size, policy, review);
	} else if (errno == EFBIG) {
		fprintf(stderr,
			"%s: the proof is too large for '%s': its index names what was written\n",
			options->program, options->smt2);
		result = EXIT_LIMIT;
	} else {
		fprintf(stderr, "%s: cannot write to '%s': %s\n", options->program, options->smt2,
			strerror(errno));
		result = EXIT_INTERNAL;
	}
	fay_verdict_deinit(&verdict);
	return result;
}

/* Authors have a source in their hand, and an image beside it. */
static void hint_at_source(const char *program, const char *path)
{
	size_t length = strlen(path);

	if (length > 2 && !strcmp(path + length - 2, ".c"))
		fprintf(stderr, "%s: '%s' is a source, not an image: `fay cc %s -o IMAGE`\n",
			program, path, path);
}

int fay_verify_main(int argc, char **argv)
{
	struct options options = { 0 };
	struct fay_policy policy;
	char message[512];
	uint8_t *bytes = NULL;
	size_t size = 0;
	int result = parse(argc, argv, &options);

	if (result)
		return result;
	if (options.help)
		return help(options.program);
	if (options.interface)
		return fay_verify_host(&(struct fay_verify_host){
			options.program, options.image, options.interface, options.certify });
	fay_policy_default(&policy);
	struct fay_review review = { .image = options.image,
				     .policy = options.policy,
				     .kernel = options.kernel };
	if (options.policy && fay_policy_read_named(options.policy, &policy, review.policy_sha256,
						    message, sizeof(message))) {
		fprintf(stderr, "%s: %s\n", options.program, message);
		return EXIT_USAGE;
	}
	if (options.kernel)
		fay_policy_restrict_kernel(&policy);
	result = fay_command_read(options.program, options.image, &bytes, &size);
	if (!result)
		result = options.smt2 ? judge_written(&options, bytes, size, &policy, &review)
				      : judge(&options, bytes, size, &policy, &review);
	if (result == EXIT_REJECTED)
		hint_at_source(options.program, options.image);
	free(bytes);
	return result;
}
