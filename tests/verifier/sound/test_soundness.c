/* SPDX-License-Identifier: MIT */
/*
 * Differential test of the analysis: random programs, and for each that the verifier would accept,
 * executions on random inputs by the concrete interpreter. At every instruction the machine must
 * lie within the abstract state: every register and stack slot in its value, every pair with a
 * common name at its distance; no access may fault, no condition read an undefined flag, no path
 * end where the analysis ended it, and the instruction count must not exceed the proved worst case.
 *
 * The solver's encoding is tested the same way: of some values that a register was seen to have at
 * an instruction, the solver is asked to prove that it never has them there. It must not.
 *
 *	test_soundness [PROGRAMS [SEED]]
 *
 * Limits: the interpreter is itself compared with the CPU by test_silicon. Programs use every form
 * of instruction that the decoder admits, but no vectors, helpers or calls.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "soundness_programs.h"
#include "verifier/explain/exec.h"
#include "verifier/explain/explain.h"
#include "verifier/prover/loops/loops.h"
#include "verifier/prover/prove.h"
#include "verifier/prover/smt/smt.h"
#include "verifier/prover/transfer/analysis.h"

#define RUNS 40
#define MAX_STEPS 2000 /* of one execution; a longer one is left there */
#define BASE(region) ((uint64_t)((region) + 1) << 40)

/* ---- checking ---- */

struct machine_memory {
	uint8_t event[sizeof(struct fay_event)], local[LOCAL_SIZE], global[GLOBAL_SIZE],
		stack[4096];
};

static struct fay_machine m;
static struct machine_memory memory;
static uint64_t initial[16];
static char failure[512];
static struct fay_obligation seen; /* one register's value somewhere in the last execution */
static unsigned seen_of;

static bool number_of(const struct fay_value *v, uint64_t concrete, uint64_t *number)
{
	if (v->kind == KIND_SCALAR)
		*number = concrete;
	else if (v->kind == KIND_POINTER)
		*number = concrete - BASE(v->tag);
	else
		return false;
	return v->init == 0xff;
}

/* The concrete content of a location; false for those that are not compared. */
static bool concrete_at(const struct fay_state *s, uint32_t i, uint64_t *number)
{
	uint64_t raw = 0;
	int64_t offset;

	if (i < 16)
		return number_of(&s->loc[i], m.gpr[i], number);
	if (i < LOC_SLOTS || s->loc[i].kind == KIND_UPPER)
		return false;
	offset = -4 * (int64_t)(i - LOC_SLOTS + 1);
	if (s->loc[i].size == 8 && i == LOC_SLOTS)
		return false;
	memcpy(&raw, memory.stack + sizeof(memory.stack) - 64 + offset, s->loc[i].size);
	return number_of(&s->loc[i], raw, number);
}

/* The signed number that a name and a distance stand for; false: nobody whose content is known
 * bears the name. */
static bool named(const struct fay_state *s, const bool *known, const uint64_t *numbers,
		  uint32_t id, uint64_t delta, __int128 *number)
{
	for (uint32_t i = 0; i < s->count; i++)
		if (known[i] && s->loc[i].id == id) {
			*number = (int64_t)(numbers[i] - s->loc[i].delta + delta);
			return true;
		}
	return false;
}

static uint64_t relations_seen;

static bool related(const struct fay_state *s, const bool *known, const uint64_t *numbers,
		    const char *where)
{
	for (uint32_t i = 0; i < s->relation_count; i++) {
		const struct fay_relation *r = &s->relations[i];
		__int128 x, y, sum;

		if (!named(s, known, numbers, r->x, r->dx, &x) ||
		    !named(s, known, numbers, r->y, r->dy, &y))
			continue;
		relations_seen++;
		sum = r->a * x + r->b * y;
		if ((r->lo != INT64_MIN && sum < r->lo) || (r->hi != INT64_MAX && sum > r->hi)) {
			snprintf(failure, sizeof(failure),
				 "%s: %lld * %lld + %lld * %lld is not within [%lld, %lld]", where,
				 (long long)r->a, (long long)x, (long long)r->b, (long long)y,
				 (long long)r->lo, (long long)r->hi);
			return false;
		}
	}
	return true;
}

