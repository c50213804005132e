/* SPDX-License-Identifier: MIT */
/*
 * The small checker's machine against the interpreter: random programs (../sound, and with memory
 * of a size that is passed, sized_programs.c), each followed along the way that a random input
 * takes, with joins here and there (machine_joins.c). At every instruction the state must describe
 * the machine: watch.h. What the checker allows must not fault; what it refuses is left out. One
 * run in four goes either way at branches, as where they are mispredicted: nothing is learned of
 * them, and a division may fault.
 *
 *	test_machine [PROGRAMS [SEED]]
 *
 * Limits: those of the programs: no vectors, helpers or calls.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "verifier/checker/machine/machine.h"
#include "verifier/reader/reader.h"
#include "watch.h"

#define RUNS 24
#define STEPS_MOST 400
#define BYTES_MOST (8u << 20)

static struct machine *const m = &watch.walk.m;

/* ---- one run ---- */

/* A region of a passed size: LOCAL, or less of it. */
static void pass_size(void)
{
	uint64_t size = program_pick(2) ? program_pick(LOCAL_SIZE + 1) : program_pick(10);
	const struct var *v = var_pinned(&m->s, PIN_SIZES + REGION_LOCAL, 0);

	watch.cpu.regions[REGION_LOCAL].size = size;
	watch.cpu.gpr[FAY_RCX] = watch.initial[FAY_RCX] = size;
	watch.variable[v->id].known = true;
	watch.variable[v->id].number = size;
}

static void reset(const struct check_subject *s, uint64_t entry, struct fay_probe_facts *facts,
		  const struct fay_policy *policy, const uint8_t *heads)
{
	static const uint64_t words[] = { 0, 1, ~0ull, 7, 8, 1u << 31, 1ull << 63, 63, 64, 255 };
	uint8_t *all[] = { watch.event, watch.local, watch.global, watch.stack };
	size_t sizes[] = { sizeof(watch.event), LOCAL_SIZE, GLOBAL_SIZE, sizeof(watch.stack) };
	unsigned way = program_pick(3);
	struct walk *w = &watch.walk;

	for (unsigned i = 0; i < 4; i++)
		for (size_t at = 0; at + 8 <= sizes[i]; at += 8) {
			uint64_t word = way == 0   ? program_random()
					: way == 1 ? words[program_pick(10)]
						   : program_random() >> program_pick(64);

			memcpy(all[i] + at, &word, 8);
		}
	watch.cpu = (struct fay_machine){ .region_count = 4,
					  .flags_undefined = FLAG_ALL,
					  .rip = entry };
	for (unsigned i = 0; i < 4; i++)
		watch.cpu.regions[i] =
			(struct fay_exec_region){ WATCH_BASE(i), sizes[i], all[i], i > 0, "" };
	watch.cpu.regions[3].base = WATCH_BASE(REGION_STACK) - sizeof(watch.stack) + 64;
	for (unsigned i = 0; i < 16; i++)
		watch.cpu.gpr[i] = watch.initial[i] = program_random();
	watch.cpu.gpr[FAY_RDI] = WATCH_BASE(REGION_EVENT);
	watch.cpu.gpr[FAY_RSI] = WATCH_BASE(REGION_LOCAL);
	watch.cpu.gpr[FAY_RDX] = WATCH_BASE(REGION_GLOBAL);
	watch.cpu.gpr[FAY_RSP] = WATCH_BASE(REGION_STACK);
	*m = (struct machine){ .subject = s, .policy = policy, .facts = facts };
	m->shared = &w->shared;
	m->refine = program_pick(4) != 0; /* else branches are taken at random, as mispredicted */
	w->t = *m;
	w->subject = s;
	w->policy = policy;
	w->shared.next_id = 0;
	memset(watch.variable, 0, sizeof(watch.variable));
	machine_entry(m);
	if (region_passed(m, REGION_LOCAL))
		pass_size();
	joins_begin(heads, program_pick(2));
}

/* False: it ends here. */
static bool jump(const struct fay_insn *insn)
{
	bool taken =
		insn->op == OP_JMP || (m->refine ? watch_condition(insn->cc) : program_pick(2));

	if (insn->op == OP_JCC && !flags_ready(m, insn->cc))
		return false;
	if (m->refine && insn->op == OP_JCC && !flags_assume(m, insn->cc ^ (unsigned)!taken))
		return watch_bad("a branch goes where it cannot", watch.cpu.rip, insn->cc);
	watch.cpu.rip = taken ? insn->target : watch.cpu.rip + insn->length;
	if (program_pick(2))
		m->defs = 0; /* as where a node ends */
	check_collect(m);
	return true;
}

/* The same; what is refused is left out. */
static bool step(const struct fay_insn *insn, uint64_t at)
{
	static struct machine before;
	enum fay_exec_status status;

	before = *m;
	if (!machine_step(m, insn)) {
		watch.seen.stopped++;
		*m = before;
		watch.cpu.rip += insn->length;
		return true;
	}
	status = fay_exec_step(&watch.cpu, insn);
	if (status == EXEC_NOT_MODELLED || status == EXEC_CALL_HELPER ||
	    (status == EXEC_DIVIDE && !m->refine))
		return false;
	if (status != EXEC_OK)
		return watch_bad("what is allowed faults", (uint64_t)status, at);
	program_executed(insn);
	watch.seen.instructions++;
	watch.seen.sized += region_passed(m, REGION_LOCAL) && insn->src.kind == OPERAND_MEM &&
			    insn->op != OP_LEA && insn->src.base == FAY_RSI;
	return true;
}

