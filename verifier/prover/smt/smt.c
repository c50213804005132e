/* SPDX-License-Identifier: MIT */
/*
 * What the abstract values cannot prove is asked of Z3, as a query over bit vectors.
 *
 * The query covers the acyclic piece of the probe's graph from a cut point to the obligation: the
 * head of the innermost loop around it, or the probe's entry. Before that it is asked with less of
 * the way: from a node near it through which all ways from there lead. At the cut point, and at the
 * heads of other loops on the way, registers and stack slots are fresh unknowns of which only the
 * invariant of the fixpoint is assumed; so an answer "unsatisfiable" is a proof for every iteration
 * (induction with the invariant as hypothesis). Paths are merged with if-then-else, each guarded by
 * its path condition.
 *
 * A pointer is represented by its offset in its region: the abstract pass, which runs in step, has
 * refused everything that would tell addresses apart from offsets. Memory other than the own stack,
 * the event and read-only data is an unknown at every read. Whatever is not modelled is an unknown
 * too, so that mistakes of omission cost proofs and not soundness.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "smt2.h"
#include "smt_cache.h"

#define RLIMIT 1000000u /* Z3's own measure of work */
/* Z3's, for all that it holds while it answers; the states are kept meanwhile (analysis.h) */
#define MEMORY_MIB 768u
/* of a question that is asked again with more of the way to it, if this does not do */
#define NEAR_RLIMIT 200000u

static void on_error(Z3_context z, Z3_error_code code)
{
	(void)z;
	(void)code; /* looked at with Z3_get_error_code */
}

/* ---- answers ---- */

static uint64_t model_number(struct query *q, Z3_model model, Z3_ast term)
{
	Z3_ast value = NULL;
	uint64_t number = 0;

	if (!term || !Z3_model_eval(q->z, model, term, true, &value) ||
	    !Z3_get_numeral_uint64(q->z, value, &number))
		return 0;
	return number;
}

static void read_model(struct query *q, struct fay_model *out)
{
	Z3_model model = Z3_solver_get_model(q->z, q->solver);

	if (!model)
		return;
	Z3_model_inc_ref(q->z, model);
	*out = (struct fay_model){ .from_entry = q->cut == 0 && !q->an->graph->nodes[0].is_header &&
						 !q->inner_cut };
	for (unsigned i = 0; i < FAY_SMT_EVENT_WORDS; i++) {
		uint64_t word = model_number(q, model, q->event[i]);

		memcpy(out->event + 8 * i, &word, 8);
	}
	for (unsigned i = 0; i < 16; i++)
		out->registers[i] = model_number(q, model, q->start[i]);
	for (unsigned i = 0; i < q->load_count; i++)
		out->loads[out->load_count++] =
			(struct fay_model_load){ .node = q->loads[i].node,
						 .insn = q->loads[i].insn,
						 .size = q->loads[i].size,
						 .value = model_number(q, model, q->loads[i].var) };
	Z3_model_dec_ref(q->z, model);
}

static void keep_model(struct query *q)
{
	Z3_model model = Z3_solver_get_model(q->z, q->solver);

	if (!model || q->model_count == FAY_SMT_MODELS)
		return;
	Z3_model_inc_ref(q->z, model);
	q->models[q->model_count++] = model;
}

/* Milliseconds for one question. */
static unsigned budget(const struct fay_analysis *an)
{
	return an->policy->solver_ms ? an->policy->solver_ms : 1000;
}

static enum fay_answer ask(struct query *q, struct fay_model *model)
{
	Z3_params params = Z3_mk_params(q->z);
	Z3_tactic tactic;
	Z3_lbool answer;
	uint64_t now = fay_monotonic_ns();
	unsigned ms = q->ms;
	bool keyed;
	uint8_t key[32];

	if (q->an->deadline && now >= q->an->deadline)
		return ANSWER_UNKNOWN;
	keyed = q->an->cache && fay_smt_cache_key(q->z, q->fact_count, q->facts, key);
	if (keyed && fay_smt_cache_has(q->an->cache, key))
		return ANSWER_PROVED;
	if (q->an->verdict)
		q->an->verdict->solver_queries++;
	if (q->an->deadline && (q->an->deadline - now) / 1000000 < ms)
		ms = (unsigned)((q->an->deadline - now) / 1000000) + 1;
	Z3_params_inc_ref(q->z, params);
	Z3_params_set_uint(q->z, params, Z3_mk_string_symbol(q->z, "timeout"), ms);
	Z3_params_set_uint(q->z, params, Z3_mk_string_symbol(q->z, "rlimit"),
			   q->work ? q->work : RLIMIT);
	Z3_params_set_uint(q->z, params, Z3_mk_string_symbol(q->z, "max_memory"), MEMORY_MIB);
	/* A solver of tactics keeps what is asserted as it is; others simplify it at once, which no
	 * limit bounds. */
	tactic = Z3_mk_tactic(q->z, "qfbv");
	if (!tactic) {
		Z3_params_dec_ref(q->z, params);
		return ANSWER_UNKNOWN;
	}
	Z3_tactic_inc_ref(q->z, tactic);
	q->solver = Z3_mk_solver_from_tactic(q->z, tactic);
	Z3_solver_inc_ref(q->z, q->solver);
	Z3_tactic_dec_ref(q->z, tactic);
	Z3_solver_set_params(q->z, q->solver, params);
	for (unsigned i = 0; i < q->fact_count; i++)
		Z3_solver_assert(q->z, q->solver, q->facts[i]);
	answer = Z3_get_error_code(q->z) == Z3_OK ? Z3_solver_check(q->z, q->solver) : Z3_L_UNDEF;
	if (Z3_get_error_code(q->z) != Z3_OK)
		answer = Z3_L_UNDEF;
	if (answer == Z3_L_FALSE && keyed)
		fay_smt_cache_add(q->an->cache, key);
	if (answer == Z3_L_TRUE && model)
		read_model(q, model);
	if (answer == Z3_L_TRUE && q->again)
		keep_model(q);
	Z3_solver_dec_ref(q->z, q->solver);
	Z3_params_dec_ref(q->z, params);
	return answer == Z3_L_FALSE  ? ANSWER_PROVED
	       : answer == Z3_L_TRUE ? ANSWER_REFUTED
				     : ANSWER_UNKNOWN;
}

