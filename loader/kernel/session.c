/* SPDX-License-Identifier: MIT */
/*
 * Attaching to the kernel: patterns to functions, functions that have the same probes to sets, sets
 * to trampolines, all that into a module, and fay.ko's word that it is what was verified.
 * docs/kernel.md has the order of things.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "kernel_private.h"
#include "loader/process/process.h"

#define CATCH_UP_MAX 1000u

bool fay_kernel_is_target(const struct fay_verdict *verdict)
{
	bool kernel = false;

	for (uint32_t i = 0; i < verdict->probe_count; i++) {
		const char *pattern = verdict->probes[i].pattern;

		if (!pattern || !*pattern)
			continue;
		if (strncmp(pattern, FAY_KERNEL_MODULE_NAME "!", sizeof(FAY_KERNEL_MODULE_NAME)))
			return false;
		kernel = true;
	}
	return kernel;
}

/* Returns errno's value, 0 when it is attached. */
static int attach(struct fay_kernel_session *session)
{
	struct fay_kernel_point *points = calloc(session->point_count + 1, sizeof(*points));
	uint32_t next[FAY_KERNEL_SETS_MAX], first = 0;
	struct fay_kernel_attach attach = { (uint64_t)session->sets, (uint64_t)points,
					    session->set_count, (uint32_t)session->point_count };

	if (!points)
		return ENOMEM;
	for (uint32_t i = 0; i < session->set_count; first += session->sets[i++].point_count)
		next[i] = first;
	for (size_t i = 0; i < session->point_count; i++)
		points[next[session->points[i].set]++] = session->points[i].place;
	int failed = ioctl(session->device, FAY_KERNEL_ATTACH, &attach), code = errno;
	free(points);
	session->attached = !failed;
	return failed ? code : 0;
}

#define OTHERS_HOLD                                                                                \
	"another tracer (BPF, or another fay) holds one of these functions by a direct call, or "  \
	"a live patch replaces one"

static int attach_refused(int code, struct fay_error *error)
{
	if (code == EDQUOT)
		return fay_error_set(error, FAY_E_LIMIT,
				     "fay.ko cannot attach: the returns of at most %u functions "
				     "can be traced at once, by all traces together; with those of "
				     "running traces, these are more",
				     FAY_KERNEL_DIRECT_TOTAL);
	return fay_error_set(error, code == ENOMEM ? FAY_E_LIMIT : FAY_E_REFUSED,
			     "fay.ko cannot attach: %s",
			     code == EBUSY          ? OTHERS_HOLD
			     : code == EKEYREJECTED ? "the code in place is not what was verified"
			     : code == ESTALE       ? "the policy for users was changed meanwhile"
			     : code == ENOEXEC      ? "the module for its code is not loaded"
			     : code == ENOSPC ? "its code is larger than the room for a user's"
			     : code == ENODEV ? FAY_KERNEL_FTRACE_DEAD
				     "; until the next boot no functions are traced"
					      : strerror(code));
}

/* By direct calls; if others hold these functions, or too many, entries are called back by ftrace:
 * that costs more, but goes beside others. */
static int load_and_attach(struct fay_kernel_session *session, struct fay_error *error)
{
	struct fay_kernel_detached detached;
	int result = fay_kernel_module_load(session, error), code = result ? 0 : attach(session);

	/* Calls of what was attached before it failed may be under way: then its module stays. */
	if ((code == EBUSY || code == EDQUOT) &&
	    !ioctl(session->device, FAY_KERNEL_DETACH, &detached)) {
		session->called_back =
			code == EBUSY
				? OTHERS_HOLD
				: "all traces together have too many functions for direct calls";
		result = fay_kernel_module_load(session, error);
		code = result ? 0 : attach(session);
	}
	return code ? attach_refused(code, error) : result;
}

int fay_kernel_read(struct fay_kernel_session *session, struct fay_error *error)
{
	if (session->symbols)
		return FAY_OK;
	if (fay_kernel_btf_open(&session->own_btf, error) ||
	    fay_kernel_symbols_read(&session->own_symbols, error))
		return error->code;
	session->symbols = &session->own_symbols;
	session->btf = session->own_btf;
	return FAY_OK;
}

static int build(struct fay_kernel_session *session, const char *ko, struct fay_error *error)
{
	int result;

	if ((result = fay_kernel_take_probes(session, error)) ||
	    (result = fay_kernel_device_open(session, ko, error)) ||
	    (!session->allowed.functions && (result = fay_kernel_read(session, error))) ||
	    (result = fay_kernel_find_points(session, error)) ||
	    (result = fay_kernel_device_create(session, error)) ||
	    (result = load_and_attach(session, error)))
		return result;
	for (uint32_t i = 0; i < session->probe_count; i++)
		session->due[i] = fay_loader_clock_ns() + session->periods[i];
	return FAY_OK;
}

