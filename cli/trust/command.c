/* SPDX-License-Identifier: MIT */
/* `fay sign` and `fay trust`. */
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "cli/options/options.h"
#include "command.h"
#include "fay/image.h"
#include "process/delay/delay.h"
#include "process/process.h"
#include "trust/trust.h"
#include "verifier/inspect/command.h"

static int sign_usage(FILE *out)
{
	fputs("usage: fay sign IMAGE --key FILE [--policy FILE]\n"
	      "       fay sign ATTESTATION --key FILE\n",
	      out);
	return FAY_E_USAGE;
}

static int sign_help(void)
{
	sign_usage(stdout);
	printf("\n"
	       "Adds a signature to IMAGE.sig: of the whole image, its certificate among it, and\n"
	       "of the policy. To an attestation of `fay verify --attest` it adds one in the\n"
	       "file itself (DSSE).\n"
	       "\n"
	       "  --key FILE     a key made by `fay cluster keygen`\n"
	       "  --policy FILE  the policy under which the image may be traced; without it, the\n"
	       "                 standard one\n");
	return FAY_OK;
}

/* The image, and the digest of the policy that it may be traced under. */
static int sign(const char *path, const char *key, const char *policy, struct fay_error *error)
{
	struct fay_keys keys;
	uint8_t digest[FAY_TRUST_DIGEST], *image = NULL;
	size_t size;
	int result = fay_command_read("fay sign", path, &image, &size);
	if (result)
		return result; /* said */
	bool attests = fay_trust_is_attestation(image, size);
	if (attests && policy)
		result =
			fay_error_set(error, FAY_E_USAGE,
				      "an attestation names its policy itself: leave out --policy");
	else if (attests && !fay_keys_init(error) && !fay_keys_read(key, &keys, error))
		result = fay_trust_sign_attestation(path, image, size, &keys, error);
	else if (attests)
		result = error->code;
	else if (size > FAY_IMAGE_MAX_FILE)
		result =
			fay_error_set(error, FAY_E_REFUSED, "'%s' is too large for an image", path);
	else if (fay_keys_init(error) || fay_keys_read(key, &keys, error) ||
		 fay_trust_policy_digest(policy, digest, error) ||
		 fay_trust_sign(path, image, size, digest, &keys, error))
		result = error->code;
	free(image);
	return result;
}

int fay_sign_main(int argc, char **argv)
{
	static const struct option options[] = { { "key", required_argument, NULL, 'k' },
						 { "policy", required_argument, NULL, 'p' },
						 { "help", no_argument, NULL, 'h' },
						 { 0 } };
	const char *key = NULL, *policy = NULL;
	struct fay_error error = { 0 };
	int option;
	optind = 1;
	while ((option = fay_cli_getopt(argc, argv, "h", options)) != -1) {
		switch (option) {
		case 'k': key = optarg; break;
		case 'p': policy = optarg; break;
		case 'h': return sign_help();
		default: return sign_usage(stderr);
		}
	}
	if (argc - optind != 1 || !key)
		return sign_usage(stderr);
	int result = sign(argv[optind], key, policy, &error);
	return result && error.code ? fay_cli_fail(&error) : result;
}

struct trust_options {
	const char *store, *until, *tracepoints, *policy;
};

static int trust_usage(FILE *out)
{
	fputs("usage: fay trust add NAME PUBLIC-KEY [--until DAY] [--tracepoints GLOB,...]\n"
	      "       fay trust list | revoke NAME|KEY | require N | log FILE|none\n"
	      "       fay trust check IMAGE [--policy FILE]\n"
	      "       each with [--store DIRECTORY]\n",
	      out);
	return FAY_E_USAGE;
}

static int trust_help(void)
{
	trust_usage(stdout);
	printf("\n"
	       "Whose signatures of images count on this machine. `fay trace --probe` asks for\n"
	       "as many as `require` says; 0, or no store, for none. With `log`, what is traced\n"
	       "from now on is written into the file before it is installed, or not traced\n"
	       "(`fay log`). The store is %s; --store is for trying another one.\n",
	       FAY_TRUST_STORE);
	return FAY_OK;
}

