/* SPDX-License-Identifier: MIT */
/*
 * Whether the fay that made a session still runs, asked from anywhere.
 * docs/decisions/0016-owners.md.
 *
 * In the owner's own PID namespace its number and its start say it. In any other that number names
 * nobody, or somebody else. There a lock says it: the owner's mapping of the session's state is of
 * an open file of its own, which holds a write lock on the file (an open file description's,
 * F_OFD_SETLK). It goes with the mapping, so when the owner unmaps it, or has ended, however that
 * was; a keeper shares the owner's memory and keeps it until its transaction is over; a child that
 * is forked does not get the mapping. The traced program maps the same file, and through that
 * mapping (/proc/PID/map_files) whoever may look finds the file and asks for the lock. Who may not
 * (that takes CAP_SYS_ADMIN or CAP_CHECKPOINT_RESTORE) reads /proc/locks, which shows such locks in
 * all PID namespaces; but a lock that is not found there may have been passed over.
 *
 * Whether a program or its forked children still have a session's code is told in the same way: by
 * a lock that the program's open file of the code holds.
 *
 * The program can write over what the header says and can lock the file once its owner is gone. It
 * can so keep a leftover for itself, or end its own trace, nothing else.
 */
#include "zone.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "loader/process/process.h"

#define NANOSECONDS 1000000000

/* Whether /proc shows this process by the number that it has for itself: it may be that of a PID
 * namespace above. */
static bool proc_is_ours(void)
{
	char line[256];
	bool ours = true; /* kernels without NSpid have one number for each process */
	FILE *file = fopen("/proc/self/status", "re");

	if (!file)
		return false;
	while (fgets(line, sizeof(line), file))
		if (!strncmp(line, "NSpid:\t", 7))
			ours = !strchr(line + 7, '\t');
	fclose(file);
	return ours;
}

static void own_pid_namespace(uint64_t space[2])
{
	struct stat status;

	space[0] = space[1] = 0;
	if (stat("/proc/self/ns/pid", &status) == 0) {
		space[0] = status.st_dev;
		space[1] = status.st_ino;
	}
}

/* By how many clock ticks /proc shows starts of processes later to this process than to those of
 * the first time namespace. False: not known. */
static bool ticks_ahead(int64_t *ticks)
{
	const int64_t rate = sysconf(_SC_CLK_TCK);
	struct stat own, children;
	int64_t seconds, nanoseconds;
	char line[128];
	FILE *file;

	*ticks = 0;
	if (stat("/proc/self/ns/time", &own))
		return errno == ENOENT; /* there are none */
	/* The offsets are those of the namespace of children. */
	if (stat("/proc/self/ns/time_for_children", &children) || own.st_ino != children.st_ino)
		return false;
	file = fopen("/proc/self/timens_offsets", "re");
	if (!file)
		return false;
	while (fgets(line, sizeof(line), file))
		if (sscanf(line, "boottime %" SCNd64 " %" SCNd64, &seconds, &nanoseconds) == 2)
			*ticks = seconds * rate + nanoseconds * rate / NANOSECONDS;
	fclose(file);
	return true;
}

/* Nothing of it changes while a process lives: it is asked once, and by a forked child again. */
void fay_owner_self(struct fay_owner *owner)
{
	static struct fay_owner self;
	int64_t ahead;

	if (self.pid != (uint32_t)getpid()) {
		memset(&self, 0, sizeof(self));
		self.pid = (uint32_t)getpid();
		own_pid_namespace(self.pid_namespace);
		if (proc_is_ours() && ticks_ahead(&ahead)) {
			uint64_t start = fay_process_start(getpid());

			self.start = start ? start - (uint64_t)ahead : 0;
		}
	}
	*owner = self;
}

bool fay_owner_is_near(const struct fay_owner *owner)
{
	uint64_t space[2];

	own_pid_namespace(space);
	return space[0] == owner->pid_namespace[0] && space[1] == owner->pid_namespace[1] &&
	       proc_is_ours();
}

/* In the owner's PID namespace, or one that has taken the number of a namespace that is gone, and
 * the owner with it. */
static enum fay_owner_state ask_number(const struct fay_owner *owner)
{
	pid_t pid = (pid_t)owner->pid;
	uint64_t start = fay_process_start(pid), apart;
	int64_t ahead;

	if (pid <= 0)
		return FAY_OWNER_UNKNOWN;
	if (!start) {
		char state = fay_thread_state(pid, pid);

		if (state == 'Z' || state == 'X')
			return FAY_OWNER_DEAD;
		/* /proc may be mounted so that it hides other users' processes. */
		return !state && kill(pid, 0) && errno == ESRCH ? FAY_OWNER_DEAD
								: FAY_OWNER_UNKNOWN;
	}
	if (!owner->start || !ticks_ahead(&ahead))
		return FAY_OWNER_UNKNOWN;
	apart = start - (uint64_t)ahead - owner->start;
	return apart + 1 <= 2 ? FAY_OWNER_LIVES : FAY_OWNER_DEAD; /* offsets are no whole ticks */
}