/* False: watch.wrong says what. */
static bool follow(const struct check_subject *s)
{
	struct fay_insn insn;

	for (unsigned n = 0; n < STEPS_MOST; n++) {
		uint64_t at = watch.cpu.rip - s->text.start;

		if (fay_decode_bytes(s->text.bytes + at, s->text.size - at, watch.cpu.rip, &insn) !=
		    FAY_RULE_NONE)
			return watch_bad("not decoded", at, 0);
		if (insn.op == OP_RET ||
		    !(insn.op == OP_JMP || insn.op == OP_JCC ? jump(&insn) : step(&insn, at)) ||
		    !watch_state() || !watch_conditions() || !joins_try())
			break;
	}
	return !*watch.wrong;
}

/* ---- programs ---- */

static bool command(const char *format, const char *directory)
{
	char line[512];
	int status;

	snprintf(line, sizeof(line), format, directory, directory);
	status = system(line);
	return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* An image of so many programs; its size, or 0. */
static size_t make_image(const char *directory, unsigned programs, bool sized, uint8_t *bytes)
{
	char path[256];
	size_t size;
	FILE *f;

	snprintf(path, sizeof(path), "%s/p.s", directory);
	f = fopen(path, "w");
	if (!f)
		return 0;
	program_tables(f, programs);
	for (unsigned i = 0; i < programs; i++)
		sized ? sized_program(f, i) : program_write(f, i);
	fclose(f);
	if (!command("as -o %s/p.o %s/p.s", directory) ||
	    !command("ld -shared -nostdlib -z now -z noexecstack --hash-style=gnu --build-id=none "
		     "-o %s/p.img %s/p.o",
		     directory))
		return 0;
	snprintf(path, sizeof(path), "%s/p.img", directory);
	f = fopen(path, "r");
	size = f ? fread(bytes, 1, BYTES_MOST, f) : 0;
	if (f)
		fclose(f);
	return size;
}

/* Where jumps lead back to. */
static void find_heads(const struct check_subject *s, uint8_t *heads)
{
	struct fay_insn insn;

	memset(heads, 0, s->text.size);
	for (uint64_t at = 0; at < s->text.size; at += insn.length) {
		if (fay_decode_bytes(s->text.bytes + at, s->text.size - at, s->text.start + at,
				     &insn) != FAY_RULE_NONE)
			break;
		if (insn.op == OP_JCC && insn.target <= insn.address)
			heads[insn.target - s->text.start] = 1;
	}
}

static unsigned batch(const char *directory, unsigned programs, bool sized)
{
	static uint8_t bytes[BYTES_MOST], heads[BYTES_MOST];
	static struct fay_interface passed;
	uint32_t most = program_pick(2) ? LOCAL_SIZE : FAY_INTERFACE_SIZE;
	struct fay_policy policy;
	struct fay_probe_facts facts = { 0 };
	struct check_subject s;
	unsigned failures = 0;
	size_t size = make_image(directory, programs, sized, bytes);

	fay_policy_default(&policy);
	if (!size || fay_read_image(bytes, size, &s).rule != FAY_RULE_NONE)
		return 1;
	passed = check_probe_interface;
	passed.parameter[passed.parameter_count++] =
		(struct fay_interface_value){ FAY_VALUE_SIZE, REGION_LOCAL, 0, { 0 }, 0, most };
	passed.region[REGION_LOCAL].extent = FAY_EXTENT_PASSED;
	passed.region[REGION_LOCAL].size = most;
	if (sized)
		s.interface = &passed;
	find_heads(&s, heads);
	for (uint32_t i = 0; i < s.probe_count; i++) {
		struct check_probe probe = check_probe(&s, i);

		for (unsigned run = 0; run < RUNS; run++) {
			reset(&s, probe.code, &facts, &policy, heads);
			*watch.wrong = 0;
			if (follow(&s))
				continue;
			fprintf(stderr, "program %u at %#llx: %s\n", i,
				(unsigned long long)watch.cpu.rip, watch.wrong);
			failures++;
			break;
		}
	}
	return failures;
}

int main(int argc, char **argv)
{
	unsigned programs = argc > 1 ? (unsigned)atoi(argv[1]) : 1000, failures = 0, executed,
		 forms;
	unsigned size = programs < 500 ? (programs + 1) / 2 : 250;
	char directory[] = "/tmp/fay-machine-XXXXXX";

	program_seed = argc > 2 ? strtoull(argv[2], NULL, 0) * 2 + 1 : 0x9e3779b97f4a7c15u;
	if (!mkdtemp(directory))
		return 2;
	for (unsigned done = 0; done < programs && !failures; done += size)
		failures += batch(directory, programs - done < size ? programs - done : size,
				  done / size % 2);
	executed = program_forms_executed(&forms);
	printf("%u programs, %lu instructions, %lu that the checker refuses, %lu conditions, %lu "
	       "variables, %lu facts, %lu definitions looked at; %u of %u forms\n",
	       programs, watch.seen.instructions, watch.seen.stopped, watch.seen.conditions,
	       watch.seen.variables, watch.seen.facts, watch.seen.defs, executed, forms);
	printf("%lu accesses by a size; %lu joins made, %lu entered again, %lu rounds; %u "
	       "unsound\n",
	       watch.seen.sized, watch.seen.lists, watch.seen.again, watch.seen.back, failures);
	if (failures)
		fprintf(stderr, "left in %s\n", directory);
	else
		command("rm -rf %s", directory);
	return failures != 0;
}
