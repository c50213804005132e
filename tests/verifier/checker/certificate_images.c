/* SPDX-License-Identifier: MIT */
/* The images of the corpus, their policies, and certificates by the prover. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "certificates.h"
#include "verifier/accept/accept.h"
#include "verifier/prover/prove.h"

static uint8_t *slurp(const char *path, size_t *size)
{
	FILE *f = fopen(path, "rb");
	uint8_t *b = malloc(FILE_MOST + 1);

	*size = f && b ? fread(b, 1, FILE_MOST, f) : 0;
	if (f)
		fclose(f);
	if (!*size) {
		free(b);
		return NULL;
	}
	b[*size] = 0;
	return b;
}

static uint64_t attribute(const char *line, const char *name, uint64_t otherwise)
{
	const char *at = strstr(line, name);

	return at && isspace((unsigned char)at[-1]) ? strtoull(at + strlen(name), NULL, 0)
						    : otherwise;
}

static void make_policy(const char *line, struct fay_policy *p)
{
	const char *word;

	fay_policy_default(p);
	p->max_instructions = attribute(line, "max_instructions=", p->max_instructions);
	p->max_stack = attribute(line, "max_stack=", p->max_stack);
	p->max_local = attribute(line, "max_local=", p->max_local);
	p->max_global = attribute(line, "max_global=", p->max_global);
	p->allow_helpers = attribute(line, "helpers=", p->allow_helpers);
	p->speculation_confined = attribute(line, "spec=", p->speculation_confined);
	p->allow_vectors = attribute(line, "vectors=", p->allow_vectors);
	p->allow_rdtsc = attribute(line, "rdtsc=", p->allow_rdtsc);
	p->allow_fields = (uint32_t)attribute(line, "fields=", p->allow_fields);
	p->allow_kinds = (uint32_t)attribute(line, "kinds=", p->allow_kinds);
	word = strstr(line, " deny=");
	if (word)
		p->denied_count = sscanf(word + 6, "%11s", p->denied[0]) == 1;
	word = strstr(line, " pattern=");
	if (word)
		p->pattern_count = sscanf(word + 9, "%255s", p->patterns[0]) == 1;
}

/* The lines of a section that begin with #: */
static char *text_of(const char *section, size_t size)
{
	char *text = calloc(1, size + 1), *to = text;

	for (const char *p = section; p < section + size;) {
		size_t length = strcspn(p, "\n");

		if (!strncmp(p, "#:", 2)) {
			memcpy(to, p + 2, length - 2);
			to += length - 2;
			*to++ = '\n';
		}
		p += length + 1;
	}
	if (to == text) {
		free(text);
		return NULL;
	}
	return text;
}

/* What is installed by the certificate is what is installed by the proof, and jumps where that
 * does. */
static void compare_layouts(const struct image *m, const struct fay_bytes *certificate,
			    const struct fay_verdict *proof)
{
	const struct fay_layout *proved = &proof->layout;
	struct fay_policy policy = m->policy;
	struct fay_bytes whole = { 0 };
	struct fay_verdict v;

	policy.allow_certificates = true;
	fay_certificate_attach(m->bytes, m->size, certificate, &whole);
	if (fay_accept_certified(whole.at, whole.size, &policy, &v)) {
		const struct fay_layout *l = &v.layout;

		if (l->size != proved->size || memcmp(l->bytes, proved->bytes, l->size) ||
		    memcmp(l->sha256, proved->sha256, sizeof(l->sha256)) ||
		    l->code_offset != proved->code_offset || l->code_size != proved->code_size ||
		    l->slot_count != proved->slot_count ||
		    memcmp(l->slots, proved->slots, l->slot_count * sizeof(l->slots[0])))
			fail(m, "another layout by the certificate", m->bytes, m->size,
			     certificate->at, certificate->size);
		if (v.jump_count != proof->jump_count ||
		    memcmp(v.jumps, proof->jumps, v.jump_count * sizeof(v.jumps[0])))
			fail(m, "other jumps by the certificate", m->bytes, m->size,
			     certificate->at, certificate->size);
		layouts++;
		fay_verdict_deinit(&v);
	}
	free(whole.at);
}

