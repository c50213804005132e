/* SPDX-License-Identifier: MIT */
/* A session's module: functions that have the same probes to sets, sets to trampolines behind the
 * verified code, and all that into the kernel. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "kernel_private.h"

#define PAGE 4096u

/* Whether one of these probes reads what a call returned. */
static bool reads_result(const struct fay_kernel_session *session, uint64_t probes)
{
	for (uint32_t i = 0; i < session->probe_count; i++)
		if (probes >> i & 1 && session->probes[i].kind == FAY_PROBE_RETURN &&
		    session->probes[i].fields & FAY_FIELD_RETVAL)
			return true;
	return false;
}

static bool same_set(const struct fay_kernel_set *a, const struct fay_kernel_set *b)
{
	return a->probes == b->probes && a->stack_words == b->stack_words && a->result == b->result;
}

static int place_points(struct fay_kernel_session *session, struct fay_error *error)
{
	uint64_t returns = fay_kernel_return_probes(session), returning = 0;

	session->set_count = 0;
	for (size_t i = 0; i < session->point_count; i++) {
		struct kernel_point *point = &session->points[i];
		struct fay_kernel_set wanted = { .probes = point->probes,
						 .stack_words = point->prototype.stack_words,
						 .result = reads_result(session, point->probes)
								   ? point->prototype.result
								   : 0 };
		uint32_t at = 0;

		while (at < session->set_count && !same_set(&session->sets[at], &wanted))
			at++;
		if (at == FAY_KERNEL_SETS_MAX)
			return fay_error_set(error, FAY_E_LIMIT,
					     "more than %u different sets of probes at functions",
					     FAY_KERNEL_SETS_MAX);
		if (at == session->set_count)
			session->sets[session->set_count++] = wanted;
		point->set = at;
		session->sets[at].point_count++;
		returning += (point->probes & returns) != 0;
	}
	if (returning > FAY_KERNEL_DIRECT_MAX)
		return fay_error_set(error, FAY_E_LIMIT,
				     "%llu functions have return probes; returns of at most %u can "
				     "be traced at once",
				     (unsigned long long)returning, FAY_KERNEL_DIRECT_MAX);
	return FAY_OK;
}

static int choose_sets(struct fay_kernel_session *session, struct fay_error *error)
{
	int result = place_points(session, error);

	if (result)
		return result;
	for (uint32_t i = 0; i < session->set_count; i++) {
		struct fay_kernel_set *set = &session->sets[i];

		set->callback = set->point_count > FAY_KERNEL_DIRECT_MAX ||
				(session->called_back &&
				 !(set->probes & fay_kernel_return_probes(session)));
	}
	for (uint32_t i = 0; i < session->probe_count; i++) {
		if (!fay_kernel_hosted(session->probes[i].kind))
			continue;
		if (session->set_count == FAY_KERNEL_SETS_MAX)
			return fay_error_set(error, FAY_E_LIMIT,
					     "more than %u different sets of probes",
					     FAY_KERNEL_SETS_MAX);
		session->sets[session->set_count++] =
			(struct fay_kernel_set){ .probes = UINT64_C(1) << i };
	}
	return FAY_OK;
}

static int write_text(struct fay_kernel_session *session, struct fay_error *error)
{
	const struct fay_layout *layout = &session->verdict->layout;
	size_t at = (layout->size + PAGE - 1) / PAGE * PAGE;

	free(session->text);
	free(session->relocations);
	session->relocation_count = 0;
	session->text_room = at + session->set_count * (size_t)FAY_KERNEL_TRAMPOLINE_MAX;
	session->text = calloc(1, session->text_room);
	session->relocations = calloc(session->set_count * (size_t)FAY_KERNEL_RELOCATIONS_MAX + 1,
				      sizeof(*session->relocations));
	if (!session->text || !session->relocations)
		return fay_error_set(error, FAY_E_LIMIT, "out of memory");
	memset(session->text, 0xcc, session->text_room);
	memcpy(session->text, layout->bytes, layout->size);
	for (uint32_t i = 0; i < layout->slot_count; i++)
		memcpy(session->text + layout->slots[i].offset,
		       &session->made.places.helpers[layout->slots[i].helper], 8);
	for (uint32_t i = 0; i < session->set_count; i++) {
		struct fay_kernel_trampoline trampoline = {
			.places = &session->made.places,
			.probes = session->probes,
			.set = session->sets[i].probes,
			.stack_words = session->sets[i].stack_words,
			.result = session->sets[i].result,
			.callback = session->sets[i].callback,
			.address = at,
			.relocations = session->relocations + session->relocation_count
		};
		uint32_t size = fay_kernel_trampoline_write(&trampoline, session->text + at,
							    FAY_KERNEL_TRAMPOLINE_MAX);

		if (!size)
			return fay_error_set(error, FAY_E_LIMIT, "too many probes at one function");
		for (uint32_t k = 0; k < trampoline.relocation_count; k++)
			session->relocations[session->relocation_count++].offset += (uint32_t)at;
		session->sets[i].trampoline = (uint32_t)at;
		at = (at + size + 15) / 16 * 16;
	}
	session->text_size = at;
	return FAY_OK;
}

int fay_kernel_object_load(const struct fay_kernel_object *object, const struct fay_kernel_btf *btf,
			   const char *what, struct fay_error *error)
{
	uint8_t *bytes;
	size_t size;
	int result = fay_kernel_object_write(object, btf, &bytes, &size, error);

	if (!result && (result = fay_kernel_sign(&bytes, &size, error)))
		free(bytes);
	if (result)
		return result;
	syscall(SYS_delete_module, object->name, O_NONBLOCK);
	if (syscall(SYS_init_module, bytes, size, ""))
		result = fay_kernel_load_refused(what, error);
	free(bytes);
	return result;
}

/* One of its name is a killed fay's: its session is gone, or its number would not be ours. */
static int load_module(struct fay_kernel_session *session, struct fay_error *error)
{
	bool returns = false;

	for (uint32_t i = 0; i < session->probe_count; i++)
		returns |= session->probes[i].kind == FAY_PROBE_RETURN;
	struct fay_kernel_object object = { .reference = session->ko,
					    .text = session->text,
					    .text_size = session->text_size,
					    .relocations = session->relocations,
					    .relocation_count = session->relocation_count,
					    .name = session->name,
					    .indirect = returns ||
							session->verdict->layout.slot_count };
	int result = fay_kernel_object_load(&object, session->btf, "the probes' module", error);

	session->loaded = !result;
	return result;
}

int fay_kernel_module_load(struct fay_kernel_session *session, struct fay_error *error)
{
	int result = choose_sets(session, error);

	if (!result && !session->allowed.functions)
		result = write_text(session, error);
	return result || session->allowed.functions ? result : load_module(session, error);
}
