/* SPDX-License-Identifier: MIT */
/*
 * The small checker's machine against the interpreter: random programs (../sound), each followed
 * along the way that a random input takes. At every instruction the machine must lie within the
 * checker's state: each register and place of the stack in its range; every variable one number
 * from where it is made to the end, in its range; facts and definitions as they say; no flag
 * undefined that counts as defined; no condition that holds said to be impossible, and what is
 * learned of it so. What the checker allows must not fault. One run in four goes either way at
 * branches, as where they are mispredicted: nothing is learned of them, and a division may fault.
 *
 *	test_machine [PROGRAMS [SEED]]
 *
 * Limits: those of the programs: no vectors, helpers or calls; joins are test_certificates' matter.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../sound/soundness_programs.h"
#include "verifier/checker/machine/form.h"
#include "verifier/checker/machine/machine.h"
#include "verifier/explain/exec.h"
#include "verifier/reader/reader.h"

#define RUNS 24
#define STEPS_MOST 400
#define IDS 65536u
#define BASE(region) ((uint64_t)((region) + 1) << 40)

static struct machine m;
static struct fay_machine cpu;
static uint8_t event[sizeof(struct fay_event)], local[LOCAL_SIZE], global[GLOBAL_SIZE], stack[4096];
static uint64_t initial[16];
static struct shared shared;
static struct {
	bool known;
	uint64_t number; /* modulo 2^64 */
} variables[IDS];
static char wrong[256];
static unsigned long instructions, conditions, variables_seen, facts_seen, defs_seen, stopped;

static bool bad(const char *what, uint64_t a, uint64_t b)
{
	if (!*wrong)
		snprintf(wrong, sizeof(wrong), "%s (%#llx, %#llx)", what, (unsigned long long)a,
			 (unsigned long long)b);
	return false;
}

static bool within(struct range r, wide n)
{
	return r.lo <= n && n <= r.hi;
}

/* The variable's integer, as it is read now. */
static wide integer(const struct var *v)
{
	uint64_t n = variables[v->id].number;

	return v->negative ? (wide)(int64_t)n : (wide)n;
}

static bool settle(struct var *v, uint64_t n)
{
	if (variables[v->id].known && variables[v->id].number != n)
		return bad("a variable is two numbers", n, variables[v->id].number);
	if (!variables[v->id].known)
		variables_seen++;
	variables[v->id].known = true;
	variables[v->id].number = n;
	if (!within(var_range(v), integer(v)))
		return bad("a variable is out of its range", n, v->lo);
	return true;
}

/* form = number modulo 2^bits: what that tells of a variable that is not known. */
static bool equation(const struct form *f, unsigned bits, uint64_t number)
{
	uint64_t mask = bits == 64 ? UINT64_MAX : ((uint64_t)1 << bits) - 1, k = 0, inverse;
	struct var *open = NULL;
	struct range r;
	wide n;

	number -= (uint64_t)f->c;
	for (unsigned i = 0; i < 2 && f->v[i]; i++) {
		struct var *v = var_find(&m.s, f->v[i]);

		if (!v || f->v[i] >= IDS)
			return true;
		if (variables[f->v[i]].known) {
			number -= (uint64_t)f->k[i] * variables[f->v[i]].number;
		} else if (open) {
			return true;
		} else {
			open = v;
			k = (uint64_t)f->k[i];
		}
	}
	number &= mask;
	if (!open)
		return !number || bad("a form is another number", number, bits);
	if (!(k & 1))
		return number & ((k & -k) - 1) ? bad("a form is no such multiple", number, k)
					       : true;
	inverse = k;
	for (unsigned i = 0; i < 6; i++)
		inverse *= 2 - k * inverse;
	number = number * inverse & mask;
	r = var_range(open);
	n = (wide)number + ((r.lo - (wide)number + mask) >> bits) * POWER(bits);
	if (n > r.hi || n < r.lo)
		return bad("no number of a variable's range fits", number, (uint64_t)r.lo);
	if (n + POWER(bits) <= r.hi)
		return true; /* or another */
	return settle(open, (uint64_t)n);
}

static bool value_holds(const struct value *v, uint64_t number, unsigned bits)
{
	int64_t as_signed = (int64_t)(number << (64 - bits)) >> (64 - bits);

	if (v->kind == KIND_POINTER)
		number -= BASE(v->tag);
	else if (v->kind != KIND_NUMBER)
		return true;
	if (v->kind == KIND_NUMBER && (!within(value_range(&m, v, bits, false), number) ||
				       !within(value_range(&m, v, bits, true), as_signed)))
		return bad("a number is out of its range", number, bits);
	if (v->bits < bits && number >> v->bits)
		return bad("a number has more bits than its value", number, v->bits);
	return equation(&v->f, v->bits < bits ? v->bits : bits, number);
}

static bool evaluate(const struct form *f, wide *n)
{
	*n = f->c;
	for (unsigned i = 0; i < 2 && f->v[i]; i++) {
		struct var *v = var_find(&m.s, f->v[i]);

		if (!v || f->v[i] >= IDS || !variables[f->v[i]].known)
			return false;
		*n += (wide)f->k[i] * integer(v);
	}
	return true;
}

