/* SPDX-License-Identifier: MIT */
/*
 * What a verification takes, counted: of each image named, how it ended (prover, early: by a
 * certificate before the solver was asked, found: by one behind a refusal, refused), how many
 * questions the solver got, and how many runs of nodes the searches for certificates took.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "verifier/prover/prove.h"

static uint8_t *read_file(const char *path, size_t *size)
{
	FILE *f = fopen(path, "rb");
	uint8_t *bytes = malloc(1 << 20);

	if (!f || !bytes) {
		perror(path);
		exit(1);
	}
	*size = fread(bytes, 1, 1 << 20, f);
	fclose(f);
	return bytes;
}

static void print(const char *path)
{
	struct fay_bytes found = { 0 };
	struct fay_policy policy;
	struct fay_verdict v;
	const char *how = "prover";
	struct fay_run *run;
	size_t size;
	uint8_t *bytes = read_file(path, &size);

	fay_policy_default(&policy);
	run = fay_prove_or_find(bytes, size, &policy, &found, &v);
	if (!run)
		exit(1);
	if (found.size)
		how = "early";
	else if (v.outcome != FAY_ACCEPTED)
		how = fay_certify_refused(run, bytes, size, &found) ? "found" : "refused";
	printf("%s %s %" PRIu64 " %" PRIu64 "\n", path, how, v.solver_queries, run->certify.spent);
	fay_run_end(run);
	fay_verdict_deinit(&v);
	free(found.at);
	free(bytes);
}

int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		print(argv[i]);
}
