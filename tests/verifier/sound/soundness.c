/* SPDX-License-Identifier: MIT */
/*
 * Executes accepted images with the concrete interpreter and checks what the verdict promised:
 *
 *   - each access lies in event, LOCAL, GLOBAL, own .rodata or own stack frame, with permission,
 *     not below rsp, not on the return address
 *   - only decoded instructions run, the return goes to the caller, rsp and the callee-saved
 *     registers are as at entry
 *   - no fault of division, no undefined flag is read
 *   - at most worst_instructions run and worst_stack bytes of stack are used
 *   - only event_fields are read, only clobbered_gprs differ at return, only allowed helpers are
 *     called, within their contracts
 *   - vector instructions (run on the CPU): only clobbered_vectors change, the upper halves and
 *     MXCSR only if the facts say so, aligned forms do not fault
 *   - non-interference: each run is made twice, with other register contents, other stack garbage,
 *     other places of all regions, other values of event fields and
 *     arguments that are said not to be read. LOCAL, GLOBAL and what the helpers were given must
 *       come out the same.
 *
 * GLOBAL changes under the probe's feet at random, the same way in both runs. Limits: one probe,
 * the interpreter's correctness (test_silicon.c compares that with the CPU), and what random inputs
 * find.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "soundness.h"
#include "soundness_vector.h"
#include "verifier/explain/exec.h"
#include "verifier/isa/isa.h"

#define STACK_BYTES 16384u
#define STEPS_MAX 60000u
#define RETURN_ADDRESS 0x00005a5a00001000u

enum { AT_EVENT, AT_LOCAL, AT_GLOBAL, AT_RODATA, AT_STACK, AT_COUNT };

struct run {
	struct fay_machine machine;
	struct frame vectors; /* vector registers alone */
	bool gave_up;         /* this CPU does not have the instruction */
	uint8_t event[sizeof(struct fay_event)], local[SOUNDNESS_LOCAL], global[SOUNDNESS_GLOBAL],
		rodata[4096], stack[STACK_BYTES];
	uint64_t entry[16];
	uint64_t entry_rsp;
	uint64_t steps;
	uint64_t transcript; /* hash of what helpers were given */
	struct soundness_random shared, secret;
};

static char complaint[512];

uint64_t soundness_next(struct soundness_random *random)
{
	uint64_t z = random->state += 0x9e3779b97f4a7c15u; /* splitmix64 */

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return z ^ z >> 31;
}

/* Numbers at which comparisons and extensions change their mind, and those that the code mentions.
 * */
uint64_t soundness_number(struct soundness_random *r, const struct fay_image *image)
{
	static const uint64_t edges[] = { 0,
					  1,
					  7,
					  8,
					  9,
					  15,
					  16,
					  31,
					  32,
					  63,
					  64,
					  127,
					  128,
					  255,
					  256,
					  0x7fff,
					  0x8000,
					  0xffff,
					  0x10000,
					  0x7fffffff,
					  0x80000000,
					  0xffffffff,
					  0x100000000,
					  0x7fffffffffffffff,
					  0x8000000000000000,
					  UINT64_MAX,
					  UINT64_MAX - 7 };
	const uint8_t *text = image->layout.bytes + image->layout.code_offset;
	uint32_t size = image->layout.code_size < 400 ? image->layout.code_size : 400;
	int32_t wide;
	uint64_t value;

	switch (soundness_below(r, 6)) {
	case 0: return soundness_next(r);
	case 1: return soundness_below(r, 80);
	case 2:
		return edges[soundness_below(r, sizeof(edges) / sizeof(*edges))] +
		       soundness_below(r, 3) - 1;
	case 3: return (uint64_t)(int8_t)text[soundness_below(r, size)] + soundness_below(r, 3) - 1;
	case 4:
		if (size < 4)
			return 0;
		memcpy(&wide, text + soundness_below(r, size - 3), 4);
		return (uint64_t)(int64_t)wide + soundness_below(r, 3) - 1;
	default:
		value = soundness_below(r, 256);
		return value << soundness_below(r, 57) |
		       (soundness_below(r, 2) ? soundness_below(r, 64) : 0);
	}
}

static void fill(struct soundness_random *r, void *bytes, size_t size)
{
	uint8_t *b = bytes;

	for (size_t i = 0; i < size; i++)
		b[i] = (uint8_t)soundness_next(r);
}