static int list(const char *path, struct fay_error *error)
{
	struct fay_trust_store store;
	if (!fay_trust_store_read(path, &store, error)) {
		printf("%u signature%s required\n", store.required, store.required == 1 ? "" : "s");
		if (*store.log) {
			fputs("log ", stdout);
			fay_printable_put(stdout, store.log);
			putchar('\n');
		}
		for (size_t i = 0; i < store.count; i++) {
			const struct fay_trust_signer *signer = &store.signers[i];
			char key[FAY_KEY_HEX + 1];
			fay_keys_hex(key, signer->key);
			fay_printable_put(stdout, signer->name);
			printf(" %s%s%s%s", key, *signer->until ? " until " : "", signer->until,
			       signer->revoked ? " REVOKED" : "");
			for (uint32_t k = 0; k < signer->scope.pattern_count; k++) {
				fputs(k ? "," : " tracepoints ", stdout);
				fay_printable_put(stdout, signer->scope.patterns[k]);
			}
			putchar('\n');
		}
	}
	fay_trust_store_deinit(&store);
	return error->code;
}

/* As `fay trace --probe` would. */
static int check(const struct trust_options *options, const char *path, struct fay_error *error)
{
	struct fay_trust_store store = { 0 };
	struct fay_policy policy;
	struct fay_verdict verdict = { 0 };
	char by[FAY_TRUST_NAMES];
	uint8_t digest[FAY_TRUST_DIGEST], *image = NULL;
	size_t size;
	int result = fay_command_read("fay trust", path, &image, &size);
	if (result)
		return result;
	if (!fay_trust_policy_read(options->policy, &policy, digest, error) &&
	    !fay_delay_verify(image, size, &policy, &verdict, error) &&
	    verdict.outcome != FAY_ACCEPTED)
		fay_error_set(error, FAY_E_REFUSED, "'%s' is refused by the verifier (%s)", path,
			      fay_rule_id(verdict.rejection.rule));
	else if (!error->code && !fay_trust_store_read(options->store, &store, error))
		fay_trust_check(&store, path, image, size, digest, &verdict, by, error);
	if (!error->code)
		printf(store.required ? "trusted, signed by %s\n" : "no signature is required\n",
		       by);
	fay_trust_store_deinit(&store);
	fay_verdict_deinit(&verdict);
	free(image);
	return error->code;
}

static int run(const struct trust_options *options, int argc, char **argv, struct fay_error *error)
{
	const char *what = argc ? argv[0] : "";
	if (!strcmp(what, "add") && argc == 3)
		return fay_trust_add(options->store, argv[1], argv[2], options->until,
				     options->tracepoints, error);
	if (!strcmp(what, "list") && argc == 1)
		return list(options->store, error);
	if (!strcmp(what, "revoke") && argc == 2)
		return fay_trust_revoke(options->store, argv[1], error);
	if (!strcmp(what, "require") && argc == 2)
		return fay_trust_require(options->store, argv[1], error);
	if (!strcmp(what, "log") && argc == 2)
		return fay_trust_set_log(options->store, argv[1], error);
	if (!strcmp(what, "check") && argc == 2)
		return check(options, argv[1], error);
	return trust_usage(stderr);
}

int fay_trust_main(int argc, char **argv)
{
	static const struct option names[] = { { "store", required_argument, NULL, 's' },
					       { "until", required_argument, NULL, 'u' },
					       { "tracepoints", required_argument, NULL, 't' },
					       { "policy", required_argument, NULL, 'p' },
					       { "help", no_argument, NULL, 'h' },
					       { 0 } };
	struct trust_options options = { .store = FAY_TRUST_STORE };
	struct fay_error error = { 0 };
	int option;
	optind = 1;
	while ((option = fay_cli_getopt(argc, argv, "h", names)) != -1) {
		switch (option) {
		case 's': options.store = optarg; break;
		case 'u': options.until = optarg; break;
		case 't': options.tracepoints = optarg; break;
		case 'p': options.policy = optarg; break;
		case 'h': return trust_help();
		default: return trust_usage(stderr);
		}
	}
	if (fay_keys_init(&error))
		return fay_cli_fail(&error);
	int result = run(&options, argc - optind, argv + optind, &error);
	return error.code ? fay_cli_fail(&error) : result;
}
