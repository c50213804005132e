/* SPDX-License-Identifier: MIT */
/*
 * Installing a planned session, with the target stopped from start to end:
 *
 *	1 nothing has changed since the plan: every site still holds the bytes that were judged
 *	2 the thread table, the state (memfd, kept open here), the zones (memfds, sealed before they are mapped)
 *	3 the image's bytes are read back from the target and hashed: they are those that were verified
 *	4 no thread and no signal frame is inside the bytes to be overwritten, or the thread is moved to their copy
 *	5 markers' semaphores are counted up, the jumps are written
 *
 * A failure before 5 unmaps everything; a failure in 5 also puts back what was written.
 */
#include "session.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "runtime.h"

#ifndef MFD_EXEC
#define MFD_EXEC 0x10u
#endif
#ifndef F_SEAL_EXEC
#define F_SEAL_EXEC 0x20
#endif

void fay_sha256(const void *data, size_t size, uint8_t digest[32]); /* of the verifier's library */

static int remote(struct fay_stop *stop, long number, uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e,
		  const char *what, int64_t *result, struct fay_error *error)
{
	uint64_t arguments[6] = { a, b, c, d, e, 0 };
	int code = fay_stop_syscall(stop, number, arguments, result, error);

	if (code)
		return code;
	if (*result < 0 && *result > -4096)
		return fay_error_set(error, FAY_E_REFUSED, "process %d: %s failed there: %s", (int)stop->pid, what,
				     strerror((int)-*result));
	return 0;
}

static int remote_map(struct fay_stop *stop, uint64_t address, uint64_t size, int protection, int flags, int fd,
		      struct fay_error *error)
{
	int64_t result = 0;
	int code = remote(stop, SYS_mmap, address, size, (uint64_t)protection,
			  (uint64_t)(flags | MAP_FIXED_NOREPLACE), (uint64_t)(int64_t)fd, "mmap", &result, error);

	if (code && result == -EEXIST) { /* the program mapped something there since the plan was made */
		fay_error_set(error, FAY_E_LIMIT, "process %d: memory at the chosen address was taken", (int)stop->pid);
		return -1;
	}
	if (code)
		return code;
	if ((uint64_t)result != address) { /* kernels before 4.17 ignore MAP_FIXED_NOREPLACE */
		remote(stop, SYS_munmap, (uint64_t)result, size, 0, 0, 0, "munmap", &result, NULL);
		return fay_error_set(error, FAY_E_REFUSED, "process %d: memory at the chosen address was taken", (int)stop->pid);
	}
	return 0;
}

/* A memfd in the target, opened here. `scratch` is writable memory there for its name. */
static int remote_memfd(struct fay_stop *stop, uint64_t scratch, const char *name, uint32_t flags, int *there,
			int *here, struct fay_error *error)
{
	char path[64], link[64] = "", zero[32] = "";
	int64_t result;
	ssize_t got;
	int code;

	if (fay_stop_write(stop, scratch, name, strlen(name) + 1))
		return fay_error_set(error, FAY_E_INTERNAL, "process %d: cannot write its memory", (int)stop->pid);
	code = remote(stop, SYS_memfd_create, scratch, flags, 0, 0, 0, "memfd_create", &result, error);
	if (code && flags & MFD_EXEC) /* before Linux 6.3 */
		code = remote(stop, SYS_memfd_create, scratch, flags & ~MFD_EXEC, 0, 0, 0, "memfd_create", &result,
			      error);
	fay_stop_write(stop, scratch, zero, strlen(name) + 1);
	if (code)
		return code;
	*there = (int)result;
	snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)stop->pid, *there);
	*here = open(path, O_RDWR | O_CLOEXEC);
	got = readlink(path, link, sizeof(link) - 1);
	if (*here < 0 || got < 7 || strncmp(link, "/memfd:", 7)) {
		int saved = errno;

		remote(stop, SYS_close, (uint64_t)*there, 0, 0, 0, 0, "close", &result, NULL);
		return fay_error_set(error, FAY_E_REFUSED, "%s: %s", path, strerror(saved));
	}
	return 0;
}

static int install_table(struct fay_session *session, struct fay_stop *stop, struct fay_error *error)
{
	int64_t result;
	int code = remote_map(stop, session->table_address, FAY_THREAD_TABLE_BYTES, PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS, -1, error);

	if (code)
		return code;
	session->table_mapped = true;
	return remote(stop, SYS_madvise, session->table_address, FAY_THREAD_TABLE_BYTES, MADV_WIPEONFORK, 0, 0,
		      "madvise(MADV_WIPEONFORK)", &result, error);
}

