/* SPDX-License-Identifier: MIT */
/* What the checker accepted, on the CPU: ../sound/native.c. */
#include <stdlib.h>

#include "../sound/native.h"
#include "certificates.h"
#include "verifier/image/image.h"

const char *execute(const uint8_t *file, size_t size, const uint8_t *certificate,
		    size_t certificate_size, const struct check_result *result,
		    struct fay_probe_facts *facts)
{
	struct fay_verdict_jump *jumps = calloc(result->jump_count + 1u, sizeof(*jumps));
	struct fay_arena *arena = fay_arena_create((size_t)64 << 20);
	struct check_subject s;
	struct fay_image image;
	struct fay_verdict v = { .outcome = FAY_ACCEPTED,
				 .probe_count = result->probe_count < 4 ? result->probe_count : 4,
				 .probes = facts };
	const char *wrong = NULL;

	/* names beyond the file: test_parse.c */
	if (fay_read_image(file, size, &s).rule == FAY_RULE_NONE &&
	    fay_image_parse(arena, file, size, &image).rule == FAY_RULE_NONE) {
		v.layout = image.layout;
		for (uint32_t i = 0; i < result->jump_count; i++)
			jumps[i] = (struct fay_verdict_jump){
				.from = image.layout.code_offset + result->jumps[i].from,
				.to = image.layout.code_offset + result->jumps[i].to
			};
		v.jumps = jumps;
		v.jump_count = result->jump_count;
		wrong = native_check(file, size, &v, seed, 4, &steps);
	}
	fay_arena_destroy(arena);
	free(jumps);
	return wrong;
}
