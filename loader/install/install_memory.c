/* SPDX-License-Identifier: MIT */
/* What a session has mapped in its target: thread table, state, records of calls, code. By system
 * calls that the stopped target runs. */
#include "install_private.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "loader/process/process.h"
#include "verifier/image/sha256.h"

#ifndef MFD_EXEC
#define MFD_EXEC 0x10u
#endif
#ifndef F_SEAL_EXEC
#define F_SEAL_EXEC 0x20
#endif

static int remote(struct fay_stop *stop, long number, uint64_t a, uint64_t b, uint64_t c,
		  uint64_t d, uint64_t e, const char *what, int64_t *result,
		  struct fay_error *error)
{
	uint64_t arguments[6] = { a, b, c, d, e, 0 };
	int code = fay_stop_syscall(stop, number, arguments, result, error);

	if (code)
		return code;
	stop->no_room |= *result == -ENOMEM;
	if (*result < 0 && *result > -4096)
		return fay_error_set(error, FAY_E_REFUSED, "process %d: %s failed there: %s",
				     (int)stop->pid, what, strerror((int)-*result));
	return 0;
}

static int remote_map(struct fay_stop *stop, uint64_t address, uint64_t size, int protection,
		      int flags, int fd, struct fay_error *error)
{
	int64_t result = 0;
	int code = remote(stop, SYS_mmap, address, size, (uint64_t)protection,
			  (uint64_t)(flags | MAP_FIXED_NOREPLACE), (uint64_t)(int64_t)fd, "mmap",
			  &result, error);

	/* the program mapped something there since the plan was made */
	if (code && result == -EEXIST) {
		fay_error_set(error, FAY_E_LIMIT,
			      "process %d: memory at the chosen address was taken", (int)stop->pid);
		return -1;
	}
	if (code)
		return code;
	if ((uint64_t)result != address) { /* kernels before 4.17 ignore MAP_FIXED_NOREPLACE */
		remote(stop, SYS_munmap, (uint64_t)result, size, 0, 0, 0, "munmap", &result, NULL);
		return fay_error_set(error, FAY_E_REFUSED,
				     "process %d: memory at the chosen address was taken",
				     (int)stop->pid);
	}
	return 0;
}

/*
 * The target's file descriptor, here: the open file itself, not its path opened anew, which would
 * give this process's rights to whatever file the number means by then. The target is stopped, but
 * a process may share its descriptors (CLONE_FILES) and run.
 */
static int take_descriptor(pid_t pid, int there)
{
	int process = (int)syscall(SYS_pidfd_open, pid, 0), here, saved;

	if (process < 0)
		return -1;
	here = (int)syscall(SYS_pidfd_getfd, process, there, 0);
	saved = errno;
	close(process);
	errno = saved;
	return here;
}

/* New shared memory: without seals, which no other file can be, and not of huge pages, which may be
 * missing at any access. */
static bool is_memfd(int fd)
{
	struct statfs system;

	return (fcntl(fd, F_GET_SEALS) & ~F_SEAL_EXEC) == 0 && !fstatfs(fd, &system) &&
	       system.f_type == TMPFS_MAGIC;
}

