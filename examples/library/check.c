/* SPDX-License-Identifier: MIT */
/*
 * Checks an image by the certificate that it brings, with libfay_check:
 *
 *     cc check.c -o check $(pkg-config --cflags --libs fay-check)
 *     ./check IMAGE
 *
 * Exit code 0 accepted, 1 refused, 2 the file cannot be read.
 */
#include <stdio.h>
#include <stdlib.h>

#include <fay/check.h>

static struct fay_probe_facts probes[FAY_IMAGE_MAX_PROBES];

int main(int argc, char **argv)
{
	struct fay_check_result result;
	FILE *file = argc == 2 ? fopen(argv[1], "rb") : NULL;
	unsigned char *bytes = malloc(FAY_IMAGE_MAX_FILE + 1u);
	size_t size;
	void *memory;

	if (!file || !bytes) {
		fprintf(stderr, "usage: %s IMAGE\n", argv[0]);
		return 2;
	}
	size = fread(bytes, 1, FAY_IMAGE_MAX_FILE + 1u, file);
	fclose(file);
	memory = malloc(fay_check_room(size));
	fay_check(bytes, size, NULL, 0, NULL, memory, fay_check_room(size), probes, &result);
	if (result.rule != FAY_RULE_NONE)
		printf("refused: %s at 0x%llx: %s\n", fay_rule_id(result.rule),
		       (unsigned long long)result.place, result.what);
	else
		printf("accepted: %u bytes run\n", (unsigned)result.span);
	for (uint32_t i = 0; i < result.probe_count; i++)
		printf("probe %u on %s: at most %llu instructions\n", (unsigned)i,
		       probes[i].pattern, (unsigned long long)probes[i].worst_instructions);
	free(memory);
	free(bytes);
	return result.rule == FAY_RULE_NONE ? 0 : 1;
}