static bool facts_hold(void)
{
	for (unsigned i = 0; i < m.s.facts; i++) {
		const struct fact *fact = &m.s.fact[i];
		wide n;

		if (!evaluate(&fact->f, &n))
			continue;
		facts_seen++;
		if ((fact->lo != INT64_MIN && n < fact->lo) ||
		    (fact->hi != INT64_MAX && n > fact->hi))
			return bad("a fact is none", (uint64_t)n, (uint64_t)fact->lo);
	}
	return true;
}

static bool defs_hold(void)
{
	for (unsigned i = 0; i < m.defs; i++) {
		const struct def *d = &m.def[i];
		struct form is = { .k[0] = 1, .v[0] = d->id };
		wide n, q, rest = POWER(d->shift) - 1;

		if (!evaluate(&is, &q))
			continue;
		if (d->kind == DEF_ONES && (d->factor & ~(uint64_t)q))
			return bad("bits are not set", d->factor, (uint64_t)q);
		if (d->kind == DEF_ONES || d->kind == DEF_TABLE || !evaluate(&d->f, &n))
			continue;
		defs_seen++;
		if (d->kind == DEF_PART && ((uint64_t)q & ~(uint64_t)n))
			return bad("a part is none", (uint64_t)q, (uint64_t)n);
		if (d->kind == DEF_SIGN && q != -(wide)((uint64_t)n >> (d->shift - 1) & 1))
			return bad("a sign is none", (uint64_t)q, (uint64_t)n);
		if (d->kind == DEF_FLOOR && n < POWER(63) && n > -POWER(63)) {
			n = (wide)d->factor * n - q * POWER(d->shift);
			if (n < 0 || n > rest)
				return bad("a quotient is none", (uint64_t)q, (uint64_t)n);
		}
	}
	return true;
}

static bool state_holds(void)
{
	for (unsigned round = 0; round < 2; round++) {
		for (unsigned r = 0; r < 16; r++) {
			const struct value *v = &m.s.reg[r];

			if (v->kind == KIND_SAVED && cpu.gpr[r] != initial[v->tag])
				return bad("a register is not the saved one", r, v->tag);
			if (!value_holds(v, cpu.gpr[r], 64))
				return false;
		}
		for (unsigned i = 0; i < m.s.slots; i++) {
			const struct slot *slot = &m.s.slot[i];
			uint64_t n = 0;

			memcpy(&n,
			       slot->at < 0 ? stack + sizeof(stack) - 64 + slot->at
					    : event + slot->at,
			       slot->size);
			if (!value_holds(&slot->v, n, 8u * slot->size))
				return false;
		}
	}
	return facts_hold() && defs_hold();
}

static bool cc_holds(unsigned cc)
{
	bool c = cpu.flags & FLAG_CF, z = cpu.flags & FLAG_ZF, s = cpu.flags & FLAG_SF,
	     o = cpu.flags & FLAG_OF, p = cpu.flags & FLAG_PF;
	bool holds[] = { o, c, z, c || z, s, p, s != o, z || s != o };

	return holds[cc / 2] != (cc & 1);
}

/* Each condition that holds may hold, and what is learned of it is so. */
static bool conditions_hold(void)
{
	bool ok = true;

	if (cpu.flags_undefined & ~m.s.flags.undefined)
		return bad("a flag is not defined", cpu.flags_undefined, m.s.flags.undefined);
	for (unsigned cc = 0; ok && cc < 16; cc++) {
		if (fay_cc_flags((enum fay_cc)cc) & m.s.flags.undefined || !cc_holds(cc))
			continue;
		conditions++;
		assume_begin(&m);
		ok = flags_assume(&m, cc) ? state_holds() : bad("a condition may not hold", cc, 0);
		assume_undo(&m);
	}
	return ok;
}

static void reset(const struct check_subject *s, uint64_t entry, struct fay_probe_facts *facts,
		  const struct fay_policy *policy)
{
	static const uint64_t words[] = { 0, 1, ~0ull, 7, 8, 1u << 31, 1ull << 63, 63, 64, 255 };
	uint8_t *all[] = { event, local, global, stack };
	size_t sizes[] = { sizeof(event), sizeof(local), sizeof(global), sizeof(stack) };
	unsigned way = program_pick(3);

	for (unsigned i = 0; i < 4; i++)
		for (size_t at = 0; at + 8 <= sizes[i]; at += 8) {
			uint64_t word = way == 0   ? program_random()
					: way == 1 ? words[program_pick(10)]
						   : program_random() >> program_pick(64);

			memcpy(all[i] + at, &word, 8);
		}
	cpu = (struct fay_machine){ .region_count = 4, .flags_undefined = FLAG_ALL, .rip = entry };
	for (unsigned i = 0; i < 4; i++)
		cpu.regions[i] = (struct fay_exec_region){ BASE(i), sizes[i], all[i], i > 0, "" };
	cpu.regions[3].base = BASE(REGION_STACK) - sizeof(stack) + 64;
	for (unsigned i = 0; i < 16; i++)
		cpu.gpr[i] = initial[i] = program_random();
	cpu.gpr[FAY_RDI] = BASE(REGION_EVENT);
	cpu.gpr[FAY_RSI] = BASE(REGION_LOCAL);
	cpu.gpr[FAY_RDX] = BASE(REGION_GLOBAL);
	cpu.gpr[FAY_RSP] = BASE(REGION_STACK);
	m = (struct machine){ .subject = s, .policy = policy, .facts = facts, .shared = &shared };
	m.refine = program_pick(4) != 0; /* else branches are taken at random, as mispredicted */
	shared.next_id = 0;
	memset(variables, 0, sizeof(variables));
	machine_entry(&m);
}