uint32_t soundness_field_of(unsigned byte)
{
	if (byte < 88)
		return 1u << byte / 8;
	if (byte < 104)
		return FAY_FIELD_PID << (byte - 88) / 4;
	if (byte < 120)
		return FAY_FIELD_COMM;
	if (byte < 160)
		return FAY_FIELD_STACK_POINTER << (byte - 120) / 8;
	return byte < 288 ? FAY_FIELD_REGISTERS : FAY_FIELD_FLAGS;
}

static void begin(struct run *run, const struct fay_image *image,
		  const struct fay_probe_facts *facts, uint64_t seed, unsigned which)
{
	struct fay_machine *m = &run->machine;
	uint64_t shift = which * 0x112233440000u;

	memset(run, 0, sizeof(*run));
	run->shared.state = seed;
	run->secret.state = seed ^ (which ? 0xa5a5a5a5deadbeefu : 0x1111);
	for (unsigned i = 0; i < sizeof(run->event); i += 8) {
		uint64_t value = soundness_number(&run->shared, image);
		memcpy(run->event + i, &value, 8);
	}
	for (unsigned i = 0; i < sizeof(run->local); i += 8) {
		uint64_t value = soundness_below(&run->shared, 3)
					 ? soundness_number(&run->shared, image)
					 : 0;
		memcpy(run->local + i, &value, 8);
	}
	fill(&run->shared, run->global, sizeof(run->global));
	for (unsigned i = 0; i < sizeof(run->event); i++) {
		if (!(facts->event_fields & soundness_field_of(i)))
			run->event[i] = (uint8_t)soundness_next(&run->secret);
	}
	fill(&run->secret, run->stack, sizeof(run->stack));
	for (unsigned r = 0; r < 16; r++)
		m->gpr[r] = soundness_next(&run->secret);
	fill(&run->secret, run->vectors.vectors, sizeof(run->vectors.vectors));
	memcpy(run->rodata, image->layout.bytes + (image->rodata.start - image->layout_base),
	       image->rodata.size);
	m->regions[AT_EVENT] =
		(struct fay_exec_region){ 0x7f0010000000u + shift + 8 * which,
					  sizeof(struct fay_event), run->event, false, "event" };
	m->regions[AT_LOCAL] =
		(struct fay_exec_region){ 0x7f0020000000u + 3 * shift, SOUNDNESS_LOCAL, run->local,
					  true, "local" };
	m->regions[AT_GLOBAL] = (struct fay_exec_region){ 0x7f0030000000u - shift, SOUNDNESS_GLOBAL,
							  run->global, true, "global" };
	m->regions[AT_RODATA] = (struct fay_exec_region){ image->rodata.start, image->rodata.size,
							  run->rodata, false, "rodata" };
	m->regions[AT_STACK] = (struct fay_exec_region){ 0x7f0040000000u + 5 * shift, STACK_BYTES,
							 run->stack, true, "stack" };
	m->region_count = AT_COUNT;
	run->entry_rsp = m->regions[AT_STACK].base + STACK_BYTES - 8;
	memcpy(run->stack + STACK_BYTES - 8, &(uint64_t){ RETURN_ADDRESS }, 8);
	if (facts->arguments_used & 1u << FAY_RDI || !which)
		m->gpr[FAY_RDI] = m->regions[AT_EVENT].base;
	if (facts->arguments_used & 1u << FAY_RSI || !which)
		m->gpr[FAY_RSI] = m->regions[AT_LOCAL].base;
	if (facts->arguments_used & 1u << FAY_RDX || !which)
		m->gpr[FAY_RDX] = m->regions[AT_GLOBAL].base;
	m->gpr[FAY_RSP] = run->entry_rsp;
	m->flags = (uint8_t)soundness_next(&run->secret) & FLAG_ALL;
	m->flags_undefined = FLAG_ALL;
	m->rip = image->layout_base + facts->code_offset;
	memcpy(run->entry, m->gpr, sizeof(run->entry));
}

static bool broken(const struct run *run, const char *what, const struct fay_insn *insn)
{
	snprintf(complaint, sizeof(complaint),
		 "%s at %#llx, step %llu (fault %#llx+%u; rsp %#llx, entry %#llx)", what,
		 (unsigned long long)insn->address, (unsigned long long)run->steps,
		 (unsigned long long)run->machine.fault_address, run->machine.fault_size,
		 (unsigned long long)run->machine.gpr[FAY_RSP], (unsigned long long)run->entry_rsp);
	return false;
}