/* A memfd in the target, taken over here. `scratch` is writable memory there for its name. */
static int remote_memfd(struct fay_stop *stop, uint64_t scratch, const char *name, uint32_t flags,
			int *there, int *here, struct fay_error *error)
{
	char zero[32] = "";
	int64_t result = 0;
	int code;

	flags |= MFD_CLOEXEC | MFD_ALLOW_SEALING;
	if (fay_stop_write(stop, scratch, name, strlen(name) + 1))
		return fay_error_set(error, FAY_E_INTERNAL, "process %d: cannot write its memory",
				     (int)stop->pid);
	code = remote(stop, SYS_memfd_create, scratch, flags, 0, 0, 0, "memfd_create", &result,
		      error);
	if (code && result == -EINVAL && flags & MFD_EXEC) /* before Linux 6.3 */
		code = remote(stop, SYS_memfd_create, scratch, flags & ~MFD_EXEC, 0, 0, 0,
			      "memfd_create", &result, error);
	fay_stop_write(stop, scratch, zero, strlen(name) + 1);
	if (code)
		return code;
	*there = (int)result;
	*here = take_descriptor(stop->pid, *there);
	if (*here >= 0 && is_memfd(*here))
		return 0;
	code = fay_error_set(error, FAY_E_REFUSED, "process %d: taking over a memfd made there: %s",
			     (int)stop->pid,
			     *here < 0 ? strerror(errno) : "it was replaced by another file");
	remote(stop, SYS_close, (uint64_t)*there, 0, 0, 0, 0, "close", &result, NULL);
	if (*here >= 0)
		close(*here);
	return code;
}

static int install_table(struct fay_install *install, struct fay_stop *stop,
			 struct fay_error *error)
{
	const uint32_t process = FAY_PROCESS_TRACED;
	int64_t result;
	int code = remote_map(stop, install->plan->table_address, FAY_THREAD_TABLE_BYTES,
			      PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, error);

	if (code)
		return code;
	install->table_mapped = true;
	/* the table would be locked, too */
	install->locks = fay_thread_field(stop->pid, stop->pid, "VmLck:") != 0;
	if (fay_stop_write(stop, install->plan->table_address + FAY_PROCESS_AT, &process,
			   sizeof(process)))
		return fay_error_set(error, FAY_E_INTERNAL, "process %d: cannot write its memory",
				     (int)stop->pid);
	return remote(stop, SYS_madvise, install->plan->table_address, FAY_THREAD_TABLE_BYTES,
		      MADV_WIPEONFORK, 0, 0, "madvise(MADV_WIPEONFORK)", &result, error);
}

/* The size is sealed: memory that the target could cut off would be SIGBUS here. */
static int map_state_here(struct fay_install *install, int fd, struct fay_error *error)
{
	struct stat status;
	void *shm;

	if (ftruncate(fd, (off_t)install->plan->shm_size))
		return fay_error_set(error, FAY_E_LIMIT, "state of %zu bytes: %s",
				     install->plan->shm_size, strerror(errno));
	if (fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) || fstat(fd, &status))
		return fay_error_set(error, FAY_E_INTERNAL, "sealing the state: %s",
				     strerror(errno));
	if ((size_t)status.st_size != install->plan->shm_size)
		return fay_error_set(error, FAY_E_REFUSED,
				     "process %d: the state's size was changed there",
				     (int)install->plan->pid);
	shm = fay_owner_map(fd, install->plan->shm_size, &install->owner_locked);
	if (shm == MAP_FAILED && errno == EBUSY)
		return fay_error_set(error, FAY_E_REFUSED,
				     "process %d: another process has locked the state",
				     (int)install->plan->pid);
	if (shm == MAP_FAILED)
		return fay_error_set(error, FAY_E_LIMIT, "mapping state of %zu bytes: %s",
				     install->plan->shm_size, strerror(errno));
	install->shm = shm;
	*install->shm = install->plan->geometry;
	if (install->plan->options.global)
		memcpy((char *)shm + install->plan->geometry.global_offset,
		       install->plan->options.global,
		       install->plan->options.global_size < install->plan->geometry.global_size
			       ? install->plan->options.global_size
			       : install->plan->geometry.global_size);
	return 0;
}

static int first_access(const struct fay_install *install)
{
	return install->locks ? PROT_NONE : PROT_READ | PROT_WRITE;
}

/*
 * In a program that called mlockall(MCL_FUTURE) the state is mapped without access and opened up
 * afterwards: mmap of accessible memory would make all of its pages present, gigabytes of them,
 * before it returned. mprotect does so for private memory only.
 */
