/* SPDX-License-Identifier: MIT */
/*
 * Extensions: certificates for a host's interface. No prover has a part in it; what the checker's
 * own machine can follow is all that there is.
 */
#include <stdio.h>
#include <stdlib.h>

#include "certify_parts.h"
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
	struct machine refused;
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

	fay_read_fingerprint(subject, hash);
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

static bool try_entry(struct host_run *run, uint32_t i, bool mispredicted, struct fay_bytes *out)
{
	struct fay_graph graph = { 0 };
	struct fay_refusal r =
		fay_graph_build_split(&graph, &run->cfg, check_probe(&run->subject, i).code);
	bool ok = r.rule == FAY_RULE_NONE;

	run->certify.refusal = told(r);
	run->certify.cfg = &run->cfg;
	run->certify.graph = &graph;
	run->certify.mispredicted = mispredicted;
	ok = ok && fay_certify_probe(&run->certify, out);
	fay_graph_deinit(&graph);
	return ok;
}

static bool certify_entry(struct host_run *run, uint32_t i, bool mispredicted,
			  struct fay_bytes *out)
{
	struct fay_certify *c = &run->certify;

	for (unsigned round = 0; round <= FAY_MAX_DISCOVERIES; round++) {
		if (try_entry(run, i, mispredicted, out))
			return true;
		if (!c->found_count)
			return false;
		if (fay_cfg_extend(&run->cfg, c->found, c->found_count, 0).rule != FAY_RULE_NONE)
			return false;
		c->found_count = 0;
	}
	return false;
}

/* ---- what was known ---- */

static void put_range(char *to, size_t size, struct range r)
{
	/* beyond a word nothing is known */
	if (r.lo < INT64_MIN || r.hi > UINT64_MAX)
		snprintf(to, size, "anything");
	else if (r.lo < 0)
		snprintf(to, size, "[%lld, %lld]", (long long)r.lo, (long long)r.hi);
	else
		snprintf(to, size, "[%llu, %llu]", (unsigned long long)r.lo,
			 (unsigned long long)r.hi);
}

static void describe(struct machine *m, unsigned reg, char *to, size_t size)
{
	const struct value *v = &m->s.reg[reg];
	const struct var *passed = var_pinned(&m->s, PIN_SIZES + v->tag, 0);
	struct form apart = v->f, end = { .k[0] = 1, .v[0] = passed ? passed->id : 0 };
	char range[64], behind[64];

	put_range(range, sizeof(range),
		  v->kind == KIND_NUMBER ? value_range(m, v, 64, false) : form_range(m, &v->f));
	if (v->kind == KIND_NUMBER) {
		snprintf(to, size, "a number in %s", range);
	} else if (v->kind != KIND_POINTER) {
		snprintf(to, size, "nothing that may be used");
	} else if (v->tag >= REGION_RODATA) {
		snprintf(to, size, "%s, at %s", v->tag == REGION_STACK ? "stack" : "constants",
			 range);
	} else if (!passed || !form_plus(&apart, &end, -1)) {
		snprintf(to, size, "region %u, at %s", v->tag + 1u, range);
	} else {
		put_range(behind, sizeof(behind), form_range(m, &apart));
		snprintf(to, size, "region %u, at %s, which less its size is in %s", v->tag + 1u,
			 range, behind);
	}
}

/* Registers that an operand reads. */
static uint32_t names(const struct fay_operand *o)
{
	uint32_t mask = 0;

	if (o->kind == OPERAND_REG && o->reg < 16)
		mask |= 1u << o->reg;
	if (o->kind == OPERAND_MEM && !o->rip && o->base < 16)
		mask |= 1u << o->base;
	if (o->kind == OPERAND_MEM && !o->rip && o->index < 16)
		mask |= 1u << o->index;
	return mask;
}

/* Of each register that the instruction at the refusal's place reads. */
static void tell_facts(struct host_run *run, char *facts, size_t size)
{
	const struct fay_insn *insn = NULL;
	uint32_t named;

	for (uint32_t i = 0; i < run->cfg.insn_count; i++)
		if (run->cfg.insns[i].address == run->certify.refusal.place)
			insn = &run->cfg.insns[i];
	if (!insn || run->refused.refusal.rule != run->certify.refusal.rule)
		return;
	named = names(&insn->src) | (insn->src.kind == OPERAND_MEM ? 0 : names(&insn->dst));
	if (insn->op == OP_RET)
		named = 1u << FAY_RAX;
	for (unsigned reg = 0; reg < 16; reg++) {
		char what[192];
		int n;

		if (!(named >> reg & 1))
			continue;
		describe(&run->refused, reg, what, sizeof(what));
		n = snprintf(facts, size, "%s: %s\n", fay_gpr_name(reg, 64), what);
		if (n < 0 || (size_t)n >= size)
			return;
		facts += n;
		size -= (size_t)n;
	}
}

bool fay_certify_extension(const struct fay_interface *interface, const uint8_t *image, size_t size,
			   const struct fay_policy *policy, struct fay_bytes *out,
			   struct check_refusal *why, char *facts, size_t facts_size)
{
	struct host_run *run = calloc(1, sizeof(*run));
	bool confined = policy->speculation_confined, ok;

	*why = (struct check_refusal){ FAY_RULE_LIM_RESOURCE, 0, "out of memory" };
	*facts = 0;
	if (!run)
		return false;
	run->arena = fay_arena_create(ARENA_BYTES);
	run->certify = (struct fay_certify){
		.subject = &run->subject, .size = size, .policy = policy, .refused = &run->refused
	};
	run->certify.refusal = fay_read_extension(image, size, interface, &run->subject);
	ok = run->arena && run->certify.refusal.rule == FAY_RULE_NONE && find_code(run);
	if (ok)
		fay_certificate_begin(&run->subject, confined, out);
	for (uint32_t i = 0; ok && i < run->subject.probe_count; i++)
		ok = certify_entry(run, i, false, out) &&
		     (!confined || certify_entry(run, i, true, out));
	if (run->arena)
		*why = run->certify.refusal;
	if (!ok)
		tell_facts(run, facts, facts_size);
	fay_cfg_deinit(&run->cfg);
	free(run->certify.found);
	if (run->arena)
		fay_arena_destroy(run->arena);
	free(run);
	return ok;
}