static int map_state_here(struct fay_session *session, int fd, struct fay_error *error)
{
	void *shm;

	if (ftruncate(fd, (off_t)session->shm_size))
		return fay_error_set(error, FAY_E_LIMIT, "state of %zu bytes: %s", session->shm_size, strerror(errno));
	shm = mmap(NULL, session->shm_size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
	if (shm == MAP_FAILED)
		return fay_error_set(error, FAY_E_LIMIT, "mapping state of %zu bytes: %s", session->shm_size, strerror(errno));
	session->shm = shm;
	*session->shm = session->geometry;
	return 0;
}

/* The process id as the target itself sees it: the last of NSpid. */
pid_t fay_inner_id(pid_t pid, pid_t tid)
{
	char path[80], line[256];
	long id = tid;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/status", (int)pid, (int)tid);
	file = fopen(path, "re");
	if (!file)
		return tid;
	while (fgets(line, sizeof(line), file))
		if (!strncmp(line, "NSpid:", 6)) {
			char *last = strrchr(line, '\t');

			if (last)
				id = strtol(last, NULL, 10);
			break;
		}
	fclose(file);
	return (pid_t)id;
}

/*
 * The state is mapped without access and opened up afterwards: in a program that called mlockall(MCL_FUTURE), mmap of accessible memory would
 * make all of its pages present, gigabytes of them, before it returned. mprotect does so for private memory only.
 */
static int map_state_there(struct fay_session *session, struct fay_stop *stop, int fd, struct fay_error *error)
{
	int64_t result;
	int code = remote_map(stop, session->shm_address, session->shm_size, PROT_NONE, MAP_SHARED | MAP_NORESERVE, fd,
			      error);

	if (code)
		return code;
	session->shm_mapped = true;
	return remote(stop, SYS_mprotect, session->shm_address, session->shm_size, PROT_READ | PROT_WRITE, 0, 0, "mprotect",
		      &result, error);
}

static int install_state(struct fay_session *session, struct fay_stop *stop, struct fay_error *error)
{
	int there, here, code = remote_memfd(stop, session->table_address, "fay-state", MFD_CLOEXEC, &there, &here,
					     error);
	int64_t result;

	if (code)
		return code;
	session->geometry.target_pid = (uint32_t)fay_inner_id(session->pid, session->pid);
	code = map_state_here(session, here, error);
	if (!code)
		code = map_state_there(session, stop, there, error);
	close(here);
	remote(stop, SYS_close, (uint64_t)there, 0, 0, 0, 0, "close", &result, NULL);
	return code;
}

/*
 * Private memory: each process forked from this one has its own calls under way. A slot's part is touched when a thread takes the slot. The
 * program may have asked for all its memory to be present, now and in future (mlockall): not this.
 */
static int install_calls(struct fay_session *session, struct fay_stop *stop, struct fay_error *error)
{
	int64_t result;
	int code;

	if (!session->calls_size)
		return 0;
	code = remote_map(stop, session->calls_address, session->calls_size, PROT_NONE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, error);
	if (code)
		return code;
	session->calls_mapped = true;
	code = remote(stop, SYS_munlock, session->calls_address, session->calls_size, 0, 0, 0, "munlock", &result, error);
	return code ? code : remote(stop, SYS_mprotect, session->calls_address, session->calls_size, PROT_READ | PROT_WRITE,
				    0, 0, "mprotect", &result, error);
}

static int write_and_seal(int fd, const struct fay_zone_plan *zone, struct fay_error *error)
{
	const int seals = F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

	if (ftruncate(fd, (off_t)zone->header.code_size) ||
	    pwrite(fd, zone->code, zone->code_size, 0) != (ssize_t)zone->code_size)
		return fay_error_set(error, FAY_E_LIMIT, "writing %zu bytes of code: %s", zone->code_size, strerror(errno));
	if (fcntl(fd, F_ADD_SEALS, seals))
		return fay_error_set(error, FAY_E_INTERNAL, "sealing the code: %s", strerror(errno));
	return 0;
}

static int install_zone(struct fay_session *session, struct fay_stop *stop, struct fay_zone_plan *zone,
			struct fay_error *error)
{
	size_t data = sizeof(zone->header) + zone->header.patch_count * sizeof(struct fay_zone_patch);
	int there, here, code = remote_memfd(stop, session->table_address, FAY_ZONE_MEMFD,
					     MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_EXEC, &there, &here, error);
	int64_t result;

	if (code)
		return code;
	code = write_and_seal(here, zone, error);
	if (!code)
		code = remote_map(stop, zone->header.code, zone->header.code_size, PROT_READ | PROT_EXEC, MAP_SHARED, there,
				  error);
	close(here);
	remote(stop, SYS_close, (uint64_t)there, 0, 0, 0, 0, "close", &result, NULL);
	if (code)
		return code;
	zone->mapped = true;
	code = remote_map(stop, zone->header.data, zone->header.data_size, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			  error);
	zone->data_mapped = !code;
	if (!code && fay_stop_write(stop, zone->header.data, zone->data, data))
		code = fay_error_set(error, FAY_E_INTERNAL, "process %d: cannot write its memory", (int)stop->pid);
	return code;
}

/* Guarantee: what runs is what was verified. Read from the target's own mapping, slots as the verifier hashed them. */
static int check_image(struct fay_session *session, struct fay_stop *stop, const struct fay_zone_plan *zone,
		       struct fay_error *error)
{
	const struct fay_layout *layout = &session->verdict->layout;
	uint8_t *bytes = malloc(layout->size ? layout->size : 1), digest[32];
	int code = 0;

	if (!bytes)
		return fay_error_set(error, FAY_E_LIMIT, "out of memory");
	if (fay_stop_read(stop, zone->image, bytes, layout->size))
		code = fay_error_set(error, FAY_E_INTERNAL, "process %d: cannot read the image back", (int)stop->pid);
	for (uint32_t i = 0; i < layout->slot_count && !code; i++)
		memset(bytes + layout->slots[i].offset, 0, 8);
	if (!code) {
		fay_sha256(bytes, layout->size, digest);
		if (memcmp(digest, layout->sha256, sizeof(digest)))
			code = fay_error_set(error, FAY_E_REFUSED, "the image in process %d is not the one that was verified (SHA-256 differs); nothing was patched", (int)stop->pid);
	}
	free(bytes);
	return code;
}

int fay_session_prepare(struct fay_session *session, struct fay_error *error)
{
	int code = 0;

	for (size_t i = 0; i < session->point_count && !code; i++)
		if (session->points[i].usable)
			code = fay_text_want(&session->text, session->points[i].site, session->points[i].before_size, error);
	for (size_t i = 0; i < session->back_count && !code; i++)
		code = fay_text_want(&session->text, session->backs[i].patch.site, FAY_JUMP_BYTES, error);
	return code ? code : fay_text_ready(&session->text, error);
}

static bool sites_unchanged(struct fay_session *session, const struct fay_stop *stop)
{
	fay_text_read(&session->text, stop->memory);
	for (size_t i = 0; i < session->point_count; i++) {
		const struct fay_point *point = &session->points[i];
		const uint8_t *now;

		if (!point->usable)
			continue;
		now = fay_text_at(&session->text, point->site, point->before_size);
		if (!now || memcmp(now, point->before, point->before_size))
			return false;
	}
	for (size_t i = 0; i < session->back_count; i++) {
		const uint8_t *now = fay_text_at(&session->text, session->backs[i].patch.site, FAY_JUMP_BYTES);

		if (!now || memcmp(now, session->backs[i].patch.original, FAY_JUMP_BYTES))
			return false;
	}
	return true;
}

/* The usable point whose overwritten bytes, but for the first, contain the address. */
static struct fay_point *point_around(const struct fay_session *session, uint64_t address)
{
	size_t low = 0, high = session->point_count, zone = 0;

	/* Most words of a stack are no addresses of the code at all. */
	while (zone < session->zone_count && address - session->zones[zone].low >= session->zones[zone].high - session->zones[zone].low)
		zone++;
	if (zone == session->zone_count)
		return NULL;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		const struct fay_point *point = &session->points[middle];

		/* Unusable points may have no site; their function's address orders them all the same. */
		if (point->function.address + 4 + FAY_JUMP_BYTES <= address)
			low = middle + 1;
		else
			high = middle;
	}
	/* A marker's site may be before it. */
	for (; low < session->point_count && session->points[low].function.address < address + FAY_DISPLACED_MAX; low++) {
		struct fay_point *point = &session->points[low];

		if (point->usable && address > point->site && address < point->site + FAY_JUMP_BYTES)
			return point;
	}
	return NULL;
}