static int map_state_there(struct fay_install *install, struct fay_stop *stop, int fd,
			   struct fay_error *error)
{
	int64_t result;
	int code = remote_map(stop, install->plan->shm_address, install->plan->shm_size,
			      first_access(install), MAP_SHARED | MAP_NORESERVE, fd, error);

	if (code)
		return code;
	install->shm_mapped = true;
	if (!install->locks)
		return 0;
	return remote(stop, SYS_mprotect, install->plan->shm_address, install->plan->shm_size,
		      PROT_READ | PROT_WRITE, 0, 0, "mprotect", &result, error);
}

static int install_state(struct fay_install *install, struct fay_stop *stop,
			 struct fay_error *error)
{
	int there, here,
		code = remote_memfd(stop, install->plan->table_address, FAY_STATE_MEMFD, 0, &there,
				    &here, error);
	int64_t result;

	if (code)
		return code;
	install->plan->geometry.target_pid =
		(uint32_t)fay_inner_id(install->plan->pid, install->plan->pid);
	install->plan->geometry.process_last = FAY_PROCESS_TRACED;
	code = map_state_here(install, here, error);
	if (!code)
		code = map_state_there(install, stop, there, error);
	close(here);
	remote(stop, SYS_close, (uint64_t)there, 0, 0, 0, 0, "close", &result, NULL);
	return code;
}

/*
 * Private memory: each process forked from this one has its own calls under way. A slot's part is
 * touched when a thread takes the slot. The program may have asked for all its memory to be
 * present, now and in future (mlockall): not this.
 */
static int install_records(struct fay_install *install, struct fay_stop *stop,
			   struct fay_error *error)
{
	uint64_t address = install->plan->records_address, size = install->plan->records_size;
	int64_t result;
	int code;

	if (!size)
		return 0;
	code = remote_map(stop, address, size, first_access(install),
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, error);
	if (code)
		return code;
	install->records_mapped = true;
	if (!install->locks)
		return 0;
	code = remote(stop, SYS_munlock, address, size, 0, 0, 0, "munlock", &result, error);
	return code ? code
		    : remote(stop, SYS_mprotect, address, size, PROT_READ | PROT_WRITE, 0, 0,
			     "mprotect", &result, error);
}

static int write_and_seal(int fd, const struct fay_zone_plan *zone, struct fay_error *error)
{
	const int seals = F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

	if (ftruncate(fd, (off_t)zone->header.code_size) ||
	    pwrite(fd, zone->code, zone->code_size, 0) != (ssize_t)zone->code_size)
		return fay_error_set(error, FAY_E_LIMIT, "writing %zu bytes of code: %s",
				     zone->code_size, strerror(errno));
	if (fcntl(fd, F_ADD_SEALS, seals))
		return fay_error_set(error, FAY_E_INTERNAL, "sealing the code: %s",
				     strerror(errno));
	return 0;
}

static int install_zone(struct fay_install *install, struct fay_stop *stop,
			struct fay_zone_plan *zone, struct fay_error *error)
{
	size_t data =
		sizeof(zone->header) + zone->header.patch_count * sizeof(struct fay_zone_patch);
	int there, here,
		code = remote_memfd(stop, install->plan->table_address, FAY_ZONE_MEMFD, MFD_EXEC,
				    &there, &here, error);
	int64_t result;

	if (code)
		return code;
	code = write_and_seal(here, zone, error);
	if (!code)
		code = remote_map(stop, zone->header.code, zone->header.code_size,
				  PROT_READ | PROT_EXEC, MAP_SHARED, there, error);
	if (!code && install->users < 0)
		install->users = fay_users_watch(here);
	close(here);
	remote(stop, SYS_close, (uint64_t)there, 0, 0, 0, 0, "close", &result, NULL);
	if (code)
		return code;
	zone->mapped = true;
	zone->header.owner.locked = install->owner_locked;
	memcpy(zone->data, &zone->header, sizeof(zone->header));
	code = remote_map(stop, zone->header.data, zone->header.data_size, PROT_READ,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, error);
	zone->data_mapped = !code;
	if (!code && fay_stop_write(stop, zone->header.data, zone->data, data))
		code = fay_error_set(error, FAY_E_INTERNAL, "process %d: cannot write its memory",
				     (int)stop->pid);
	return code;
}