int fay_kernel_session_attach_with(const struct fay_verdict *verdict,
				   const struct fay_kernel_image *image, const char *fay_ko,
				   const struct fay_kernel_symbols *symbols,
				   const struct fay_kernel_btf *btf,
				   struct fay_kernel_session **result, struct fay_error *error)
{
	struct fay_kernel_session *session = calloc(1, sizeof(*session));

	if (!session)
		return fay_error_set(error, FAY_E_LIMIT, "out of memory");
	session->verdict = verdict;
	session->image = *image;
	session->symbols = symbols;
	session->btf = btf;
	session->device = -1;
	if (build(session, fay_ko, error)) {
		fay_kernel_session_destroy(session);
		return error->code;
	}
	session->verdict = NULL;
	session->image = (struct fay_kernel_image){ 0 };
	*result = session;
	return FAY_OK;
}

int fay_kernel_session_attach(const struct fay_verdict *verdict,
			      const struct fay_kernel_image *image, const char *fay_ko,
			      struct fay_kernel_session **result, struct fay_error *error)
{
	return fay_kernel_session_attach_with(verdict, image, fay_ko, NULL, NULL, result, error);
}

/* ---- running, leaving ---- */

void fay_kernel_session_run(struct fay_kernel_session *session, uint32_t kind)
{
	for (uint32_t i = 0; i < session->set_count; i++) {
		uint32_t probe = (uint32_t)__builtin_ctzll(session->sets[i].probes);

		if (!session->sets[i].point_count && session->probes[probe].kind == kind)
			ioctl(session->device, FAY_KERNEL_RUN, &i);
	}
}

void fay_kernel_session_tick(struct fay_kernel_session *session)
{
	uint64_t now = fay_loader_clock_ns();

	for (uint32_t i = 0; i < session->set_count; i++) {
		uint32_t probe = (uint32_t)__builtin_ctzll(session->sets[i].probes);
		unsigned round = 0;

		if (session->sets[i].point_count || session->probes[probe].kind != FAY_PROBE_TIMER)
			continue;
		for (; session->due[probe] <= now && round < CATCH_UP_MAX;
		     round++, session->due[probe] += session->periods[probe])
			ioctl(session->device, FAY_KERNEL_RUN, &i);
		if (round == CATCH_UP_MAX)
			session->due[probe] = now + session->periods[probe];
	}
}

int fay_kernel_session_detach(struct fay_kernel_session *session, struct fay_error *error)
{
	struct fay_kernel_detached answer;

	if (!session->attached)
		return FAY_OK;
	session->attached = false;
	if (!ioctl(session->device, FAY_KERNEL_DETACH, &answer))
		return FAY_OK;
	if (errno == ENOTRECOVERABLE)
		return fay_error_set(error, FAY_E_REFUSED,
				     FAY_KERNEL_FTRACE_DEAD
				     ", so the functions go on calling module %s, which stays, and "
				     "fay.ko, until the next boot",
				     session->name);
	if (errno != EAGAIN)
		return fay_error_set(error, FAY_E_INTERNAL, "fay.ko cannot detach: %s",
				     strerror(errno));
	return fay_error_set(error, FAY_E_LIMIT,
			     "%llu calls of traced functions have not returned yet; nothing is "
			     "traced any more, but module %s stays until they have",
			     (unsigned long long)answer.calls, session->name);
}

void fay_kernel_session_destroy(struct fay_kernel_session *session)
{
	struct fay_error error;

	if (!session)
		return;
	if (session->device >= 0)
		fay_kernel_session_detach(session, &error);
	if (session->shm)
		munmap(session->shm, session->made.shm_size);
	if (session->loaded)
		syscall(SYS_delete_module, session->name, O_NONBLOCK);
	if (session->device >= 0)
		close(session->device);
	fay_kernel_symbols_deinit(&session->own_symbols);
	fay_kernel_btf_close(session->own_btf);
	free(session->allowed.functions);
	free(session->allowed.names);
	free(session->own_names);
	free(session->points);
	free(session->skipped);
	free(session->text);
	free(session->relocations);
	free(session);
}

struct fay_shm_control *fay_kernel_session_shm(struct fay_kernel_session *session, size_t *size)
{
	*size = session->made.shm_size;
	return session->shm;
}

size_t fay_kernel_session_point_count(const struct fay_kernel_session *session)
{
	return session->point_count;
}
size_t fay_kernel_session_skipped_count(const struct fay_kernel_session *session)
{
	return session->skipped_count;
}
const struct fay_skipped_point *fay_kernel_session_skipped(const struct fay_kernel_session *session,
							   size_t index)
{
	return &session->skipped[index];
}

const char *fay_kernel_session_called_back(const struct fay_kernel_session *session)
{
	return session->called_back;
}

const char *fay_kernel_session_function_name(const struct fay_kernel_session *session,
					     uint64_t hash)
{
	for (size_t i = 0; i < session->point_count; i++)
		if (session->points[i].place.function == hash)
			return session->points[i].name;
	return NULL;
}