static bool described(const struct fay_state *s, const char *where)
{
	static uint64_t numbers[FAY_MAX_LOCATIONS];
	static bool known[FAY_MAX_LOCATIONS];

	for (uint32_t i = 0; i < s->count; i++) {
		char text[128];

		known[i] = concrete_at(s, i, &numbers[i]);
		if (known[i] && !fay_scalar_contains(&s->loc[i].s, numbers[i])) {
			snprintf(failure, sizeof(failure),
				 "%s: location %u is 0x%llx, not within %s (bits 0x%llx/0x%llx)",
				 where, i, (unsigned long long)numbers[i],
				 fay_scalar_print(&s->loc[i].s, text, sizeof(text)),
				 (unsigned long long)s->loc[i].s.value,
				 (unsigned long long)s->loc[i].s.unknown);
			return false;
		}
		if (i < 16 && s->loc[i].kind == KIND_SAVED && m.gpr[i] != initial[s->loc[i].tag]) {
			snprintf(failure, sizeof(failure), "%s: register %u is not the saved one",
				 where, i);
			return false;
		}
		for (uint32_t k = 0; known[i] && s->loc[i].id && k < i; k++)
			if (known[k] && s->loc[k].id == s->loc[i].id &&
			    numbers[i] - s->loc[i].delta != numbers[k] - s->loc[k].delta) {
				snprintf(failure, sizeof(failure),
					 "%s: locations %u and %u are not at the distance that is "
					 "claimed",
					 where, k, i);
				return false;
			}
	}
	return related(s, known, numbers, where);
}

static void reset(unsigned run)
{
	static const uint64_t words[] = { 0,          1,          UINT64_MAX,
					  7,          8,          0x7fffffff,
					  0x80000000, 0xffffffff, (uint64_t)1 << 63,
					  100,        63,         64 };
	uint8_t *bytes = (uint8_t *)&memory;

	for (size_t i = 0; i + 8 <= sizeof(memory); i += 8) {
		uint64_t word = run % 3 == 0      ? program_random()
				: run % 3 == 1    ? words[program_pick(12)]
				: program_pick(2) ? program_random() >> program_pick(64)
						  : -(program_random() >> program_pick(64));

		memcpy(bytes + i, &word, 8);
	}
	m = (struct fay_machine){ .region_count = 4,
				  .flags_undefined = FLAG_ALL,
				  .regions = {
					  { BASE(REGION_EVENT), sizeof(struct fay_event),
					    memory.event, false, "event" },
					  { BASE(REGION_LOCAL), LOCAL_SIZE, memory.local, true,
					    "local" },
					  { BASE(REGION_GLOBAL), GLOBAL_SIZE, memory.global, true,
					    "global" },
					  { BASE(REGION_STACK) - sizeof(memory.stack) + 64,
					    sizeof(memory.stack), memory.stack, true, "stack" },
				  } };
	for (unsigned i = 0; i < 16; i++)
		m.gpr[i] = initial[i] = program_random();
	m.gpr[FAY_RDI] = BASE(REGION_EVENT);
	m.gpr[FAY_RSI] = BASE(REGION_LOCAL);
	m.gpr[FAY_RDX] = BASE(REGION_GLOBAL);
	m.gpr[FAY_RSP] = BASE(REGION_STACK);
}

/* One execution; false with `failure` set. */
static bool execute(struct fay_analysis *an)
{
	uint32_t node = 0;
	uint64_t steps = 0;
	char where[128];

	m.rip = an->cfg->insns[an->cfg->blocks[an->graph->nodes[0].block].first].address;
	while (node != FAY_NONE && steps < MAX_STEPS) {
		const struct fay_node *n = &an->graph->nodes[node];
		const struct fay_block *block = &an->cfg->blocks[n->block];
		const struct fay_insn *insn = NULL;
		uint32_t to = FAY_NONE;

		if (!an->in[node]) {
			snprintf(failure, sizeof(failure),
				 "a block is reached that the analysis did not reach");
			return false;
		}
		fay_state_copy(an->current, an->in[node]);
		for (uint32_t i = 0; i < block->count; i++) {
			char text[96] = "";
			enum fay_exec_status status;

			insn = &an->cfg->insns[block->first + i];
			fay_disassemble(an->image->layout.bytes +
						(insn->address - an->image->layout_base),
					15, insn->address, false, text, sizeof(text));
			snprintf(where, sizeof(where), "%s%s",
				 i ? "before " : "at block start, before ", text);
			if (!described(an->current, where))
				return false;
			if (program_pick(++seen_of) == 0) {
				unsigned r = program_pick(16);

				if (an->current->loc[r].kind == KIND_SCALAR &&
				    an->current->loc[r].init == 0xff)
					seen = (struct fay_obligation){ .node = node,
									.insn = block->first + i,
									.goal = GOAL_DIFFERS,
									.rule = FAY_RULE_MEM_BOUNDS,
									.reg = (uint8_t)r,
									.low = (int64_t)m.gpr[r] };
			}
			status = fay_exec_step(&m, insn);
			if (status != EXEC_OK) {
				snprintf(failure, sizeof(failure), "%s faults with %d", text,
					 (int)status);
				return false;
			}
			program_executed(insn);
			if (++steps > an->worst_instructions) {
				snprintf(failure, sizeof(failure),
					 "more than the worst case of %llu instructions",
					 (unsigned long long)an->worst_instructions);
				return false;
			}
			if (!fay_transfer_step(an, node, block->first + i)) {
				snprintf(failure, sizeof(failure),
					 "the analysis ends at %s, the machine goes on", text);
				return false;
			}
			snprintf(where, sizeof(where), "after %s", text);
			if (insn->op != OP_RET && !described(an->current, where))
				return false;
		}
		if (insn->op != OP_RET)
			to = fay_exec_successor(an->graph, an->cfg, node, &m);
		if (n->branch &&
		    (!fay_transfer_assume(an, an->current, (enum fay_cc)(n->branch - 1),
					  to == n->succ[0]) ||
		     !described(an->current, "at a setcc"))) {
			if (!*failure)
				snprintf(failure, sizeof(failure),
					 "a condition is what the analysis says it cannot be");
			return false;
		}
		if (insn->op == OP_JCC && insn->target != insn->address + insn->length &&
		    (!fay_transfer_assume(an, an->current, (enum fay_cc)insn->cc,
					  m.rip == insn->target) ||
		     !described(an->current, "after the branch"))) {
			if (!*failure)
				snprintf(failure, sizeof(failure),
					 "a branch goes where the analysis says it cannot");
			return false;
		}
		node = to;
	}
	return true;
}