enum fay_answer fay_smt_facts_contradict(struct query *q)
{
	return ask(q, NULL);
}

bool fay_smt_model_denies(struct query *q, Z3_ast claim)
{
	for (unsigned i = 0; i < q->model_count; i++) {
		Z3_ast value = NULL;

		if (Z3_model_eval(q->z, q->models[i], claim, true, &value) && value &&
		    Z3_get_bool_value(q->z, value) == Z3_L_FALSE)
			return true;
	}
	return false;
}

static void write_out(struct query *q, enum fay_answer answer, struct fay_smt2 *out)
{
	static const char *const expected[] = {
		[ANSWER_PROVED] = "unsat", [ANSWER_REFUTED] = "sat", [ANSWER_UNKNOWN] = "unknown"
	};
	const char *what = "over all paths from the loop's head or the entry";

	if (!q->fact_count)
		return;
	if (q->cut != fay_smt_cut(q->an, q->target))
		what = "over all paths from a block that all of them go through";
	q->fact_count--; /* the last one is the negated goal */
	fay_smt2_put(out, q, fay_rule_id(q->o->rule), q->an->cfg->insns[q->o->insn].address, what,
		     q->facts[q->fact_count], expected[answer]);
}

struct query *fay_smt_query_create(struct fay_analysis *an)
{
	struct query *q = calloc(1, sizeof(*q));
	Z3_config config = Z3_mk_config();

	if (!q || !config) {
		free(q);
		return NULL;
	}
	q->z = Z3_mk_context(config);
	Z3_del_config(config);
	Z3_set_error_handler(q->z, on_error);
	q->an = an;
	q->ms = budget(an);
	q->now.slot = q->now_slots;
	for (unsigned i = 0; i < FAY_SMT_EVENT_WORDS; i++) {
		char name[16];

		snprintf(name, sizeof(name), "event_%u", 8 * i);
		q->event[i] =
			Z3_mk_const(q->z, Z3_mk_string_symbol(q->z, name), Z3_mk_bv_sort(q->z, 64));
	}
	return q;
}

void fay_smt_query_destroy(struct query *q)
{
	if (!q)
		return;
	for (uint32_t i = 0; q->entry && i < q->node_count; i++)
		free(q->entry[i].slot);
	free(q->entry);
	free(q->nodes);
	free(q->position);
	free(q->facts);
	for (unsigned i = 0; i < q->model_count; i++)
		Z3_model_dec_ref(q->z, q->models[i]);
	Z3_del_context(q->z);
	free(q);
}

/* Asks about the ways from `cut` to o, for `ms` milliseconds at most. last: else only a proof is of
 * use, and work is limited more. */
static enum fay_answer ask_from(struct fay_analysis *an, const struct fay_obligation *o,
				uint32_t cut, bool last, unsigned ms, struct fay_model *model,
				struct fay_smt2 *out)
{
	struct query *q = fay_smt_query_create(an);
	enum fay_answer answer = ANSWER_UNKNOWN;
	bool checking = an->checking;

	if (!q)
		return ANSWER_UNKNOWN;
	q->o = o;
	q->target = o->node;
	q->cut = cut;
	q->ms = ms;
	q->work = last ? RLIMIT : NEAR_RLIMIT;
	an->checking = false;
	if (fay_smt_find_region(q) && fay_smt_build(q)) {
		answer = ask(q, model);
		if (out && (last || answer == ANSWER_PROVED))
			write_out(q, answer, out);
	}
	an->checking = checking;
	fay_smt_query_destroy(q);
	return answer;
}

unsigned fay_smt_near_ms(unsigned ms)
{
	return ms / 4;
}

unsigned fay_smt_whole_ms(unsigned ms, uint64_t spent_ns)
{
	uint64_t spent = (spent_ns + 999999) / 1000000;

	unsigned least = ms > 4 ? ms / 4 : 1; /* the clock's time may have been another program's */

	return spent + least < ms ? ms - (unsigned)spent : least;
}

enum fay_answer fay_smt_ask(struct fay_analysis *an, const struct fay_obligation *o,
			    struct fay_model *model, struct fay_smt2 *out)
{
	uint32_t cut = fay_smt_cut(an, o->node), near = fay_smt_near_cut(an, o->node, cut);
	unsigned ms = budget(an);
	uint64_t begin = fay_monotonic_ns();

	if (near != cut && fay_smt_near_ms(ms) &&
	    ask_from(an, o, near, false, fay_smt_near_ms(ms), NULL, out) == ANSWER_PROVED)
		return ANSWER_PROVED;
	return ask_from(an, o, cut, true,
			fay_smt_whole_ms(ms, near != cut ? fay_monotonic_ns() - begin : 0), model,
			out);
}