/* The promises about one explicit memory operand; the regions themselves are checked by the
 * interpreter. */
static bool check_operand(struct run *run, const struct fay_insn *insn, const struct fay_operand *o,
			  unsigned width, const struct fay_probe_facts *facts)
{
	const struct fay_machine *m = &run->machine;
	uint64_t address = (uint64_t)o->disp, offset;

	if (o->kind != OPERAND_MEM || insn->op == OP_LEA || insn->op == OP_NOP ||
	    insn->op == OP_CALL_SLOT)
		return true;
	if (o->base != FAY_NO_REG)
		address += m->gpr[o->base];
	if (o->index != FAY_NO_REG)
		address += m->gpr[o->index] * o->scale;
	offset = address - m->regions[AT_STACK].base;
	if (offset < STACK_BYTES) {
		if (address < m->gpr[FAY_RSP])
			return broken(run, "access below rsp", insn);
		if (address + width / 8 > run->entry_rsp)
			return broken(run, "access to the return address", insn);
	}
	offset = address - m->regions[AT_EVENT].base;
	if (offset < sizeof(struct fay_event) &&
	    !(facts->event_fields & soundness_field_of((unsigned)offset)))
		return broken(run, "event field read that the facts do not name", insn);
	if (offset < sizeof(struct fay_event) &&
	    !(facts->event_fields & soundness_field_of((unsigned)(offset + width / 8 - 1))))
		return broken(run, "event field read that the facts do not name", insn);
	if (insn->locked && address % (width / 8))
		return broken(run, "split lock", insn);
	return true;
}

/* The bytes [address, +size) in one region, the stack only from rsp to below the return address;
 * NULL if not. */
static uint8_t *helper_bytes(struct run *run, uint64_t address, uint64_t size, bool write)
{
	for (unsigned i = 0; i < AT_COUNT; i++) {
		struct fay_exec_region *region = &run->machine.regions[i];
		uint64_t low = i == AT_STACK ? run->machine.gpr[FAY_RSP] : region->base;
		uint64_t room =
			(i == AT_STACK ? run->entry_rsp : region->base + region->size) - low;

		if (address - low <= room && size <= room - (address - low) &&
		    (!write || i == AT_STACK || i == AT_LOCAL))
			return region->bytes + (address - region->base);
	}
	return NULL;
}

static void note(struct run *run, uint64_t value)
{
	run->transcript = (run->transcript ^ value) * 0x100000001b3u;
}

/* What the slots hold: nothing is there. */
#define HELPERS 0x7f0050000000u

static int at_helper(uint64_t address)
{
	return address - HELPERS < FAY_HELPER_COUNT ? (int)(address - HELPERS) : -1;
}

/* mov slot(%rip), %reg: the slots are no region, so that nothing else may read them. */
static bool load_helper(struct fay_machine *m, const struct fay_insn *insn,
			const struct fay_image *image)
{
	int helper = insn->op == OP_MOV && insn->width == 64 && insn->src.kind == OPERAND_MEM &&
				     insn->src.rip
			     ? fay_image_slot(image, (uint64_t)insn->src.disp)
			     : -1;

	if (helper < 0)
		return false;
	m->gpr[insn->dst.reg] = HELPERS + (unsigned)helper;
	m->rip = insn->address + insn->length;
	return true;
}