/* The prover's verdict and certificate. */
static bool prove(struct image *m)
{
	struct fay_verdict v;
	struct fay_bytes c = { 0 };
	struct fay_run *run = fay_prove(m->bytes, m->size, &m->policy, NULL, &c, NULL, &v);
	bool ok = run && v.outcome == FAY_ACCEPTED;

	if (ok && run->certify.refusal.rule == FAY_RULE_NONE &&
	    (c.at[5] || !m->policy.speculation_confined)) {
		compare_layouts(m, &c, &v);
		m->certificate = c.at;
		m->certificate_size = c.size;
	} else {
		free(c.at);
	}
	fay_run_end(run);
	fay_verdict_deinit(&v);
	return ok;
}

bool find_tables(const struct image *of, struct fay_cfg *cfg)
{
	struct fay_verdict v;
	struct fay_run *run = fay_prove(of->bytes, of->size, &of->policy, NULL, NULL, NULL, &v);
	bool ok = run != NULL;

	if (ok && run->cfg.jump_count)
		ok = fay_cfg_extend(cfg, run->cfg.jumps, run->cfg.jump_count, 0).rule ==
		     FAY_RULE_NONE;
	if (run)
		fay_run_end(run);
	fay_verdict_deinit(&v);
	return ok;
}

void add_image(const char *path, const char *name, const char *line, const char *text, bool accept)
{
	struct image *m = &images[image_count];
	struct check_result r;

	if (image_count == IMAGES_MAX)
		return;
	*m = (struct image){ .interface = &check_probe_interface, .text = text, .legal = accept };
	m->bytes = slurp(path, &m->size);
	if (!m->bytes)
		return;
	image_count++;
	snprintf(m->name, sizeof(m->name), "%s", name);
	make_policy(line, &m->policy);
	if (check(m->bytes, m->size, NULL, 0, &m->policy, NULL, &r) == FAY_RULE_NONE)
		fail(m, "accepted without a certificate", m->bytes, m->size, NULL, 0);
	/* whatever is legal, the claim is not; what is searched for is none of the prover's */
	if (!accept || text || strstr(line, "| searched"))
		return;
	if (!prove(m)) {
		fail(m, "the prover does not accept it", m->bytes, m->size, NULL, 0);
	} else if (m->certificate) {
		honest++;
		if (check(m->bytes, m->size, m->certificate, m->certificate_size, &m->policy, NULL,
			  &r) != FAY_RULE_NONE)
			fail(m, r.refusal.what, m->bytes, m->size, m->certificate,
			     m->certificate_size);
	} else if (strstr(line, "| certified")) {
		fail(m, "no certificate is written", m->bytes, m->size, NULL, 0);
	}
}

void read_corpus(const char *path, const char *directory)
{
	size_t size;
	uint8_t *whole = slurp(path, &size);
	const char *base = strrchr(path, '/') ? strrchr(path, '/') + 1 : path, *group = base;
	unsigned n = 0;

	/* accept and reject have files of the same names */
	if (base > path + 1)
		for (group = base - 1; group > path && group[-1] != '/';)
			group--;

	for (char *p = whole ? strstr((char *)whole, "### ") : NULL; p;) {
		char *end = p + strcspn(p, "\n"), *next = strstr(end, "\n### ");
		char image[512], name[96], line[1024];

		snprintf(line, sizeof(line), "%.*s ", (int)(end - p), p);
		snprintf(image, sizeof(image), "%s/%.*s%s-%u.fay", directory, (int)(base - group),
			 group, base, ++n);
		snprintf(name, sizeof(name), "%s-%u: %.*s", group, n, (int)strcspn(p + 4, "|"),
			 p + 4);
		add_image(image, name, line,
			  text_of(end, next ? (size_t)(next - end) : strlen(end)),
			  strstr(line, "| expect accept") != NULL);
		p = next ? next + 1 : NULL;
	}
	free(whole);
}
