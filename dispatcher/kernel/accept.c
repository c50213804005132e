// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * What is believed of an image's code: what the checker (verifier/checker, built into this module)
 * says of one copy of it, by its certificate, under the kernel's policy. The user side's verdict is
 * not asked for.
 */
#include <asm/cpufeature.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <linux/vmalloc.h>

#include "fay.h"
#include "verifier/reader/reader.h"

#define KINDS                                                                                      \
	(1u << FAY_PROBE_ENTRY | 1u << FAY_PROBE_RETURN | 1u << FAY_PROBE_BEGIN |                  \
	 1u << FAY_PROBE_END | 1u << FAY_PROBE_TIMER)

/* As fay_policy_restrict_kernel() makes that of everything that is possible. */
const struct fay_policy fay_kernel_images = {
	.max_instructions = FAY_KERNEL_MAX_INSTRUCTIONS,
	.max_stack = FAY_KERNEL_MAX_STACK,
	.max_local = FAY_IMAGE_MAX_LOCAL,
	.max_global = FAY_IMAGE_MAX_GLOBAL,
	.allow_helpers = (1u << FAY_HELPER_COUNT) - 1,
	.speculation_confined = true,
	.allow_rdtsc = true,
	.allow_kinds = KINDS,
	.allow_fields = ~(u32)(FAY_FIELD_RETVAL_FLOAT | FAY_FIELD_REGISTERS | FAY_FIELD_FLAGS),
};

/* A long certificate may take seconds. */
bool fay_check_given_up(void)
{
	cond_resched();
	return fatal_signal_pending(current);
}

/* The checker's memory and answers. */
struct work {
	u8 *image;
	size_t size, room;
	void *memory;
	struct fay_probe_facts *facts; /* FAY_IMAGE_MAX_PROBES */
	struct check_result result;
};

/* Those of enum fay_cpu_feature that this machine has: an instruction that it lacks may be another
 * one (lzcnt is bsr), not only an illegal one. */
static u32 cpu_features(void)
{
	return (boot_cpu_has(X86_FEATURE_XMM3) ? FAY_CPU_SSE3 : 0) |
	       (boot_cpu_has(X86_FEATURE_SSSE3) ? FAY_CPU_SSSE3 : 0) |
	       (boot_cpu_has(X86_FEATURE_XMM4_1) ? FAY_CPU_SSE41 : 0) |
	       (boot_cpu_has(X86_FEATURE_XMM4_2) ? FAY_CPU_SSE42 : 0) |
	       (boot_cpu_has(X86_FEATURE_POPCNT) ? FAY_CPU_POPCNT : 0) |
	       (boot_cpu_has(X86_FEATURE_ABM) ? FAY_CPU_LZCNT : 0) |
	       (boot_cpu_has(X86_FEATURE_BMI1) ? FAY_CPU_BMI1 : 0) |
	       (boot_cpu_has(X86_FEATURE_BMI2) ? FAY_CPU_BMI2 : 0) |
	       (boot_cpu_has(X86_FEATURE_MOVBE) ? FAY_CPU_MOVBE : 0);
}

static u32 fields_of_kind(u32 kind)
{
	switch (kind) {
	case FAY_PROBE_ENTRY: return FAY_KERNEL_FIELDS_ENTRY;
	case FAY_PROBE_RETURN: return FAY_KERNEL_FIELDS_RETURN;
	default: return FAY_FIELDS_ALWAYS;
	}
}

/* Registers of the general set only (the policy sees to that), and no instruction or field that
 * does not exist here. fay_fill() divides by the clock's frequency. */
static int take_probes(const struct work *work, struct fay_code *code)
{
	code->probe_count = work->result.probe_count;
	if (code->probe_count > FAY_KERNEL_PROBES_MAX)
		return -E2BIG;
	for (u32 i = 0; i < code->probe_count; i++) {
		const struct fay_probe_facts *facts = &work->facts[i];

		if (facts->clobbered_vectors || facts->uses_mxcsr ||
		    facts->event_fields & ~fields_of_kind(facts->kind) ||
		    facts->cpu_features & ~cpu_features())
			return -EINVAL;
		if (facts->event_fields & FAY_FIELD_DURATION && tsc_khz < FAY_TSC_KHZ_MIN)
			return -EOPNOTSUPP;
		code->probes[i] =
			(struct fay_kernel_probe){ .kind = facts->kind,
						   .code_offset = facts->code_offset,
						   .fields = facts->event_fields,
						   .clobbers = (u16)facts->clobbered_gprs,
						   .arguments = (u16)facts->arguments_used };
	}
	return 0;
}