struct totals {
	/* related: swept with relations between values */
	unsigned accepted, refused, failed, loops, asked, swept, related;
	uint64_t rules[FAY_RULE_COUNT];
};

static bool relates(const struct fay_analysis *an)
{
	for (uint32_t node = 0; node < an->graph->node_count; node++)
		if (an->in[node] && an->in[node]->relation_count)
			return true;
	return false;
}

static void check_program(struct fay_arena *arena, const struct fay_image *whole, uint32_t number,
			  struct totals *totals)
{
	struct fay_image image = *whole;
	struct fay_policy policy;
	struct fay_cfg cfg;
	struct fay_graph graph = { 0 };
	struct fay_probe_facts facts = whole->probes[number];
	struct fay_refusal r;
	struct fay_analysis an = { .arena = arena,
				   .image = &image,
				   .policy = &policy,
				   .cfg = &cfg,
				   .graph = &graph,
				   .refine = true,
				   .facts = &facts,
				   .keep = true,
				   .thorough = number % 3 == 1,
				   .related = number % 3 == 2 };
	static const int64_t thresholds[] = { -1000, -128, -64, -16, -8,   -1,        0,
					      1,     2,    7,   8,   15,   16,        63,
					      64,    100,  127, 255, 1000, INT32_MAX, UINT32_MAX };

	fay_policy_default(&policy);
	image.probes = &facts;
	image.probe_count = 1;
	memcpy(an.thresholds.values, thresholds, sizeof(thresholds));
	an.thresholds.count = sizeof(thresholds) / sizeof(thresholds[0]);
	r = fay_cfg_build(&cfg, arena, &image, 0);
	if (r.rule == FAY_RULE_NONE)
		r = fay_graph_build(&graph, &cfg, image.layout_base + facts.code_offset);
	if (r.rule == FAY_RULE_NONE) {
		an.in = calloc(graph.node_count, sizeof(struct fay_state *));
		an.visits = calloc(graph.node_count, sizeof(uint16_t));
		an.bounds = calloc(graph.node_count, sizeof(uint64_t));
		an.current = fay_state_create(FAY_MAX_LOCATIONS);
		an.branch = fay_state_create(FAY_MAX_LOCATIONS);
		r = fay_prove_invariant(&an);
		if (r.rule == FAY_RULE_NONE && an.pending_count)
			r.rule = an.pending[0].rule;
		if (r.rule == FAY_RULE_NONE)
			r = fay_loops_bound(&an);
	}
	if (r.rule != FAY_RULE_NONE) {
		totals->refused++;
		totals->rules[r.rule]++;
	} else {
		totals->accepted++;
		totals->loops += graph.loop_count;
		totals->swept += an.swept;
		totals->related += an.swept && relates(&an);
		for (unsigned run = 0; run < RUNS; run++) {
			reset(run);
			*failure = 0;
			seen_of = 0;
			seen.goal = GOAL_UNREACHABLE;
			if (execute(&an) && number % 24 == 0 && run % 8 == 0 &&
			    seen.goal == GOAL_DIFFERS) {
				totals->asked++;
				if (fay_smt_ask(&an, &seen, NULL, NULL) == ANSWER_PROVED)
					snprintf(failure, sizeof(failure),
						 "the solver proves that register %u is never "
						 "0x%llx at text offset 0x%llx",
						 seen.reg, (unsigned long long)seen.low,
						 (unsigned long long)(cfg.insns[seen.insn].address -
								      image.text.start));
			}
			if (*failure) {
				fprintf(stderr, "program %u: %s\n", number, failure);
				totals->failed++;
				break;
			}
		}
	}
	if (an.in)
		fay_analysis_release(&an);
	free(an.in);
	free(an.visits);
	free(an.bounds);
	free(an.current);
	free(an.branch);
	free(an.pending);
	free(an.templates);
	fay_graph_deinit(&graph);
	fay_cfg_deinit(&cfg);
}