static bool call_helper(struct run *run, const struct fay_insn *insn, const struct fay_image *image,
			const struct fay_probe_facts *facts)
{
	static const uint8_t scratch[] = { FAY_RAX, FAY_RCX, FAY_RDX, FAY_RSI, FAY_RDI,
					   FAY_R8,  FAY_R9,  FAY_R10, FAY_R11 };
	struct fay_machine *m = &run->machine;
	int helper = insn->op == OP_CALL_SLOT ? fay_image_slot(image, insn->target)
					      : at_helper(m->gpr[insn->src.reg]);
	uint64_t rdi = m->gpr[FAY_RDI], rsi = m->gpr[FAY_RSI], rdx = m->gpr[FAY_RDX],
		 result = soundness_below(&run->shared, 2);
	uint8_t *bytes;

	if (helper < 0 || !(facts->helpers & 1u << helper))
		return broken(run, "call of a helper that the facts do not name", insn);
	if (m->gpr[FAY_RSP] % 16 != 0)
		return broken(run, "misaligned helper call", insn);
	note(run, (uint64_t)helper);
	if (helper == FAY_HELPER_TRY_READ) {
		bytes = rsi <= FAY_TRY_READ_MAX ? helper_bytes(run, rdi, rsi, true) : NULL;
		if (!bytes && rsi)
			return broken(run, "fay_try_read outside", insn);
		fill(&run->shared, bytes, rsi);
		note(run, rsi);
		result = -result;
	} else {
		if (rdi != m->regions[AT_LOCAL].base ||
		    rsi != (helper == FAY_HELPER_FLUSH ? 2u : 1u))
			return broken(run, "flush or emit with wrong arguments", insn);
		if (helper == FAY_HELPER_FLUSH) {
			memset(run->local + 64, 0, 112);
		} else {
			bytes = helper_bytes(run, rdx, 16, false);
			if (!bytes)
				return broken(run, "fay_emit of a row outside", insn);
			for (unsigned i = 0; i < 16; i++)
				note(run, bytes[i]);
			if (rdx - m->regions[AT_EVENT].base < sizeof(struct fay_event) &&
			    (~facts->event_fields &
			     (soundness_field_of((unsigned)(rdx - m->regions[AT_EVENT].base)) |
			      soundness_field_of((unsigned)(rdx - m->regions[AT_EVENT].base) +
						 15))))
				return broken(
					run,
					"fay_emit reads an event field that the facts do not name",
					insn);
		}
	}
	/* What a called function may leave below rsp and in the scratch registers. */
	fill(&run->secret, run->stack, m->gpr[FAY_RSP] - m->regions[AT_STACK].base);
	for (unsigned i = 0; i < sizeof(scratch); i++)
		m->gpr[scratch[i]] = soundness_next(&run->secret);
	m->gpr[FAY_RAX] = result;
	m->flags = (uint8_t)soundness_next(&run->secret) & FLAG_ALL;
	m->flags_undefined = FLAG_ALL;
	m->rip = insn->address + insn->length;
	return true;
}

static bool step(struct run *run, struct fay_arena *arena, const struct fay_image *image,
		 const struct fay_probe_facts *facts)
{
	struct fay_machine *m = &run->machine;
	uint64_t at = m->rip - image->text.start;
	struct fay_insn insn = { .address = m->rip };
	const char *wrong = NULL;
	struct fay_refusal refusal;

	if (at >= image->text.size)
		return broken(run, "left the code", &insn);
	refusal = fay_decode(arena, image->layout.bytes + (m->rip - image->layout_base),
			     image->text.size - at, m->rip, &insn);
	if (refusal.rule != FAY_RULE_NONE)
		return broken(run, "an instruction that is not allowed", &insn);
	if (!check_operand(run, &insn, &insn.dst,
			   insn.op == OP_VECTOR ? insn.access * 8u : insn.width, facts) ||
	    !check_operand(run, &insn, &insn.src,
			   insn.op == OP_VECTOR ? insn.access * 8u : insn.src_width, facts))
		return false;
	if (soundness_below(&run->shared, 8) == 0)
		run->global[soundness_below(&run->shared, SOUNDNESS_GLOBAL)] =
			(uint8_t)soundness_next(&run->shared);
	run->steps++;
	if (load_helper(m, &insn, image))
		return true;
	switch (fay_exec_step(m, &insn)) {
	case EXEC_OK: break;
	case EXEC_CALL_HELPER:
		if (!call_helper(run, &insn, image, facts))
			return false;
		break;
	case EXEC_FAULT_READ: return broken(run, "read outside every region", &insn);
	case EXEC_FAULT_WRITE: return broken(run, "write outside every region", &insn);
	case EXEC_NOT_MODELLED:
		switch (soundness_vector_step(&run->vectors, m, &insn, facts, &wrong)) {
		case SOUNDNESS_VECTOR_DONE: break;
		case SOUNDNESS_VECTOR_UNKNOWN: run->gave_up = true; break;
		case SOUNDNESS_VECTOR_BROKEN: return broken(run, wrong, &insn);
		}
		break;
	case EXEC_DIVIDE: return broken(run, "division fault", &insn);
	case EXEC_UNDEFINED_FLAGS: return broken(run, "undefined flag read", &insn);
	}
	if (m->gpr[FAY_RSP] + facts->worst_stack < run->entry_rsp)
		return broken(run, "more stack than promised", &insn);
	return true;
}

