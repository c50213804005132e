/* SPDX-License-Identifier: MIT */
/* fay.ko: whether this kernel would take it, where it lies, loading it, its device; and making a
 * session there. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "kernel_private.h"

#define SPILL_MIN 65536u

/* ---- whether modules can be loaded ---- */

static bool read_line(const char *path, char *line, size_t size)
{
	FILE *file = fopen(path, "re");
	bool read = file && fgets(line, (int)size, file);

	if (file)
		fclose(file);
	if (read)
		line[strcspn(line, "\n")] = 0;
	return read;
}

const char *fay_kernel_modules_refused(void)
{
	static char why[160];
	char line[64];

	if (access("/proc/modules", F_OK))
		return "this kernel was built without loadable modules (there is no /proc/modules)";
	if (read_line("/proc/sys/kernel/modules_disabled", line, sizeof(line)) && line[0] == '1')
		return "sysctl kernel.modules_disabled is 1, until the next boot";
	if (fay_kernel_signs())
		return NULL; /* the kernel says itself whether it knows the key */
	if (read_line("/sys/module/module/parameters/sig_enforce", line, sizeof(line)) &&
	    line[0] == 'Y')
		return "this kernel accepts signed modules only (module.sig_enforce)";
	if (!read_line("/sys/kernel/security/lockdown", line, sizeof(line)) ||
	    strstr(line, "[none]"))
		return NULL;
	snprintf(why, sizeof(why),
		 "this kernel is locked down, so it accepts signed modules only "
		 "(/sys/kernel/security/lockdown: %s)",
		 line);
	return why;
}

int fay_kernel_load_refused(const char *what, struct fay_error *error)
{
	int code = errno;
	const char *known = fay_kernel_modules_refused();
	const char *why =
		code == ENOEXEC      ? "it was built for another kernel (version magic or symbol "
				       "versions; the kernel's log has more)"
		: code == ENOSYS     ? "this kernel was built without loadable modules"
		: code == EOPNOTSUPP ? "it does not fit this kernel (the kernel's log says why)"
		: code != EPERM && code != EKEYREJECTED && code != ENOKEY ? strerror(code)
		: known                                                   ? known
		: code == EPERM ? "loading modules is not permitted: CAP_SYS_MODULE is missing, or "
				  "the kernel is locked down"
		: fay_kernel_signs() ? "this kernel accepts signed modules only, and does not know "
				       "the certificate of the key (" FAY_KERNEL_KEY ")"
				     : "this kernel accepts signed modules only";

	return fay_error_set(error, FAY_E_REFUSED, "cannot load %s: %s", what, why);
}

/* ---- fay.ko ---- */

/* Where a fay.ko for the running kernel is; else, in `other`, which kernel one that was found is
 * for. */
struct found {
	char path[PATH_MAX], other[FAY_KERNEL_RELEASE_MAX];
};

static bool fits(struct found *found)
{
	struct utsname system;
	char release[FAY_KERNEL_RELEASE_MAX];

	if (access(found->path, R_OK) || !fay_kernel_object_release(found->path, release))
		return false;
	uname(&system);
	if (!strcmp(release, system.release))
		return true;
	memcpy(found->other, release, sizeof(release));
	return false;
}

/* Where it is installed, or beside the build that this program is of. */
static bool find_ko(struct found *found)
{
	struct utsname system;
	char own[PATH_MAX];
	ssize_t length = readlink("/proc/self/exe", own, sizeof(own) - 1);

	*found = (struct found){ 0 };
	uname(&system);
	snprintf(found->path, PATH_MAX, "/lib/modules/%s/extra/fay.ko", system.release);
	if (fits(found))
		return true;
	snprintf(found->path, PATH_MAX, "/lib/modules/%s/updates/dkms/fay.ko", system.release);
	if (fits(found))
		return true;
	if (length <= 0)
		return false;
	own[length] = 0;
	for (int i = 0; i < 2 && strrchr(own, '/'); i++)
		*strrchr(own, '/') = 0;
	return snprintf(found->path, PATH_MAX, "%s/kernel/fay.ko", own) < PATH_MAX && fits(found);
}

