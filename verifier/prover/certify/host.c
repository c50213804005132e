/* SPDX-License-Identifier: MIT */
/*
 * Extensions: certificates for a host's interface. No prover has a part in it; what the checker's
 * own machine can follow is all that there is.
 */
#include <stdlib.h>

#include "certify.h"
#include "verifier/accept/accept.h"
#include "verifier/isa/decode.h"

#define ARENA_BYTES ((size_t)512 << 20)

/* What is known before the walk. */
struct host_run {
	struct fay_certify certify;
	struct check_subject subject;
	struct fay_image image;
	struct fay_cfg cfg;
	struct fay_arena *arena;
};

static struct check_refusal told(struct fay_refusal r)
{
	/* its words end with the arena */
	return (struct check_refusal){ r.rule, r.address,
				       r.rule == FAY_RULE_NONE ? NULL : fay_rule_title(r.rule) };
}

void fay_certificate_begin(const struct check_subject *subject, bool confined,
			   struct fay_bytes *out)
{
	uint8_t hash[FAY_CERTIFICATE_HASH], version = FAY_CERTIFICATE_VERSION;
	uint8_t mode = confined ? CERTIFICATE_CONFINED : CERTIFICATE_PLAIN;

	check_fingerprint(subject, hash);
	out->size = 0;
	fay_bytes_put(out, FAY_CERTIFICATE_MAGIC, 4);
	fay_bytes_put(out, &version, 1);
	fay_bytes_put(out, &mode, 1);
	fay_bytes_put(out, hash, sizeof(hash));
}

/* The image as control flow is found in it. */
static bool find_code(struct host_run *run)
{
	const struct check_subject *s = &run->subject;
	struct fay_image *image = &run->image;
	struct fay_refusal r;

	image->layout_base = s->base;
	image->text = (struct fay_range){ s->text.start, s->text.size };
	image->rodata = (struct fay_range){ s->rodata.start, s->rodata.size };
	image->got = (struct fay_range){ s->got.start, s->got.size };
	image->probe_count = s->probe_count;
	image->probes = fay_arena_alloc(run->arena, s->probe_count * sizeof(*image->probes));
	if (!image->probes || !fay_accept_layout(run->arena, s, &image->layout)) {
		run->certify.refusal =
			(struct check_refusal){ FAY_RULE_LIM_RESOURCE, 0, "out of memory" };
		return false;
	}
	for (uint32_t i = 0; i < s->probe_count; i++)
		image->probes[i].code_offset = (uint32_t)(check_probe(s, i).code - s->base);
	r = fay_cfg_build(&run->cfg, run->arena, image, 0);
	run->certify.refusal = told(r);
	return r.rule == FAY_RULE_NONE;
}

static bool certify_entry(struct host_run *run, uint32_t i, bool mispredicted,
			  struct fay_bytes *out)
{
	struct fay_graph graph = { 0 };
	struct fay_refusal r =
		fay_graph_build(&graph, &run->cfg, check_probe(&run->subject, i).code);
	bool ok = r.rule == FAY_RULE_NONE;

	run->certify.refusal = told(r);
	run->certify.cfg = &run->cfg;
	run->certify.graph = &graph;
	run->certify.mispredicted = mispredicted;
	ok = ok && fay_certify_probe(&run->certify, out);
	fay_graph_deinit(&graph);
	return ok;
}

bool fay_certify_extension(const struct fay_interface *interface, const uint8_t *image, size_t size,
			   const struct fay_policy *policy, struct fay_bytes *out,
			   struct check_refusal *why)
{
	struct host_run *run = calloc(1, sizeof(*run));
	bool confined = policy->speculation_confined, ok;

	*why = (struct check_refusal){ FAY_RULE_LIM_RESOURCE, 0, "out of memory" };
	if (!run)
		return false;
	run->arena = fay_arena_create(ARENA_BYTES);
	run->certify =
		(struct fay_certify){ .subject = &run->subject, .size = size, .policy = policy };
	run->certify.refusal = check_parse_extension(image, size, interface, &run->subject);
	ok = run->arena && run->certify.refusal.rule == FAY_RULE_NONE && find_code(run);
	if (ok)
		fay_certificate_begin(&run->subject, confined, out);
	for (uint32_t i = 0; ok && i < run->subject.probe_count; i++)
		ok = certify_entry(run, i, false, out) &&
		     (!confined || certify_entry(run, i, true, out));
	if (run->arena)
		*why = run->certify.refusal;
	fay_cfg_deinit(&run->cfg);
	if (run->arena)
		fay_arena_destroy(run->arena);
	free(run);
	return ok;
}