static bool command(const char *format, const char *directory)
{
	char line[512];
	int status;

	snprintf(line, sizeof(line), format, directory, directory);
	status = system(line);
	return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* One image of up to 512 programs. */
static bool batch(const char *directory, unsigned programs, struct totals *totals)
{
	char path[256];
	FILE *f;
	static uint8_t bytes[8 << 20];
	size_t size;
	struct fay_arena *arena = fay_arena_create((size_t)256 << 20);
	struct fay_image image;
	struct fay_refusal r;

	snprintf(path, sizeof(path), "%s/p.s", directory);
	f = fopen(path, "w");
	if (!f || !arena)
		return false;
	program_tables(f, programs);
	for (unsigned i = 0; i < programs; i++)
		program_write(f, i);
	fclose(f);
	if (!command("as -o %s/p.o %s/p.s", directory) ||
	    !command("ld -shared -nostdlib -z now -z noexecstack --hash-style=gnu --build-id=none "
		     "-o %s/p.img %s/p.o",
		     directory))
		return false;
	snprintf(path, sizeof(path), "%s/p.img", directory);
	f = fopen(path, "r");
	size = f ? fread(bytes, 1, sizeof(bytes), f) : 0;
	if (f)
		fclose(f);
	r = fay_image_parse(arena, bytes, size, &image);
	if (r.rule != FAY_RULE_NONE) {
		fprintf(stderr, "image: %s: %s\n", fay_rule_id(r.rule), r.what);
		return false;
	}
	for (uint32_t i = 0; i < image.probe_count; i++)
		check_program(arena, &image, i, totals);
	fay_arena_destroy(arena);
	return true;
}

int main(int argc, char **argv)
{
	unsigned programs = argc > 1 ? (unsigned)atoi(argv[1]) : 2000, batches = 0;
	struct totals totals = { 0 };
	char directory[] = "/tmp/fay-soundness-XXXXXX";
	bool ok = mkdtemp(directory) != NULL;
	unsigned executed, forms;

	program_seed = argc > 2 ? strtoull(argv[2], NULL, 0) * 2 + 1 : 0x9e3779b97f4a7c15u;
	while (ok && totals.accepted + totals.refused < programs) {
		unsigned before = totals.failed;

		fprintf(stderr, "%s", "");
		ok = batch(directory, programs < 500 ? programs : 500, &totals);
		batches++;
		if (totals.failed > before)
			break; /* the programs are kept for a look */
	}
	printf("%u programs accepted (%u loops; %u at the first attempt, %u of them with "
	       "relations), %u refused, %u executions each, %u questions to the solver, %llu "
	       "relations looked at; %u unsound\n",
	       totals.accepted, totals.loops, totals.swept, totals.related, totals.refused, RUNS,
	       totals.asked, (unsigned long long)relations_seen, totals.failed);
	executed = program_forms_executed(&forms);
	printf("%u of %u forms of instructions executed\n", executed, forms);
	for (unsigned i = 1; i < FAY_RULE_COUNT; i++)
		if (totals.rules[i])
			printf("  refused by %s: %llu\n", fay_rule_id((enum fay_rule)i),
			       (unsigned long long)totals.rules[i]);
	if (ok && !totals.failed)
		command("rm -rf %s", directory);
	else
		fprintf(stderr, "left in %s\n", directory);
	/* Too few accepted programs, too few in one of the two ways, or too few of the forms would
	 * test nothing. */
	return ok && !totals.failed && relations_seen &&
			       (programs < 2000 || executed * 20 >= forms * 19) &&
			       totals.related * 20 >= totals.accepted &&
			       totals.swept * 5 >= totals.accepted &&
			       totals.swept < totals.accepted &&
			       totals.accepted * 4 >= totals.accepted + totals.refused
		       ? 0
		       : 1;
}