/* The bytes that the checker read, at their distances; helper slots with their addresses. */
static int take_layout(const struct work *work, const struct fay_kernel_places *places,
		       struct fay_code *code)
{
	const struct check_subject *s = &work->result.subject;

	if (s->span > FAY_KERNEL_IMAGE_MAX)
		return -E2BIG;
	code->layout_size = (u32)s->span;
	code->layout = kvzalloc(s->span, GFP_KERNEL);
	if (!code->layout)
		return -ENOMEM;
	memcpy(code->layout + (s->text.start - s->base), s->text.bytes, s->text.size);
	if (s->rodata.size)
		memcpy(code->layout + (s->rodata.start - s->base), s->rodata.bytes, s->rodata.size);
	for (u32 i = 0; i < s->slot_count; i++)
		memcpy(code->layout + (s->slots[i].address - s->base),
		       &places->helpers[s->slots[i].helper], 8);
	return 0;
}

static int take_states(const struct work *work, struct fay_code *code)
{
	const struct check_subject *s = &work->result.subject;
	struct fay_image_state *states =
		kvmalloc_array(s->state_count + 1, sizeof(*states), GFP_KERNEL);

	if (!states)
		return -ENOMEM;
	code->local_size = s->local_size;
	code->global_size = s->global_size;
	code->state_count = s->state_count;
	code->states = states;
	if (s->state_count)
		memcpy(states, s->states.bytes, s->state_count * sizeof(*states));
	return 0;
}

static int allocate(struct work *work, const struct fay_kernel_create *create)
{
	work->size = create->image_size;
	work->room = check_room(work->size);
	work->image = vmemdup_user((const void __user *)create->image, work->size);
	if (IS_ERR(work->image))
		return PTR_ERR(work->image);
	work->memory = kvmalloc(work->room, GFP_KERNEL);
	work->facts = kvcalloc(FAY_IMAGE_MAX_PROBES, sizeof(*work->facts), GFP_KERNEL);
	return work->memory && work->facts ? 0 : -ENOMEM;
}

static int check(struct work *work, const struct fay_policy *policy,
		 struct fay_kernel_create *create)
{
	const struct check_refusal *refusal = &work->result.refusal;

	check_image(work->image, work->size, NULL, 0, policy, work->memory, work->room, work->facts,
		    &work->result);
	create->rule = refusal->rule;
	create->place = refusal->place;
	return refusal->rule == FAY_RULE_NONE ? 0 : -EKEYREJECTED;
}

/* Of a user's image all probes together may be at one function, and run at each of its calls. */
static int check_sum(const struct work *work, const struct fay_policy *policy,
		     struct fay_kernel_create *create)
{
	u64 sum = 0;

	for (u32 i = 0; i < work->result.probe_count; i++)
		sum += work->facts[i].worst_instructions;
	if (policy == &fay_kernel_images || sum <= policy->max_instructions)
		return 0;
	create->rule = FAY_RULE_POL_INSTRUCTIONS;
	return -EKEYREJECTED;
}

int fay_code_accept(struct fay_kernel_create *create, const struct fay_policy *policy,
		    const struct fay_kernel_places *places, struct fay_code *code)
{
	struct work *work;
	int result;

	if (!create->image_size || create->image_size > FAY_KERNEL_IMAGE_MAX)
		return -E2BIG;
	work = kzalloc(sizeof(*work), GFP_KERNEL);
	if (!work)
		return -ENOMEM;
	result = allocate(work, create);
	if (!result)
		result = fay_signature_check(create, work->image);
	if (!result)
		result = check(work, policy, create);
	if (!result)
		result = check_sum(work, policy, create);
	if (!result)
		result = take_probes(work, code);
	if (!result)
		result = take_layout(work, places, code);
	if (!result)
		result = take_states(work, code);
	if (!IS_ERR_OR_NULL(work->image))
		kvfree(work->image);
	kvfree(work->memory);
	kvfree(work->facts);
	kfree(work);
	return result;
}

void fay_code_release(struct fay_code *code)
{
	kvfree(code->layout);
	kvfree(code->states);
}
