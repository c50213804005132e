/* SPDX-License-Identifier: MIT */
/*
 * The modules of a process: its executable file mappings, from /proc/PID/maps.
 *
 * Where a module lies: a mapping of file offset f at address a that the PT_LOAD (v, o) covers has
 * bias a - f - (v - o), also when mprotect has split the mapping. One file mapped twice (dlmopen)
 * has two biases; both are found. Files are opened through /proc/PID/map_files, which reaches the
 * very file that is mapped, deleted or replaced or in another mount namespace; where that is not
 * permitted (CAP_SYS_ADMIN or CAP_CHECKPOINT_RESTORE), through /proc/PID/root and the inode is
 * compared.
 *
 * What a module is called: docs/internals/symbols.md. The kernel's vdso, anonymous memory and
 * mappings that are not ELF are no modules.
 */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "loader/process/process.h"
#include "target.h"

#define READ_BYTES 16384u /* of the table of mappings, at once */

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');
	return slash ? slash + 1 : path;
}

static bool add_name(struct fay_module *module, const char *name, size_t length)
{
	for (size_t i = 0; i < module->name_count; i++)
		if (strlen(module->names[i]) == length && !memcmp(module->names[i], name, length))
			return true;
	if (!length || module->name_count == FAY_MODULE_MAX_NAMES)
		return true;
	char *copy = strndup(name, length);
	if (!copy)
		return false;
	module->names[module->name_count++] = copy;
	module->name = module->names[0];
	return true;
}

/* The place of ".so" in a shared object's name: followed by the end or a version. */
static const char *find_so(const char *base)
{
	for (const char *at = strstr(base, ".so"); at; at = strstr(at + 1, ".so"))
		if (at != base && (!at[3] || (at[3] == '.' && isdigit((unsigned char)at[4]))))
			return at;
	return NULL;
}

bool fay_module_add_names_of(struct fay_module *module, const char *path)
{
	const char *base = base_name(path);
	const char *so = find_so(base);
	/* musl's C library has the dynamic linker's name, but where that is a symbolic link */
	if (!strncmp(base, "ld-musl-", 8) && !add_name(module, "libc", 4))
		return false;
	if (!so)
		return add_name(module, base, strlen(base));
	size_t stem = (size_t)(so - base);
	bool ok = add_name(module, base, stem) && add_name(module, base, stem + 3) &&
		  add_name(module, base, strlen(base));
	/* libfoo-2.31.so.1 answers to libfoo (but ld-linux-x86-64 is no version 64),
	 * _ssl.cpython-311-x86_64-linux-gnu.so to _ssl. */
	for (size_t i = 1; ok && i + 1 < stem; i++)
		if ((base[i] == '-' && isdigit((unsigned char)base[i + 1]) &&
		     strncmp(base + i, "-64", 3)) ||
		    !strncmp(base + i, ".cpython-", 9) || !strncmp(base + i, ".abi3", 5)) {
			ok = add_name(module, base, i);
			break;
		}
	return ok;
}

bool fay_module_matches(const struct fay_module *module, const char *pattern)
{
	if (strchr(pattern, '/'))
		return !fnmatch(pattern, module->path, 0);
	for (size_t i = 0; i < module->name_count; i++)
		if (!strcmp(pattern, module->names[i]) || !fnmatch(pattern, module->names[i], 0))
			return true;
	return false;
}

void fay_module_deinit(struct fay_module *module)
{
	for (size_t i = 0; i < module->name_count; i++)
		free(module->names[i]);
	free(module->path);
	free(module->ranges);
	free(module->unreadable);
	fay_object_close(module->object);
}

/* --- /proc/PID/maps --- */

static struct fay_module *find_or_add_module(struct fay_target *target, const char *path,
					     bool deleted, uint64_t device, uint64_t inode)
{
	for (size_t i = target->module_count; i-- > 0;) {
		struct fay_module *module = &target->modules[i];
		if (module->inode == inode && module->device == device &&
		    !strcmp(module->path, path))
			return module;
	}
	if (target->module_count == FAY_TARGET_MAX_MODULES)
		return NULL;
	struct fay_module *grown =
		realloc(target->modules, (target->module_count + 1) * sizeof(*grown));
	if (!grown)
		return NULL;
	target->modules = grown;
	struct fay_module *module = &grown[target->module_count];
	*module = (struct fay_module){
		.device = device, .inode = inode, .deleted = deleted, .path = strdup(path)
	};
	target->module_count++;
	return module->path ? module : NULL;
}