/* Notes the places; stops the search only when there is no more room for them. */
static bool is_interrupted(void *context, uint64_t word)
{
	struct fay_session *session = context;
	const struct fay_point *point = point_around(session, word);

	for (size_t i = 0; point && i < session->held_count; i++)
		if (session->held[i] == point->site)
			return false;
	if (point && session->held_count < FAY_HELD_MAX)
		session->held[session->held_count++] = point->site;
	return session->held_count == FAY_HELD_MAX;
}

/* Where a thread at `rip` goes on once the jumps are written. False: it is between two instructions as we know them. */
static bool moved_rip(const struct fay_session *session, uint64_t rip, uint64_t *to)
{
	const struct fay_point *point = point_around(session, rip);

	*to = rip;
	if (!point)
		return true;
	for (unsigned k = 0; k < point->displaced.count; k++)
		if (rip == point->site + point->displaced.map[k].from) {
			*to = point->copy + point->displaced.map[k].to;
			return true;
		}
	return false;
}

/*
 * Moves threads that are inside a displaced instruction sequence to its copy, or only says if that can be done. Nothing can fail after the
 * move, and no system call is run in the target: those put the registers back, and undo() would unmap the copy under them.
 */
static bool move_threads(const struct fay_session *session, struct fay_stop *stop, bool really)
{
	for (size_t i = 0; i < stop->count; i++) {
		struct fay_stopped_thread *thread = &stop->threads[i];
		uint64_t to;

		if (thread->gone)
			continue;
		if (!moved_rip(session, thread->registers.rip, &to))
			return false;
		if (really && to != thread->registers.rip) {
			thread->registers.rip = to;
			thread->dirty = true;
		}
	}
	return true;
}

