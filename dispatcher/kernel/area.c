// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * Where users' code goes. Loading a module takes root, so root loads one, which has nothing in its
 * text but room. fay.ko writes there what it has checked, through a mapping of its own that is gone
 * before the code runs: the text itself stays read-only. attach.c then compares it in place, as it
 * does what root's side has written.
 */
#include <asm/sync_core.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/smp.h>
#include <linux/vmalloc.h>

#include "fay.h"

#define PAGES (FAY_KERNEL_AREA_SIZE / PAGE_SIZE)
#define BREAKPOINT 0xcc

static struct module *areas; /* under fay_mutex */

static void forget(const struct module *module)
{
	for (unsigned int i = 0; i < FAY_KERNEL_AREA_COUNT; i++) {
		struct fay_session *session = fay_sessions[i];

		if (!session || session->module != module)
			continue;
		session->module = NULL;
		session->checked = false;
	}
	areas = NULL;
}

int fay_areas_event(struct module *module, unsigned long action)
{
	if (action == MODULE_STATE_GOING && areas == module)
		forget(module);
	if (action != MODULE_STATE_COMING)
		return 0;
	if (areas || module->init || module->exit ||
	    module->core_layout.text_size < FAY_KERNEL_AREA_COUNT * FAY_KERNEL_AREA_SIZE)
		return -EPERM;
	areas = module;
	return 0;
}

bool fay_area_take(struct fay_session *session)
{
	if (!areas || session->number >= FAY_KERNEL_AREA_COUNT)
		return false;
	session->module = areas;
	session->text = areas->core_layout.base + session->number * FAY_KERNEL_AREA_SIZE;
	session->text_size = FAY_KERNEL_AREA_SIZE;
	return true;
}

/* What the CPU has fetched ahead, or cached in decoded form, is of what was there before. */
static void forget_fetched(void *unused)
{
	sync_core();
}

static int copy_to_text(u8 *text, const u8 *from)
{
	struct page *pages[PAGES];
	void *writable;

	for (unsigned int i = 0; i < PAGES; i++) {
		pages[i] = vmalloc_to_page(text + i * PAGE_SIZE);
		if (!pages[i])
			return -EFAULT;
	}
	writable = vmap(pages, PAGES, VM_MAP, PAGE_KERNEL);
	if (!writable)
		return -ENOMEM;
	memcpy(writable, from, FAY_KERNEL_AREA_SIZE);
	vunmap(writable);
	on_each_cpu(forget_fetched, NULL, 1);
	return 0;
}

/* The layout, then the sets' trampolines. */
static int write_code(struct fay_session *session, u8 *code)
{
	u32 at = session->code.layout_size;

	if (at > FAY_KERNEL_AREA_SIZE)
		return -ENOSPC;
	memcpy(code, session->code.layout, at);
	for (unsigned int i = 0; i < session->set_count; i++) {
		struct fay_kernel_set *set = &session->sets[i].given;
		struct fay_kernel_trampoline trampoline;
		u32 size;

		at = ALIGN(at, 16);
		trampoline = fay_trampoline_of(session, set, at);
		size = fay_kernel_trampoline_write(
			&trampoline, code + at,
			min(FAY_KERNEL_TRAMPOLINE_MAX, FAY_KERNEL_AREA_SIZE - at));
		if (!size)
			return -ENOSPC;
		set->trampoline = at;
		at += size;
	}
	return 0;
}

int fay_area_write(struct fay_session *session)
{
	u8 *code = kvmalloc(FAY_KERNEL_AREA_SIZE, GFP_KERNEL);
	int result;

	if (!code)
		return -ENOMEM;
	memset(code, BREAKPOINT, FAY_KERNEL_AREA_SIZE);
	result = write_code(session, code);
	if (!result)
		result = copy_to_text(session->text, code);
	kvfree(code);
	return result;
}