static int open_anew(int fd, int flags)
{
	char path[40];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return open(path, flags | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
}

void *fay_owner_map(int fd, size_t size, bool *locked)
{
	struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
	void *memory;
	int own;

	/* The open file that is given is the program's own, too: a lock of it would not go with
	 * us. */
	own = open_anew(fd, O_RDWR);
	*locked = own >= 0 && fcntl(own, F_OFD_SETLK, &lock) == 0;
	if (own >= 0 && !*locked && (errno == EAGAIN || errno == EACCES)) {
		close(own);
		errno = EBUSY;
		return MAP_FAILED;
	}
	memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE,
		      own >= 0 ? own : fd, 0);
	if (memory != MAP_FAILED && madvise(memory, size, MADV_DONTFORK))
		*locked = false;
	if (own >= 0)
		close(own);
	return memory;
}

/* A lock of the target's own open file goes when that does: with the last mapping that the target,
 * or a child that was forked with it, has. */
int fay_users_watch(int fd)
{
	struct flock lock = { .l_type = F_RDLCK, .l_whence = SEEK_SET };

	return fcntl(fd, F_OFD_SETLK, &lock) ? -1 : open_anew(fd, O_RDONLY);
}

bool fay_users_any(int watch)
{
	struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };

	return fcntl(watch, F_OFD_GETLK, &lock) || lock.l_type != F_UNLCK;
}

/* The file that is mapped there. A plain one in memory: to open anything else could have effects.
 * -1: it cannot be looked at. */
static int open_mapped(pid_t pid, const struct fay_map *map)
{
	struct stat status;
	struct statfs system;
	char path[80];
	int file = -1, place;

	snprintf(path, sizeof(path), "/proc/%d/map_files/%" PRIx64 "-%" PRIx64,
		 (int)fay_process_thread(pid), map->start, map->end);
	place = open(path, O_PATH | O_CLOEXEC);
	if (place < 0)
		return -1;
	if (!fstat(place, &status) && S_ISREG(status.st_mode) && status.st_ino == map->inode &&
	    !fstatfs(place, &system) && system.f_type == TMPFS_MAGIC)
		file = open_anew(place, O_RDONLY);
	close(place);
	return file;
}

static enum fay_owner_state ask_lock(pid_t pid, const struct fay_map *map)
{
	struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
	int file = open_mapped(pid, map), failed;

	if (file < 0)
		return FAY_OWNER_UNKNOWN;
	failed = fcntl(file, F_OFD_GETLK, &lock);
	close(file);
	if (failed)
		return FAY_OWNER_UNKNOWN;
	return lock.l_type == F_UNLCK ? FAY_OWNER_DEAD : FAY_OWNER_LIVES;
}

/* "1: OFDLCK ADVISORY WRITE -1 00:01:1028 0 EOF" (proc(5)). The list is read in pieces and may
 * change between two of them: what is not found may be there. */
static enum fay_owner_state ask_list_of_locks(const struct fay_map *map)
{
	enum fay_owner_state found = FAY_OWNER_UNKNOWN;
	uint64_t major, minor, inode;
	char line[256];
	FILE *file = fopen("/proc/locks", "re");

	while (file && found == FAY_OWNER_UNKNOWN && fgets(line, sizeof(line), file))
		if (sscanf(line, "%*s OFDLCK %*s %*s %*s %" SCNx64 ":%" SCNx64 ":%" SCNu64, &major,
			   &minor, &inode) == 3 &&
		    map->device == (major << 32 | minor) && map->inode == inode)
			found = FAY_OWNER_LIVES;
	if (file)
		fclose(file);
	return found;
}

enum fay_owner_state fay_owner_ask(pid_t pid, const struct fay_maps *maps,
				   const struct fay_owner *owner, uint64_t state,
				   uint64_t state_size)
{
	enum fay_owner_state answer =
		fay_owner_is_near(owner) ? ask_number(owner) : FAY_OWNER_UNKNOWN;
	const struct fay_map *map = fay_maps_find(maps, state);

	if (answer != FAY_OWNER_UNKNOWN)
		return answer;
	if (!state_size) /* its removal has gone so far that nobody can use it */
		return FAY_OWNER_DEAD;
	if (!owner->locked || !map || map->start != state ||
	    strncmp(map->name, "/memfd:" FAY_STATE_MEMFD, sizeof("/memfd:" FAY_STATE_MEMFD) - 1))
		return FAY_OWNER_UNKNOWN;
	answer = ask_lock(pid, map);
	return answer != FAY_OWNER_UNKNOWN ? answer : ask_list_of_locks(map);
}