static bool add_range(struct fay_module *module, uint64_t start, uint64_t end, uint64_t offset)
{
	struct fay_range *grown =
		realloc(module->ranges, (module->range_count + 1) * sizeof(*grown));
	if (!grown)
		return false;
	module->ranges = grown;
	grown[module->range_count++] =
		(struct fay_range){ .start = start, .end = end, .offset = offset };
	return true;
}

/* maps writes a newline in a name as \012. */
static void unescape(char *path)
{
	char *to = path;
	for (const char *from = path; *from;) {
		if (!strncmp(from, "\\012", 4)) {
			*to++ = '\n';
			from += 4;
		} else {
			*to++ = *from++;
		}
	}
	*to = 0;
}

static bool add_mapping(struct fay_target *target, char *line)
{
	uint64_t start, end, offset, inode;
	unsigned major_number, minor_number;
	char permissions[5];
	int at = 0;
	if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s %" SCNx64 " %x:%x %" SCNu64 " %n", &start,
		   &end, permissions, &offset, &major_number, &minor_number, &inode, &at) < 7)
		return true;
	char *path = line + at;
	path[strcspn(path, "\n")] = 0;
	/* "/memfd:" is code that something generated, our own included; it has no symbols. */
	if (permissions[2] != 'x' || path[0] != '/' || !strncmp(path, "/memfd:", 7))
		return true;
	unescape(path);
	static const char mark[] = " (deleted)";
	size_t length = strlen(path);
	bool deleted =
		length > sizeof(mark) - 1 && !strcmp(path + length - (sizeof(mark) - 1), mark);
	if (deleted)
		path[length - (sizeof(mark) - 1)] = 0;
	struct fay_module *module = find_or_add_module(target, path, deleted,
						       makedev(major_number, minor_number), inode);
	return module && add_range(module, start, end, offset);
}

/* The name given to execve, from the auxiliary vector: /usr/bin/redis-server even where that is a
 * link to redis-check-rdb. */
static bool read_execfn(pid_t pid, char *buffer, size_t size)
{
	uint64_t vector[128];
	char path[64];
	size_t words =
		fay_proc_read(pid, "auxv", (char *)vector, sizeof(vector)) / sizeof(uint64_t);
	uint64_t address = 0;
	for (size_t i = 0; i + 1 < words; i += 2)
		if (vector[i] == 31 /* AT_EXECFN */)
			address = vector[i + 1];
	if (!address)
		return false;
	snprintf(path, sizeof(path), "/proc/%d/mem", pid);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	ssize_t got = pread(fd, buffer, size - 1, (off_t)address);
	close(fd);
	if (got <= 0)
		return false;
	buffer[got] = 0;
	return strlen(buffer) < (size_t)got;
}

/* Is this name, as the process saw it when it started, the executable itself (and not a script)? */
static bool names_executable(pid_t pid, const char *name)
{
	char path[4608], exe[64];
	struct stat named, running;
	snprintf(exe, sizeof(exe), "/proc/%d/exe", pid);
	if (name[0] == '/')
		snprintf(path, sizeof(path), "/proc/%d/root%s", pid, name);
	else
		snprintf(path, sizeof(path), "/proc/%d/cwd/%s", pid, name);
	return !stat(exe, &running) && !stat(path, &named) && named.st_ino == running.st_ino &&
	       named.st_dev == running.st_dev;
}

static bool name_modules(struct fay_target *target)
{
	char exe[64], path[4096], execfn[4096];
	snprintf(exe, sizeof(exe), "/proc/%d/exe", target->pid);
	ssize_t length = readlink(exe, path, sizeof(path) - 1);
	path[length > 0 ? length : 0] = 0;
	static const char mark[] = " (deleted)";
	if (length > (ssize_t)sizeof(mark) && !strcmp(path + length - (sizeof(mark) - 1), mark))
		path[length - (ssize_t)(sizeof(mark) - 1)] = 0;
	for (size_t i = 0; i < target->module_count; i++) {
		struct fay_module *module = &target->modules[i];
		module->main = !strcmp(module->path, path);
		if (module->main && read_execfn(target->pid, execfn, sizeof(execfn)) &&
		    names_executable(target->pid, execfn) &&
		    !fay_module_add_names_of(module, execfn))
			return false;
		if (!fay_module_add_names_of(module, module->path))
			return false;
	}
	return true;
}