/* 1 finished, 0 too long to follow, -1 broken. */
static int execute(struct run *run, struct fay_arena *arena, const struct fay_image *image,
		   const struct fay_probe_facts *facts)
{
	static const uint8_t saved[] = { FAY_RBX, FAY_RBP, FAY_R12, FAY_R13, FAY_R14, FAY_R15 };
	struct fay_machine *m = &run->machine;
	struct fay_insn none = { 0 };

	while (m->rip != RETURN_ADDRESS) {
		none.address = m->rip;
		if (run->steps >= facts->worst_instructions) {
			broken(run, "more instructions than promised", &none);
			return -1;
		}
		if (run->steps >= STEPS_MAX)
			return 0;
		if (!step(run, arena, image, facts))
			return -1;
		if (run->gave_up)
			return 0;
	}
	if (m->gpr[FAY_RSP] != run->entry_rsp + 8)
		return broken(run, "rsp is wrong at return", &none) - 1;
	for (unsigned i = 0; i < sizeof(saved); i++) {
		if (m->gpr[saved[i]] != run->entry[saved[i]])
			return broken(run, "a callee-saved register changed", &none) - 1;
	}
	for (unsigned r = 0; r < 16; r++) {
		if (r != FAY_RSP && m->gpr[r] != run->entry[r] &&
		    !(facts->clobbered_gprs & 1u << r))
			return broken(run, "a register changed that the facts do not name", &none) -
			       1;
	}
	return 1;
}

const char *soundness_check(const void *file, size_t size, const struct fay_verdict *verdict,
			    uint64_t seed, unsigned runs)
{
	struct fay_arena *arena = fay_arena_create((size_t)64 << 20);
	static struct run a, b;
	struct fay_image image;
	const char *result = NULL;

	if (fay_image_parse(arena, file, size, &image).rule != FAY_RULE_NONE) {
		result = "accepted, but does not parse";
	} else if (image.layout.size != verdict->layout.size ||
		   memcmp(image.layout.bytes, verdict->layout.bytes, image.layout.size)) {
		result = "the layout is not that of the image";
	}
	for (unsigned i = 0; !result && i < runs; i++) {
		int first, second;

		begin(&a, &image, &verdict->probes[0], seed + i, 0);
		begin(&b, &image, &verdict->probes[0], seed + i, 1);
		first = execute(&a, arena, &image, &verdict->probes[0]);
		second = first < 0 ? first : execute(&b, arena, &image, &verdict->probes[0]);
		if (first < 0 || second < 0)
			result = complaint;
		else if (first && second && (a.steps != b.steps || a.transcript != b.transcript))
			result = "control flow or helpers' arguments depend on secrets";
		else if (first && second &&
			 (memcmp(a.local, b.local, sizeof(a.local)) ||
			  memcmp(a.global, b.global, sizeof(a.global))))
			result = "state depends on secrets";
	}
	fay_arena_destroy(arena);
	return result;
}

bool soundness_template_read(const char *path, struct soundness_template *template)
{
	struct fay_arena *arena = fay_arena_create((size_t)16 << 20);
	FILE *stream = fopen(path, "rb");
	struct fay_image image;
	bool ok = false;

	memset(template, 0, sizeof(*template));
	template->file = malloc(1 << 20);
	if (stream && template->file && arena) {
		template->size = fread(template->file, 1, 1 << 20, stream);
		if (fay_image_parse(arena, template->file, template->size, &image).rule ==
		    FAY_RULE_NONE) {
			const uint8_t *text =
				image.layout.bytes + (image.text.start - image.layout_base);
			const uint8_t *found =
				memmem(template->file, template->size, text, image.text.size);

			ok = found != NULL;
			template->code_at = (size_t)(found - template->file);
			template->code_size = 1024; /* template.S */
			template->text = image.text.start;
			template->rodata = image.rodata.start;
			for (unsigned i = 0; i < image.layout.slot_count; i++)
				template->slots[image.layout.slots[i].helper] =
					image.layout_base + image.layout.slots[i].offset;
		}
	}
	if (stream)
		fclose(stream);
	fay_arena_destroy(arena);
	return ok;
}