static int patch_all(struct fay_session *session, struct fay_stop *stop, struct fay_error *error)
{
	for (size_t i = 0; i < session->point_count; i++) {
		struct fay_point *point = &session->points[i];
		uint8_t jump[FAY_JUMP_BYTES];

		if (!point->usable)
			continue;
		fay_patch_encode(&point->patch, jump);
		if (!fay_text_change(&session->text, point->site, jump, sizeof(jump)))
			return fay_error_set(error, FAY_E_INTERNAL, "process %d: no bytes of %s!%s", (int)stop->pid, point->function.module, point->function.name);
	}
	for (size_t i = 0; i < session->back_count; i++) {
		const struct fay_zone_patch *patch = &session->backs[i].patch;
		uint8_t jump[FAY_JUMP_BYTES];

		fay_patch_encode(patch, jump);
		if (patch->trampoline && !fay_text_change(&session->text, patch->site, jump, sizeof(jump)))
			return fay_error_set(error, FAY_E_INTERNAL, "process %d: no bytes of a jump back", (int)stop->pid);
	}
	if (fay_text_write(&session->text, stop->memory) == 0)
		return 0;
	fay_error_set(error, FAY_E_REFUSED, "process %d: cannot write its code: %s", (int)stop->pid, strerror(errno));
	/* Every one: which pages were written is not known, and a site across two pages may be half written. */
	for (size_t i = 0; i < session->point_count; i++)
		if (session->points[i].usable)
			fay_stop_write(stop, session->points[i].site, session->points[i].before, FAY_JUMP_BYTES);
	for (size_t i = 0; i < session->back_count; i++)
		fay_stop_write(stop, session->backs[i].patch.site, session->backs[i].patch.original, FAY_JUMP_BYTES);
	return FAY_E_REFUSED;
}

/* The zones' records are written last: a mark without its increment could take away somebody else's. */
static int count_markers(struct fay_session *session, struct fay_stop *stop, struct fay_error *error)
{
	for (size_t z = 0; z < session->zone_count; z++) {
		struct fay_zone_plan *zone = &session->zones[z];
		uint8_t *at = zone->data + sizeof(zone->header);

		for (uint32_t i = 0; i < zone->header.patch_count; i++, at += sizeof(struct fay_zone_patch)) {
			struct fay_zone_patch *patch = (void *)at;
			uint64_t there = zone->header.data + (uint64_t)(at - zone->data);

			if (!patch->semaphore)
				continue;
			if (!fay_semaphore_add(stop, patch->semaphore, 1))
				return fay_error_set(error, FAY_E_REFUSED, "process %d: a marker's semaphore at %#lx cannot be counted up", (int)stop->pid,
						     (unsigned long)patch->semaphore);
			patch->counted = 1;
			fay_stop_write(stop, there, patch, sizeof(*patch));
		}
	}
	return 0;
}

static void uncount_markers(struct fay_session *session, struct fay_stop *stop)
{
	for (size_t z = 0; z < session->zone_count; z++) {
		struct fay_zone_patch *patches = (void *)(session->zones[z].data + sizeof(struct fay_zone_header));

		for (uint32_t i = 0; i < session->zones[z].header.patch_count; i++)
			if (patches[i].counted) {
				fay_semaphore_add(stop, patches[i].semaphore, -1);
				patches[i].counted = 0;
			}
	}
}