bool fay_kernel_present(void)
{
	struct found found;

	return access(FAY_KERNEL_DEVICE, F_OK) == 0 || find_ko(&found);
}

static int load_file(const char *path, struct fay_error *error)
{
	int file = open(path, O_RDONLY | O_CLOEXEC);
	int result = FAY_OK;

	if (file < 0)
		return fay_error_set(error, FAY_E_REFUSED, "cannot open %s: %s", path,
				     strerror(errno));
	if (syscall(SYS_finit_module, file, "", 0) && errno != EEXIST)
		result = fay_kernel_load_refused(path, error);
	close(file);
	return result;
}

int fay_kernel_load(const char *ko, char path[PATH_MAX], struct fay_error *error)
{
	struct found found;
	bool have = ko ? snprintf(found.path, sizeof(found.path), "%s", ko) < PATH_MAX
		       : find_ko(&found);

	if (!have && *found.other)
		return fay_error_set(
			error, FAY_E_REFUSED,
			"kernel functions need fay.ko for this kernel; the one installed was built "
			"for %s: scripts/kernel-module builds it (kernel headers are needed)",
			found.other);
	if (!have)
		return fay_error_set(
			error, FAY_E_REFUSED,
			"kernel functions need fay.ko, and there is none for this kernel: "
			"scripts/kernel-module builds it (kernel headers are needed)");
	memcpy(path, found.path, PATH_MAX);
	return access(FAY_KERNEL_DEVICE, F_OK) ? load_file(path, error) : FAY_OK;
}

int fay_kernel_device_open(struct fay_kernel_session *session, const char *ko,
			   struct fay_error *error)
{
	char line[16];

	/* Attaching would succeed all the same. */
	if (read_line("/proc/sys/kernel/ftrace_enabled", line, sizeof(line)) && line[0] == '0')
		return fay_error_set(error, FAY_E_REFUSED,
				     "sysctl kernel.ftrace_enabled is 0, so this kernel's "
				     "functions call no probes");
	session->device = open(FAY_KERNEL_DEVICE, O_RDWR | O_CLOEXEC);
	if (session->device >= 0 && fay_kernel_take_allowed(session, error))
		return error->code;
	if (session->allowed.functions)
		return FAY_OK;
	if (fay_kernel_load(ko, session->ko, error))
		return error->code;
	if (session->device < 0)
		session->device = open(FAY_KERNEL_DEVICE, O_RDWR | O_CLOEXEC);
	if (session->device < 0)
		return fay_error_set(error, FAY_E_REFUSED,
				     "cannot open " FAY_KERNEL_DEVICE ": %s%s", strerror(errno),
				     errno == EACCES || errno == EPERM
					     ? "; kernel functions are for root, and for the group "
					       "that root's `fay kernel allow` names"
					     : "");
	return FAY_OK;
}

/* ---- a session there ---- */

/* The numbers of calls have their structures' sizes in them. */
static int create_refused(int code, struct fay_error *error)
{
	if (code == EPROTO || code == ENOTTY)
		return fay_error_set(error, FAY_E_REFUSED,
				     "the loaded fay.ko belongs to another version of fay: `rmmod "
				     "fay`, then fay loads its own");
	int kind = code == ENOMEM || code == EUSERS || code == E2BIG ? FAY_E_LIMIT
		   : code == EFBIG || code == EDQUOT                 ? FAY_E_LIMIT
		   : code == EOPNOTSUPP                              ? FAY_E_REFUSED
								     : FAY_E_INTERNAL;
	return fay_error_set(error, kind, "fay.ko cannot make a session: %s",
			     code == ENOMEM ? "its state does not fit into the kernel's memory"
			     : code == E2BIG
				     ? "the image has more than 1 MiB, or more than 64 probes"
			     : code == EUSERS ? "as many traces as there can be are running already"
			     : code == EFBIG  ? "its state is larger than the policy for users "
						"allows"
			     : code == EDQUOT ? "as many traces as the policy allows one user are "
						"running already"
			     : code == EOPNOTSUPP ? "this machine has no time stamp counter that "
						    "durations could be measured with"
						  : strerror(code));
}

