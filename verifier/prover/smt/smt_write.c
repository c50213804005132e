/* SPDX-License-Identifier: MIT */
/*
 * SMT-LIB 2 files of obligations, and DIR/index.json that names them (docs/internals/smt2.md).
 *
 * A file holds the facts that bear on the obligation, its negation, and the expected answer. Of a
 * block's invariant, what has no variable in common with the obligation, over any number of steps,
 * is left out: fewer hypotheses prove no more, so "unsat" of the smaller file implies that of the
 * whole.
 */
#include "smt2.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* ---- which facts bear on a claim ---- */

struct relevance {
	Z3_context z;
	uint32_t *visited; /* per term's id: the walk that saw it last */
	uint8_t *counts;   /* per term's id: a variable that bears on the claim */
	unsigned visited_size, counts_size;
	uint32_t walk;
	Z3_ast *stack;
	unsigned depth, capacity;
	unsigned *variables; /* found by the last walk */
	unsigned variable_count, variable_capacity;
	bool failed;
};

static bool grow(void **array, unsigned *capacity, unsigned need, size_t item)
{
	unsigned larger = need < 512 ? 1024 : 2 * need;
	void *grown;

	if (need < *capacity)
		return true;
	grown = realloc(*array, larger * item);
	if (!grown)
		return false;
	memset((char *)grown + *capacity * item, 0, (larger - *capacity) * item);
	*array = grown;
	*capacity = larger;
	return true;
}

/* Notes that the walk sees `term`; false if it did before. */
static bool visit(struct relevance *r, Z3_ast term, unsigned *id)
{
	*id = Z3_get_ast_id(r->z, term);
	if (!grow((void **)&r->visited, &r->visited_size, *id, sizeof(*r->visited)) ||
	    !grow((void **)&r->counts, &r->counts_size, *id, 1)) {
		r->failed = true;
		return false;
	}
	if (r->visited[*id] == r->walk)
		return false;
	r->visited[*id] = r->walk;
	return true;
}

static void push(struct relevance *r, Z3_ast term)
{
	if (!grow((void **)&r->stack, &r->capacity, r->depth, sizeof(*r->stack)))
		r->failed = true;
	else
		r->stack[r->depth++] = term;
}

/* Leaves the variables of `term` in r->variables. */
static void find_variables(struct relevance *r, Z3_ast term)
{
	r->walk++;
	r->depth = r->variable_count = 0;
	push(r, term);
	while (r->depth && !r->failed) {
		Z3_ast t = r->stack[--r->depth];
		Z3_app app;
		unsigned n, id;

		if (Z3_get_ast_kind(r->z, t) != Z3_APP_AST || !visit(r, t, &id))
			continue;
		app = Z3_to_app(r->z, t);
		n = Z3_get_app_num_args(r->z, app);
		for (unsigned i = 0; i < n; i++)
			push(r, Z3_get_app_arg(r->z, app, i));
		if (n || Z3_get_decl_kind(r->z, Z3_get_app_decl(r->z, app)) != Z3_OP_UNINTERPRETED)
			continue;
		if (!grow((void **)&r->variables, &r->variable_capacity, r->variable_count,
			  sizeof(*r->variables)))
			r->failed = true;
		else
			r->variables[r->variable_count++] = id;
	}
}

/* Whether the last walk found a variable that counts, or none at all; then all of them count from
 * now on. */
static bool bears(struct relevance *r)
{
	bool any = r->variable_count == 0;

	for (unsigned i = 0; i < r->variable_count; i++)
		any |= r->counts[r->variables[i]];
	for (unsigned i = 0; any && i < r->variable_count; i++)
		r->counts[r->variables[i]] = 1;
	return any;
}

/* The facts of q that bear on `claim`, into `facts`; their number. */
static unsigned relevant(struct query *q, Z3_ast claim, Z3_ast *facts, bool *failed)
{
	struct relevance r = { .z = q->z };
	uint8_t *in = calloc(q->fact_count + 1, 1);
	unsigned count = 0;
	bool more = in != NULL;

	find_variables(&r, claim);
	for (unsigned i = 0; i < r.variable_count && !r.failed; i++)
		r.counts[r.variables[i]] = 1;
	while (more && !r.failed) {
		more = false;
		for (unsigned i = 0; i < q->fact_count; i++) {
			if (in[i])
				continue;
			find_variables(&r, q->facts[i]);
			in[i] = bears(&r);
			more |= in[i] && r.variable_count;
		}
	}
	for (unsigned i = 0; in && i < q->fact_count; i++)
		if (in[i])
			facts[count++] = q->facts[i];
	*failed = r.failed || !in;
	free(in);
	free(r.visited);
	free(r.counts);
	free(r.stack);
	free(r.variables);
	return count;
}