/* Guarantee: what runs is what was verified. Read from the target's own mapping, slots as the
 * verifier hashed them. */
static int check_image(struct fay_install *install, struct fay_stop *stop,
		       const struct fay_zone_plan *zone, struct fay_error *error)
{
	const struct fay_layout *layout = &install->plan->verdict->layout;
	uint8_t *bytes = malloc(layout->size ? layout->size : 1), digest[32];
	int code = 0;

	if (!bytes)
		return fay_error_set(error, FAY_E_LIMIT, "out of memory");
	if (fay_stop_read(stop, zone->image, bytes, layout->size))
		code = fay_error_set(error, FAY_E_INTERNAL,
				     "process %d: cannot read the image back", (int)stop->pid);
	for (uint32_t i = 0; i < layout->slot_count && !code; i++)
		memset(bytes + layout->slots[i].offset, 0, 8);
	if (!code) {
		fay_sha256(bytes, layout->size, digest);
		if (memcmp(digest, layout->sha256, sizeof(digest)))
			code = fay_error_set(error, FAY_E_REFUSED,
					     "the image in process %d is not the one that was "
					     "verified (SHA-256 differs); nothing was patched",
					     (int)stop->pid);
	}
	free(bytes);
	return code;
}

int fay_install_memory(struct fay_install *install, struct fay_stop *stop, struct fay_error *error)
{
	int code = install_table(install, stop, error);

	if (!code)
		code = install_state(install, stop, error);
	if (!code)
		code = install_records(install, stop, error);
	for (size_t i = 0; i < install->plan->zone_count && !code; i++) {
		code = install_zone(install, stop, &install->plan->zones[i], error);
		if (!code)
			code = check_image(install, stop, &install->plan->zones[i], error);
	}
	return code;
}

/* *mapped stays set if it could not be unmapped. */
static void unmap_there(struct fay_stop *stop, uint64_t address, uint64_t size, bool *mapped)
{
	int64_t result;

	if (*mapped)
		*mapped = remote(stop, SYS_munmap, address, size, 0, 0, 0, "munmap", &result,
				 NULL) != 0;
}

/*
 * Unmaps what was mapped and no byte more: what failed may have failed because the program's own
 * memory lies there. The zones first: as long as one is there, it says where all the rest is, and a
 * later fay can remove it.
 */
bool fay_install_undo(struct fay_install *install, struct fay_stop *stop)
{
	bool left = false;

	for (size_t i = 0; i < install->plan->zone_count; i++) {
		struct fay_zone_plan *zone = &install->plan->zones[i];

		unmap_there(stop, zone->header.code, zone->header.code_size, &zone->mapped);
		if (!zone->mapped)
			unmap_there(stop, zone->header.data, zone->header.data_size,
				    &zone->data_mapped);
		left |= zone->mapped || zone->data_mapped;
	}
	/* Not before: from now on the session looks left behind, and is not to be removed by its
	 * number when another attempt has installed it. */
	if (install->shm)
		munmap(install->shm, install->plan->shm_size);
	install->shm = NULL;
	if (install->users >= 0)
		close(install->users);
	install->users = -1;
	if (left)
		return false;
	unmap_there(stop, install->plan->shm_address, install->plan->shm_size,
		    &install->shm_mapped);
	unmap_there(stop, install->plan->table_address, FAY_THREAD_TABLE_BYTES,
		    &install->table_mapped);
	unmap_there(stop, install->plan->records_address, install->plan->records_size,
		    &install->records_mapped);
	return !install->shm_mapped && !install->table_mapped && !install->records_mapped;
}
