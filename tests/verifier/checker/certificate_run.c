/* SPDX-License-Identifier: MIT */
/* What the checker accepted, on the CPU: ../sound/native.c. */
#include <stdlib.h>

#include "../sound/native.h"
#include "certificates.h"
#include "verifier/checker/walk.h"
#include "verifier/image/image.h"
#include "verifier/isa/decode.h"

/* Where the certificate's indirect jumps go. */
static uint32_t gather_jumps(const struct check_subject *s, const uint8_t *certificate, size_t size,
			     struct fay_verdict_jump *jumps, uint32_t most)
{
	struct walk *w = calloc(1, sizeof(*w));
	struct fay_insn insn = { .op = OP_NOP };
	uint32_t n = 0, behind = 0;
	uint64_t count;

	w->subject = s;
	w->certificate =
		(struct reader){ .bytes = certificate, .at = HEADER_SIZE, .size = (uint32_t)size };
	for (uint32_t probe = 0; probe < s->probe_count; probe++) {
		count = read_number(&w->certificate);
		if (!count || count > size)
			break;
		w->node_count = (uint32_t)count;
		w->nodes = calloc(count + 1, sizeof(*w->nodes));
		if (!walk_parse(w, &behind))
			w->node_count = 0;
		for (uint32_t i = 0; i < w->node_count; i++) {
			uint64_t at = w->nodes[i].address, last = at;

			for (unsigned k = 0; k < w->nodes[i].count && at < s->text.size; k++) {
				if (fay_decode_bytes(s->text.bytes + at, s->text.size - at,
						     s->text.start + at, &insn) != FAY_RULE_NONE)
					break;
				last = at;
				at += insn.length;
			}
			if (insn.op != OP_JMP_TABLE)
				continue;
			w->ends = w->certificate;
			w->ends.at = w->nodes[i].end;
			for (unsigned k = 0; k < w->nodes[i].targets && n < most; k++) {
				int64_t to = i + read_signed(&w->ends);

				if (to < 0 || to >= w->node_count)
					continue;
				jumps[n++] = (struct fay_verdict_jump){
					.from = (uint32_t)(s->text.start - s->base + last),
					.to = (uint32_t)(s->text.start - s->base +
							 w->nodes[to].address)
				};
			}
		}
		free(w->nodes);
		w->certificate.at = behind;
	}
	free(w);
	return n;
}

const char *execute(const uint8_t *file, size_t size, const uint8_t *certificate,
		    size_t certificate_size, const struct check_result *result,
		    struct fay_probe_facts *facts)
{
	static struct fay_verdict_jump jumps[4096];
	struct fay_arena *arena = fay_arena_create((size_t)64 << 20);
	struct check_subject s;
	struct fay_image image;
	struct fay_verdict v = { .outcome = FAY_ACCEPTED,
				 .probe_count = result->probe_count < 4 ? result->probe_count : 4,
				 .probes = facts };
	const char *wrong = NULL;

	/* names beyond the file: test_parse.c */
	if (check_parse(file, size, &s).rule == FAY_RULE_NONE &&
	    fay_image_parse(arena, file, size, &image).rule == FAY_RULE_NONE) {
		v.layout = image.layout;
		v.jumps = jumps;
		v.jump_count = gather_jumps(&s, certificate, certificate_size, jumps, 4096);
		wrong = native_check(file, size, &v, seed, 4, &steps);
		executed++;
	}
	fay_arena_destroy(arena);
	return wrong;
}