static int explain_unreadable(pid_t pid, int reason, struct fay_error *error)
{
	struct stat status;
	char path[64];
	snprintf(path, sizeof(path), "/proc/%d", pid);
	if (reason == ENOENT || reason == ESRCH || stat(path, &status))
		return fay_error_set(error, FAY_E_REFUSED, "no process with PID %d", pid);
	if ((reason == EACCES || reason == EPERM) && geteuid() == 0)
		return fay_error_set(error, FAY_E_REFUSED,
				     "no permission to inspect process %d, even as root: "
				     "CAP_SYS_PTRACE is missing (the root of a container usually "
				     "lacks it), or the process has more capabilities",
				     pid);
	if (reason == EACCES || reason == EPERM)
		return fay_error_set(error, FAY_E_REFUSED,
				     "no permission to inspect process %d (it belongs to uid %u, "
				     "this is uid %u): run as root, or with CAP_SYS_PTRACE (setcap "
				     "cap_sys_ptrace,cap_checkpoint_restore+ep)",
				     pid, status.st_uid, geteuid());
	return fay_error_set(error, FAY_E_INTERNAL, "cannot read /proc/%d/maps: %s", pid,
			     strerror(reason));
}

/* Why a process has no executable mapping at all. */
static int explain_empty(pid_t pid, struct fay_error *error)
{
	char state = fay_thread_state(pid, pid);
	if (!state)
		return fay_error_set(error, FAY_E_REFUSED, "no process with PID %d", pid);
	if (fay_process_thread(pid) && (state == 'Z' || state == 'X'))
		return fay_error_set(error, FAY_E_REFUSED,
				     "process %d: its first thread has exited while others run; "
				     "/proc does not show its program any more",
				     pid);
	if (state == 'Z' || state == 'X')
		return fay_error_set(error, FAY_E_REFUSED,
				     "process %d has exited and waits for its parent (a zombie): "
				     "nothing is left of it to trace",
				     pid);
	return fay_error_set(
		error, FAY_E_REFUSED,
		"PID %d is a kernel thread or has no program mapped; nothing to trace in it: "
		"cluster.Function(kernel, ...), Tracepoint and Timer are about what the kernel "
		"does",
		pid);
}

int fay_target_read_maps(struct fay_target *target, struct fay_error *error)
{
	char path[64], buffer[READ_BYTES], *line = NULL;
	size_t size = 0;
	bool ok = true;
	snprintf(path, sizeof(path), "/proc/%d/maps", target->pid);
	FILE *maps = fopen(path, "re");
	if (!maps)
		return explain_unreadable(target->pid, errno, error);
	setvbuf(maps, buffer, _IOFBF, sizeof(buffer));
	errno = 0;
	while (ok && getline(&line, &size, maps) > 0)
		ok = add_mapping(target, line);
	int reason = ok && ferror(maps) ? errno : 0;
	free(line);
	fclose(maps);
	if (reason)
		return explain_unreadable(target->pid, reason, error);
	if (!ok || !name_modules(target))
		return fay_error_set(error, FAY_E_LIMIT,
				     "process %d: out of memory, or more than %u modules",
				     target->pid, FAY_TARGET_MAX_MODULES);
	if (!target->module_count)
		return explain_empty(target->pid, error);
	return FAY_OK;
}

bool fay_target_asks(const struct fay_target *target, const struct fay_module *module,
		     const char *pattern)
{
	return !(target->only_new && module->known) && (!target->only || module == target->only) &&
	       fay_module_matches(module, pattern);
}

const struct fay_module *fay_target_module_at(const struct fay_target *target, uint64_t address)
{
	for (size_t i = 0; i < target->module_count; i++)
		for (size_t k = 0; k < target->modules[i].range_count; k++)
			if (address - target->modules[i].ranges[k].start <
			    target->modules[i].ranges[k].end - target->modules[i].ranges[k].start)
				return &target->modules[i];
	return NULL;
}

/* --- opening --- */

/*
 * What lies at a module's path now may be a FIFO, which nobody writes to, or a device, to which
 * opening already does something; so it is looked at first. -1: errno says why, ENOEXEC that it is
 * no regular file.
 */
static int open_regular(const char *path)
{
	char again[32];
	struct stat status;
	int place = open(path, O_PATH | O_CLOEXEC), fd = -1, reason;

	if (place < 0)
		return -1;
	snprintf(again, sizeof(again), "/proc/self/fd/%d", place);
	errno = ENOEXEC;
	if (!fstat(place, &status) && S_ISREG(status.st_mode))
		fd = open(again, O_RDONLY | O_CLOEXEC);
	reason = errno;
	close(place);
	errno = reason;
	return fd;
}

static const char *why_not(int reason)
{
	return reason == ENOEXEC ? "not a regular file" : strerror(reason);
}

/* Network and overlay file systems (device major 0) may report another inode in maps than in
 * stat. */
static bool is_mapped_file(const struct fay_module *module, int fd)
{
	struct stat status;
	return major(module->device) == 0 || fstat(fd, &status) || status.st_ino == module->inode;
}