/* ---- files ---- */

static void fail(struct fay_smt2 *out, int error)
{
	if (!out->error)
		out->error = error ? error : EIO;
}

bool fay_smt2_open(struct fay_smt2 *out, const char *directory, const struct fay_verdict *verdict)
{
	char path[4096];

	*out = (struct fay_smt2){ .directory = directory };
	if ((mkdir(directory, 0777) && errno != EEXIST) ||
	    snprintf(path, sizeof(path), "%s/index.json", directory) >= (int)sizeof(path)) {
		out->error = errno ? errno : ENAMETOOLONG;
		return false;
	}
	out->index = fopen(path, "we");
	if (!out->index) {
		fail(out, errno);
		return false;
	}
	fprintf(out->index, "{\"version\":1,\"image_sha256\":\"");
	for (unsigned i = 0; i < 32; i++)
		fprintf(out->index, "%02x", verdict->image_sha256[i]);
	fprintf(out->index, "\",\"obligations\":[");
	return true;
}

bool fay_smt2_close(struct fay_smt2 *out, const struct fay_verdict *verdict)
{
	bool complete = verdict->outcome == FAY_ACCEPTED && !out->truncated && !out->error;

	if (!out->index)
		return false;
	fprintf(out->index,
		"\n],\"outcome\":\"%s\",\"files\":%" PRIu32 ",\"unstated\":%" PRIu32
		",\"complete\":%s}\n",
		fay_outcome_name(verdict->outcome), out->count, out->unstated,
		complete ? "true" : "false");
	if (ferror(out->index) | fclose(out->index))
		fail(out, errno);
	out->index = NULL;
	return !out->error;
}

static void write_file(struct fay_smt2 *out, const char *name, const char *text)
{
	char path[4096];
	FILE *file;

	if (snprintf(path, sizeof(path), "%s/%s", out->directory, name) >= (int)sizeof(path)) {
		fail(out, ENAMETOOLONG);
		return;
	}
	file = fopen(path, "we");
	if (!file || fputs(text, file) < 0)
		fail(out, errno);
	if (file && fclose(file))
		fail(out, errno);
	out->bytes += strlen(text);
	if (out->bytes > FAY_SMT2_MAX_BYTES)
		out->truncated = true;
}

void fay_smt2_put(struct fay_smt2 *out, struct query *q, const char *rule, uint64_t address,
		  const char *what, Z3_ast claim, const char *expected)
{
	unsigned long long offset = address - q->an->image->text.start;
	Z3_ast *facts;
	const char *text;
	char name[128], title[256];
	unsigned count = q->fact_count;
	bool failed = false;

	if (!out || out->error || out->truncated)
		return;
	if (out->count == FAY_SMT2_MAX_FILES) {
		out->truncated = true;
		return;
	}
	facts = calloc(q->fact_count + 1, sizeof(Z3_ast));
	if (facts && q->local)
		count = relevant(q, claim, facts, &failed);
	else if (facts && count)
		memcpy(facts, q->facts, count * sizeof(Z3_ast));
	snprintf(name, sizeof(name), "probe%u-%llx-%s-%05u.smt2", out->probe, offset, rule,
		 out->count);
	snprintf(title, sizeof(title), "%s at .text+0x%llx of probe %u: %s", rule, offset,
		 out->probe, what);
	text = facts && !failed ? Z3_benchmark_to_smtlib_string(q->z, title, "QF_BV", expected, "",
								count, facts, claim)
				: NULL;
	free(facts);
	if (!text) {
		fail(out, ENOMEM);
		return;
	}
	write_file(out, name, text);
	fprintf(out->index,
		"%s\n{\"file\":\"%s\",\"probe\":%u,\"offset\":%llu,\"rule\":\"%s\",\"what\":\"%s\","
		"\"expected\":\"%s\"}",
		out->count + out->unstated ? "," : "", name, out->probe, offset, rule, what,
		expected);
	out->count++;
}

void fay_smt2_unstated(struct fay_smt2 *out, const char *rule, const char *what, const char *why)
{
	if (out->error)
		return;
	fprintf(out->index,
		"%s\n{\"file\":null,\"probe\":%u,\"rule\":\"%s\",\"what\":\"%s\",\"why\":\"%s\"}",
		out->count + out->unstated ? "," : "", out->probe, rule, what, why);
	out->unstated++;
}