static void unmap_there(struct fay_stop *stop, uint64_t address, uint64_t size)
{
	int64_t result;

	remote(stop, SYS_munmap, address, size, 0, 0, 0, "munmap", &result, NULL);
}

/* Unmaps what was mapped and no byte more: what failed may have failed because the program's own memory lies there. */
static void undo(struct fay_session *session, struct fay_stop *stop)
{
	for (size_t i = 0; i < session->zone_count; i++) {
		struct fay_zone_plan *zone = &session->zones[i];

		if (zone->mapped)
			unmap_there(stop, zone->header.code, zone->header.code_size);
		if (zone->data_mapped)
			unmap_there(stop, zone->header.data, zone->header.data_size);
		zone->mapped = zone->data_mapped = false;
	}
	if (session->shm_mapped)
		unmap_there(stop, session->shm_address, session->shm_size);
	if (session->shm)
		munmap(session->shm, session->shm_size);
	session->shm = NULL;
	if (session->table_mapped)
		unmap_there(stop, session->table_address, FAY_THREAD_TABLE_BYTES);
	if (session->calls_mapped)
		unmap_there(stop, session->calls_address, session->calls_size);
	session->shm_mapped = session->table_mapped = session->calls_mapped = false;
}

/* glibc keeps the thread id in the thread control block; true if it does so in every thread of this target. */
static bool tcb_has_tid(const struct fay_session *session, const struct fay_stop *stop)
{
	for (size_t i = 0; i < stop->count; i++) {
		const struct fay_stopped_thread *thread = &stop->threads[i];
		uint32_t tid;

		if (thread->gone || !thread->stopped)
			continue;
		if (fay_stop_read(stop, thread->registers.fs_base + (uint64_t)session->tid_offset, &tid, 4) ||
		    tid != (uint32_t)fay_inner_id(session->pid, thread->tid))
			return false;
	}
	return true;
}

/* The ABI's thread pointer: the word at fs:0 is the fs base. Not so before the dynamic linker has run, or in some runtimes without libc. */
static bool have_thread_pointer(const struct fay_stop *stop)
{
	for (size_t i = 0; i < stop->count; i++) {
		const struct fay_stopped_thread *thread = &stop->threads[i];
		uint64_t self;

		if (thread->gone || !thread->stopped)
			continue;
		if (fay_stop_read(stop, thread->registers.fs_base, &self, 8) || self != thread->registers.fs_base)
			return false;
	}
	return true;
}

static bool wants_tid(const struct fay_session *session)
{
	for (uint32_t i = 0; i < session->verdict->probe_count; i++)
		if (session->verdict->probes[i].event_fields & FAY_FIELD_TID)
			return true;
	return false;
}

int fay_session_install(struct fay_session *session, struct fay_stop *stop, struct fay_error *error)
{
	int code;

	if (!sites_unchanged(session, stop)) {
		fay_error_set(error, FAY_E_LIMIT, "process %d: its code keeps changing", (int)stop->pid);
		return -1;
	}
	if (session->thread_pointer && !have_thread_pointer(stop)) {
		session->thread_pointer = false;
		fay_error_set(error, FAY_E_INTERNAL, "process %d: fs:0 is not the thread pointer", (int)stop->pid);
		return -1;
	}
	if (session->tid_offset >= 0 && wants_tid(session) && !tcb_has_tid(session, stop)) {
		session->tid_offset = -1;
		fay_error_set(error, FAY_E_INTERNAL, "process %d: no thread id in the control block", (int)stop->pid);
		return -1;
	}
	session->held_count = 0;
	if (fay_stop_visit_words(stop, is_interrupted, session) || session->held_count) {
		fay_error_set(error, FAY_E_LIMIT, "process %d: a thread stays interrupted by a signal within a function's first instructions", (int)stop->pid);
		return -1;
	}
	code = install_table(session, stop, error);
	if (!code)
		code = install_state(session, stop, error);
	if (!code)
		code = install_calls(session, stop, error);
	for (size_t i = 0; i < session->zone_count && !code; i++) {
		code = install_zone(session, stop, &session->zones[i], error);
		if (!code)
			code = check_image(session, stop, &session->zones[i], error);
	}
	if (!code && !move_threads(session, stop, false)) {
		fay_error_set(error, FAY_E_LIMIT, "process %d: a thread stays inside the bytes to patch", (int)stop->pid);
		code = -1;
	}
	if (!code)
		code = count_markers(session, stop, error);
	if (!code)
		code = patch_all(session, stop, error);
	if (code) {
		uncount_markers(session, stop);
		undo(session, stop);
	} else
		move_threads(session, stop, true);
	return code;
}