static int module_file(const struct fay_target *target, const struct fay_module *module,
		       struct fay_error *error)
{
	char path[4608];
	if (!target->pid)
		return open_regular(module->path);
	for (size_t i = 0; i < module->range_count; i++) {
		snprintf(path, sizeof(path), "/proc/%d/map_files/%" PRIx64 "-%" PRIx64, target->pid,
			 module->ranges[i].start, module->ranges[i].end);
		int fd = open_regular(path);
		if (fd >= 0 && is_mapped_file(module, fd))
			return fd;
		if (fd >= 0) /* another module lies there now */
			close(fd);
	}
	snprintf(path, sizeof(path), "/proc/%d/root%s", target->pid, module->path);
	int fd = module->deleted ? -1 : open_regular(path);
	/* the process is gone: the file is looked at below */
	if (fd < 0 && !module->deleted && errno == ENOENT)
		fd = open_regular(module->path);
	if (module->deleted) {
		fay_error_set(error, FAY_E_REFUSED,
			      "%s: the file was deleted or replaced since, and /proc/%d/map_files "
			      "needs CAP_CHECKPOINT_RESTORE",
			      module->path, target->pid);
		return -1;
	}
	if (fd < 0) {
		fay_error_set(error, FAY_E_REFUSED, "%s: %s", path, why_not(errno));
		return -1;
	}
	if (!is_mapped_file(module, fd)) {
		fay_error_set(error, FAY_E_REFUSED,
			      "%s: not the file that is mapped (another inode)", path);
		close(fd);
		return -1;
	}
	return fd;
}

static void place_range(struct fay_range *range, const struct fay_object *object)
{
	for (size_t i = 0; i < object->segment_count; i++) {
		const struct fay_segment *segment = &object->segments[i];
		uint64_t first = segment->offset & ~(uint64_t)4095;
		if (!segment->executable || range->offset < first ||
		    range->offset >= segment->offset + segment->file_size)
			continue;
		range->bias = range->start - range->offset - (segment->vaddr - segment->offset);
		range->placed = true;
		return;
	}
}

/* A file's "ranges" are its executable segments, at their own addresses. */
static bool ranges_of_file(struct fay_module *module)
{
	const struct fay_object *object = module->object;
	for (size_t i = 0; i < object->segment_count; i++) {
		const struct fay_segment *segment = &object->segments[i];
		if (!segment->executable || segment->vaddr + segment->memory_size < segment->vaddr)
			continue;
		if (!add_range(module, segment->vaddr, segment->vaddr + segment->memory_size,
			       segment->offset))
			return false;
		module->ranges[module->range_count - 1].placed = true;
	}
	return true;
}

/* What another process has mapped as well need not be opened. */
static struct fay_object *kept_object(const struct fay_target *target,
				      const struct fay_module *module)
{
	struct stat status;
	char path[96];
	if (!target->files || !target->pid || !module->range_count)
		return NULL;
	snprintf(path, sizeof(path), "/proc/%d/map_files/%" PRIx64 "-%" PRIx64, target->pid,
		 module->ranges[0].start, module->ranges[0].end);
	if (stat(path, &status) || !S_ISREG(status.st_mode) ||
	    (major(module->device) != 0 && status.st_ino != module->inode))
		return NULL;
	return fay_files_object(target->files, &status);
}

/* Opens its file, or takes what is kept of that. */
static bool open_object(const struct fay_target *target, struct fay_module *module)
{
	struct fay_error error = { 0 };
	struct stat status;
	if ((module->object = kept_object(target, module)))
		return true;
	int fd = module_file(target, module, &error);
	if (fd < 0 && !error.code)
		fay_error_set(&error, FAY_E_REFUSED, "%s: %s", module->path, why_not(errno));
	if (fd >= 0 && target->files && !fstat(fd, &status) &&
	    (module->object = fay_files_object(target->files, &status))) {
		close(fd);
		return true;
	}
	if (fd < 0 || fay_object_open(fd, module->path, &module->object, &error)) {
		module->unreadable = strdup(error.message);
		return false;
	}
	if (target->files)
		fay_files_add(target->files, module->object);
	return true;
}

struct fay_object *fay_module_object(const struct fay_target *target, struct fay_module *module)
{
	if (module->object || module->unreadable)
		return module->object;
	if (!open_object(target, module))
		return NULL;
	for (size_t i = 0; i < module->range_count; i++)
		place_range(&module->ranges[i], module->object);
	if (!target->pid && !ranges_of_file(module)) {
		fay_object_close(module->object);
		module->object = NULL;
		module->unreadable = strdup("out of memory");
	}
	return module->object;
}