/* Where images must be signed; NULL: it is of something else. */
static const char *signature_refused(int code, const struct fay_kernel_image *image)
{
	if (code == ENOKEY && !image->signature_size)
		return "this one has no signature, which would be in IMAGE.p7s; queries have none";
	return code == EKEYEXPIRED
		       ? "the time of the key that has made this one's signature is over"
	       : code == EKEYREVOKED ? "the key that has made this one's signature was revoked"
	       : code == ENOKEY      ? "no key of the keyring `.fay` has made this one's signature"
	       : code == EILSEQ      ? "the signature is of other bytes than this image's"
	       : code == EBADMSG     ? "what is in IMAGE.p7s is not a PKCS #7 signature"
				     : NULL;
}

static int image_refused(const struct fay_kernel_create *made, struct fay_error *error)
{
	return fay_error_set(error, FAY_E_REFUSED,
			     "fay.ko refuses the image (%s, at 0x%llx), which it checks by its "
			     "certificate",
			     fay_rule_id(made->rule), (unsigned long long)made->place);
}

/* Of the ring that full tables and streams go to: the largest state fits twice. */
static uint32_t spill_size(const struct fay_schema *schema)
{
	uint64_t spill = 0;

	for (uint32_t i = 0; i < schema->state_count; i++)
		if (schema->states[i].kind != FAY_STATE_CELL)
			for (spill = spill ? spill : SPILL_MIN;
			     spill < 2 * (uint64_t)schema->states[i].size;)
				spill *= 2;
	return (uint32_t)spill;
}

int fay_kernel_device_create(struct fay_kernel_session *session, struct fay_error *error)
{
	struct fay_kernel_create *made = &session->made;
	int code = E2BIG;

	*made = (struct fay_kernel_create){ .abi = FAY_KERNEL_ABI,
					    .spill_size = spill_size(&session->verdict->schema),
					    .image = (uint64_t)session->image.bytes,
					    .image_size = (uint32_t)session->image.size,
					    .probes = (uint64_t)session->probes,
					    .signature = (uint64_t)session->image.signature,
					    .signature_size =
						    (uint32_t)session->image.signature_size };
	if (session->image.size <= FAY_KERNEL_IMAGE_MAX)
		code = ioctl(session->device, FAY_KERNEL_CREATE, made) ? errno : 0;
	const char *signature = signature_refused(code, &session->image);
	if (signature)
		return fay_error_set(
			error, FAY_E_REFUSED,
			"fay.ko takes signed images only (its parameter `signatures`): %s",
			signature);
	if (code == EKEYREJECTED)
		return image_refused(made, error);
	if (code)
		return create_refused(code, error);
	if (made->probe_count != session->probe_count ||
	    made->layout_size != session->verdict->layout.size)
		return fay_error_set(error, FAY_E_INTERNAL,
				     "the verdict is of another image than fay.ko was given");
	snprintf(session->name, sizeof(session->name), FAY_KERNEL_MODULE_PREFIX "%u",
		 made->session);
	session->shm =
		mmap(NULL, made->shm_size, PROT_READ | PROT_WRITE, MAP_SHARED, session->device, 0);
	if (session->shm == MAP_FAILED) {
		session->shm = NULL;
		return fay_error_set(error, FAY_E_INTERNAL, "cannot map the session's state: %s",
				     strerror(errno));
	}
	return FAY_OK;
}