/* False: `wrong` says what. */
static bool follow(const struct check_subject *s)
{
	struct fay_insn insn;
	enum fay_exec_status status;

	for (unsigned step = 0; step < STEPS_MOST; step++) {
		uint64_t at = cpu.rip - s->text.start;

		if (fay_decode_bytes(s->text.bytes + at, s->text.size - at, cpu.rip, &insn) !=
		    FAY_RULE_NONE)
			return bad("not decoded", at, 0);
		if (insn.op == OP_RET)
			return true;
		if (insn.op == OP_JMP || insn.op == OP_JCC) {
			bool taken = insn.op == OP_JMP ||
				     (m.refine ? cc_holds(insn.cc) : program_pick(2));

			if (insn.op == OP_JCC && !flags_ready(&m, insn.cc))
				return true;
			if (m.refine && insn.op == OP_JCC &&
			    !flags_assume(&m, insn.cc ^ (unsigned)!taken))
				return bad("a branch goes where it cannot", cpu.rip, insn.cc);
			cpu.rip = taken ? insn.target : cpu.rip + insn.length;
			if (program_pick(2))
				m.defs = 0; /* as where a node ends */
			check_collect(&m);
		} else {
			if (!machine_step(&m, &insn)) {
				stopped++;
				return true;
			}
			status = fay_exec_step(&cpu, &insn);
			if (status == EXEC_NOT_MODELLED || status == EXEC_CALL_HELPER)
				return true;
			if (status == EXEC_DIVIDE && !m.refine)
				return true;
			if (status != EXEC_OK)
				return bad("what is allowed faults", (uint64_t)status, at);
			program_executed(&insn);
			instructions++;
		}
		if (!state_holds() || !conditions_hold())
			return false;
	}
	return true;
}

static bool command(const char *format, const char *directory)
{
	char line[512];
	int status;

	snprintf(line, sizeof(line), format, directory, directory);
	status = system(line);
	return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static unsigned batch(const char *directory, unsigned programs)
{
	static uint8_t bytes[8 << 20];
	struct fay_policy policy;
	struct fay_probe_facts facts = { 0 };
	struct check_subject s;
	unsigned failures = 0;
	char path[256];
	size_t size;
	FILE *f;

	snprintf(path, sizeof(path), "%s/p.s", directory);
	f = fopen(path, "w");
	if (!f)
		return 1;
	program_tables(f, programs);
	for (unsigned i = 0; i < programs; i++)
		program_write(f, i);
	fclose(f);
	if (!command("as -o %s/p.o %s/p.s", directory) ||
	    !command("ld -shared -nostdlib -z now -z noexecstack --hash-style=gnu --build-id=none "
		     "-o %s/p.img %s/p.o",
		     directory))
		return 1;
	snprintf(path, sizeof(path), "%s/p.img", directory);
	f = fopen(path, "r");
	size = f ? fread(bytes, 1, sizeof(bytes), f) : 0;
	if (f)
		fclose(f);
	fay_policy_default(&policy);
	if (fay_read_image(bytes, size, &s).rule != FAY_RULE_NONE)
		return 1;
	for (uint32_t i = 0; i < s.probe_count; i++) {
		struct check_probe probe = check_probe(&s, i);

		for (unsigned run = 0; run < RUNS; run++) {
			reset(&s, probe.code, &facts, &policy);
			*wrong = 0;
			if (follow(&s))
				continue;
			fprintf(stderr, "program %u at %#llx: %s\n", i, (unsigned long long)cpu.rip,
				wrong);
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
	char directory[] = "/tmp/fay-machine-XXXXXX";

	program_seed = argc > 2 ? strtoull(argv[2], NULL, 0) * 2 + 1 : 0x9e3779b97f4a7c15u;
	if (!mkdtemp(directory))
		return 2;
	for (unsigned done = 0; done < programs && !failures; done += 500)
		failures += batch(directory, programs - done < 500 ? programs - done : 500);
	executed = program_forms_executed(&forms);
	printf("%u programs, %lu instructions, %lu ways that the checker refuses, %lu conditions, "
	       "%lu variables, %lu facts, %lu definitions looked at; %u of %u forms; %u unsound\n",
	       programs, instructions, stopped, conditions, variables_seen, facts_seen, defs_seen,
	       executed, forms, failures);
	if (failures)
		fprintf(stderr, "left in %s\n", directory);
	else
		command("rm -rf %s", directory);
	return failures != 0;
}
