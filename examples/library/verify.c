/* SPDX-License-Identifier: MIT */
/*
 * Verifies an image with libfay_verify and prints the verdict:
 *
 *     cc verify.c -o verify $(pkg-config --cflags --libs fay-verify)
 *     ./verify IMAGE
 *
 * Exit code 0 accepted, 1 rejected, 2 the file cannot be read.
 */
#include <stdio.h>
#include <stdlib.h>

#include <fay/verify.h>

static void *read_file(const char *path, size_t *size)
{
	FILE *file = fopen(path, "rb");
	char *bytes = malloc(FAY_IMAGE_MAX_FILE + 1u);

	if (!file || !bytes) {
		perror(path);
		exit(2);
	}
	*size = fread(bytes, 1, FAY_IMAGE_MAX_FILE + 1u, file);
	if (ferror(file)) {
		perror(path);
		exit(2);
	}
	fclose(file);
	return bytes;
}

int main(int argc, char **argv)
{
	struct fay_policy policy;
	struct fay_verdict verdict;
	size_t size;
	void *bytes;
	int accepted;

	if (argc != 2) {
		fprintf(stderr, "usage: %s IMAGE\n", argv[0]);
		return 2;
	}
	bytes = read_file(argv[1], &size);
	fay_policy_default(&policy);
	policy.max_instructions = 100000;
	fay_verify(bytes, size, &policy, &verdict);
	fay_verdict_print(stdout, argv[1], &verdict);
	accepted = verdict.outcome == FAY_ACCEPTED;
	for (uint32_t i = 0; accepted && i < verdict.probe_count; i++)
		printf("probe %u on %s: at most %llu instructions\n", (unsigned)i,
		       verdict.probes[i].pattern,
		       (unsigned long long)verdict.probes[i].worst_instructions);
	fay_verdict_deinit(&verdict);
	free(bytes);
	return accepted ? 0 : 1;
}
