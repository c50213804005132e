/* SPDX-License-Identifier: MIT */
/*
 * Kernel sessions by the loader's own functions, inside the machine:
 *
 *   kernel_sessions cycles IMAGE COUNT PATTERN   attaches to other functions than the image's and
 *						  detaches; prints memory before and after
 *   kernel_sessions tampered IMAGE       after the verdict, changes code, certificate, trampolines:
 *					  each must be refused by fay.ko; so must a loader of
 *					  another version of fay
 *   kernel_sessions in_module IMAGE      names a function of a loadable module, which ftrace would
 *					  trace: must be refused by fay.ko
 *   kernel_sessions races IMAGE COUNT    attaches COUNT times while the session's module comes and
 *					  goes, its state is mapped and its probes are run
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "loader/kernel/kernel_private.h"
#include "verifier/accept/accept.h"

static struct fay_kernel_symbols symbols;
static struct fay_kernel_btf *btf;
static unsigned spoil_trampoline; /* byte to change, plus one */

/* The loader's trampoline writer, with a fault. */
uint32_t __real_fay_kernel_trampoline_write(struct fay_kernel_trampoline *trampoline, uint8_t *code,
					    uint32_t capacity);
uint32_t __wrap_fay_kernel_trampoline_write(struct fay_kernel_trampoline *trampoline, uint8_t *code,
					    uint32_t capacity);
uint32_t __wrap_fay_kernel_trampoline_write(struct fay_kernel_trampoline *trampoline, uint8_t *code,
					    uint32_t capacity)
{
	uint32_t size = __real_fay_kernel_trampoline_write(trampoline, code, capacity);

	if (spoil_trampoline && spoil_trampoline <= size)
		code[spoil_trampoline - 1] ^= 1;
	return size;
}

static enum { THIS_VERSION, OTHER_NUMBER, OTHER_SIZE } version;
static uint64_t other_point; /* instead of the first point that is attached to */

/* What the loader last said, to be said again. */
static struct fay_kernel_attach attached;
static struct fay_kernel_set attached_sets[FAY_KERNEL_SETS_MAX];
static struct fay_kernel_point attached_point;
static void *module_bytes;
static size_t module_size;

static void note_attach(const struct fay_kernel_attach *attach)
{
	struct fay_kernel_point *points = (void *)attach->points;

	if (other_point)
		points[0].address = other_point;
	memcpy(attached_sets, (void *)attach->sets, attach->set_count * sizeof(*attached_sets));
	attached_point = points[0];
	attached = (struct fay_kernel_attach){ (uint64_t)attached_sets, (uint64_t)&attached_point,
					       attach->set_count, 1 };
}

long __real_syscall(long number, ...);
long __wrap_syscall(long number, ...);
long __wrap_syscall(long number, ...)
{
	long arguments[6];
	va_list list;

	va_start(list, number);
	for (int i = 0; i < 6; i++)
		arguments[i] = va_arg(list, long);
	va_end(list);
	if (number == SYS_init_module &&
	    (module_bytes = realloc(module_bytes, (size_t)arguments[1])))
		memcpy(module_bytes, (void *)arguments[0], module_size = (size_t)arguments[1]);
	return __real_syscall(number, arguments[0], arguments[1], arguments[2], arguments[3],
			      arguments[4], arguments[5]);
}

/* As a loader of another version calls fay.ko. */
int __real_ioctl(int fd, unsigned long request, ...);
int __wrap_ioctl(int fd, unsigned long request, ...);
int __wrap_ioctl(int fd, unsigned long request, ...)
{
	va_list arguments;

	va_start(arguments, request);
	void *argument = va_arg(arguments, void *);
	va_end(arguments);
	if (request == FAY_KERNEL_CREATE && version == OTHER_NUMBER)
		((struct fay_kernel_create *)argument)->abi++;
	if (request == FAY_KERNEL_CREATE && version == OTHER_SIZE)
		request = _IOWR('F', 0x80, uint64_t);
	if (request == FAY_KERNEL_ATTACH)
		note_attach(argument);
	return __real_ioctl(fd, request, argument);
}

static void *read_file(const char *path, size_t *size)
{
	FILE *file = fopen(path, "r");
	void *bytes = malloc(1 << 20);

	if (!file || !bytes) {
		perror(path);
		exit(1);
	}
	*size = fread(bytes, 1, 1 << 20, file);
	fclose(file);
	return bytes;
}

/* This process's own; the kernel's is compared by come_and_go.sh, for all processes at once. */
static long memory_kib(void)
{
	FILE *file = fopen("/proc/self/status", "r");
	char line[128];
	long kib = -1;

	while (file && fgets(line, sizeof(line), file))
		if (sscanf(line, "VmRSS: %ld", &kib) == 1)
			break;
	if (file)
		fclose(file);
	return kib;
}

/* With its certificate. */
static uint8_t *image;
static size_t image_size;

static int attach(const struct fay_verdict *verdict, struct fay_kernel_session **session,
		  struct fay_error *error)
{
	const struct fay_kernel_image given = { .bytes = image, .size = image_size };

	return fay_kernel_session_attach_with(verdict, &given, NULL, &symbols, btf, session, error);
}

/* Calls that are under way are waited for, for a minute. */
static int detach(struct fay_kernel_session *session, struct fay_error *error)
{
	struct fay_kernel_detached detached;
	int result = fay_kernel_session_detach(session, error);

	for (int i = 0; result == FAY_E_LIMIT && i < 300; i++)
		if (!__real_ioctl(session->device, FAY_KERNEL_DETACH, &detached))
			result = FAY_OK;
	return result;
}

static int cycles(const struct fay_verdict *verdict, long count)
{
	struct fay_kernel_session *session;
	struct fay_error error;
	long before = 0;

	for (long i = 0; i < count; i++) {
		if (i == 10) /* caches are warm */
			before = memory_kib();
		if (attach(verdict, &session, &error)) {
			printf("cycle %ld: %s\n", i, error.message);
			return 1;
		}
		if (detach(session, &error)) {
			printf("cycle %ld: %s\n", i, error.message);
			return 1;
		}
		fay_kernel_session_destroy(session);
		if ((i + 1) % 100 == 0) {
			printf("%s: %ld cycles\n", verdict->probes[0].pattern, i + 1);
			fflush(stdout);
		}
	}
	long grown = count > 10 ? memory_kib() - before : 0;
	printf("%ld cycles; %ld KiB more memory than after the first ten\n", count, grown);
	return grown > 1024;
}

/* 0 if fay.ko refused, and the loader says `why`. */
static int refused(const struct fay_verdict *verdict, const char *what, const char *why)
{
	struct fay_kernel_session *session;
	struct fay_error error;

	if (!attach(verdict, &session, &error)) {
		printf("%s: ATTACHED\n", what);
		fay_kernel_session_destroy(session);
		return 1;
	}
	printf("%s: %s\n", what, error.message);
	return strstr(error.message, why) == NULL;
}

/* As the image was before. */
static void *plain;
static size_t plain_size;

/* Attaches another image with the verdict of this one. */
static int lied(const struct fay_verdict *verdict, void *other, size_t size, const char *what,
		const char *why)
{
	uint8_t *keep = image;
	size_t keep_size = image_size;
	int wrong;

	image = other;
	image_size = size;
	wrong = refused(verdict, what, why);
	image = keep;
	image_size = keep_size;
	return wrong;
}

/* What fay.ko says of the image as it is: its rule, or -1. */
static long ask(int device)
{
	struct fay_kernel_probe probes[FAY_KERNEL_PROBES_MAX];
	struct fay_kernel_create create = { .abi = FAY_KERNEL_ABI,
					    .spill_size = 65536,
					    .image = (uint64_t)image,
					    .image_size = (uint32_t)image_size,
					    .probes = (uint64_t)probes };

	if (!__real_ioctl(device, FAY_KERNEL_CREATE, &create))
		return FAY_RULE_NONE;
	return errno == EKEYREJECTED ? (long)create.rule : -1;
}

/* A bit of each byte of code and certificate is changed: fay.ko says what the checker says here. */
static int changed_bytes(void)
{
	static struct fay_probe_facts facts[FAY_IMAGE_MAX_PROBES];
	struct fay_policy policy;
	struct check_subject subject;
	struct check_result result;
	unsigned long tried = 0, accepted = 0, differ = 0;

	fay_policy_default(&policy);
	policy.allow_rdtsc = true;
	fay_policy_restrict_kernel(&policy);
	if (fay_read_image(image, image_size, &subject).rule != FAY_RULE_NONE)
		return 1;
	for (unsigned part = 0; part < 2; part++) {
		const struct check_bytes *bytes = part ? &subject.certificate : &subject.text;
		uint8_t *at = image + (bytes->bytes - image);

		for (size_t i = 0; i < bytes->size; i++, tried++) {
			uint8_t bit = (uint8_t)(1u << i % 8);
			int device = open(FAY_KERNEL_DEVICE, O_RDWR | O_CLOEXEC);
			long rule;

			at[i] ^= bit;
			rule = ask(device);
			fay_accept_check(image, image_size, &policy, facts, &result);
			at[i] ^= bit;
			close(device);
			accepted += rule == FAY_RULE_NONE;
			differ += rule != (long)result.refusal.rule;
		}
	}
	printf("a changed byte of code or certificate: %lu tried, %lu accepted, %lu otherwise than "
	       "here\n",
	       tried, accepted, differ);
	return differ || accepted > tried / 4;
}

static int tampered(struct fay_verdict *verdict)
{
	static const char other_bytes[] = "not what was verified",
			  other_image[] = "fay.ko refuses the image",
			  other_version[] = "belongs to another version of fay";
	struct fay_layout *layout = &verdict->layout;
	int wrong = 0;

	layout->bytes[layout->code_offset] ^= 1;
	wrong += refused(verdict, "first byte of the code", other_bytes);
	layout->bytes[layout->code_offset] ^= 1;
	layout->bytes[layout->code_offset + layout->code_size - 1] ^= 0x80;
	wrong += refused(verdict, "last byte of the code", other_bytes);
	layout->bytes[layout->code_offset + layout->code_size - 1] ^= 0x80;
	/* the verdict stays: it is not asked */
	wrong += lied(verdict, plain, plain_size, "no certificate", other_image);
	wrong += lied(verdict, plain, 100, "the beginning of an image", other_image);
	wrong += changed_bytes();
	for (spoil_trampoline = 1; spoil_trampoline < 400; spoil_trampoline += 57)
		wrong += refused(verdict, "a trampoline's byte", other_bytes);
	spoil_trampoline = 0;
	version = OTHER_NUMBER;
	wrong += refused(verdict, "another version's number", other_version);
	version = OTHER_SIZE;
	wrong += refused(verdict, "another version's structures", other_version);
	version = THIS_VERSION;
	struct fay_kernel_session *session;
	struct fay_error error;
	int result = attach(verdict, &session, &error);
	printf("as verified: %s\n", result ? error.message : "attached");
	if (!result)
		fay_kernel_session_destroy(session);
	return wrong || result;
}

/* ---- in_module ---- */

/* A function of a loadable module that ftrace knows, as a line `NAME [MODULE]`; 0: there is none.
 * */
static uint64_t traceable_in_module(void)
{
	FILE *file = fopen("/sys/kernel/tracing/available_filter_functions", "r");
	char line[512];
	uint64_t found = 0;

	while (!found && file && fgets(line, sizeof(line), file)) {
		char *end = strstr(line, " [");

		if (end)
			*end = 0;
		for (size_t i = 0; end && !found && i < symbols.count; i++)
			if (symbols.items[i].in_module && !strcmp(symbols.items[i].name, line))
				found = symbols.items[i].address;
	}
	if (file)
		fclose(file);
	return found;
}

static int in_module(const struct fay_verdict *verdict)
{
	other_point = traceable_in_module();
	if (other_point)
		return refused(verdict, "a function of a loadable module", strerror(EINVAL));
	printf("no loadable module has a function that ftrace knows\n");
	return 1;
}

/* ---- races ---- */

static struct fay_kernel_session *raced;
static bool raced_enough;

static bool racing(void)
{
	return !__atomic_load_n(&raced_enough, __ATOMIC_ACQUIRE);
}

static void *come_and_go(void *count)
{
	while (racing()) {
		if (!syscall(SYS_init_module, module_bytes, module_size, ""))
			++*(long *)count;
		usleep(500);
		syscall(SYS_delete_module, raced->name, O_NONBLOCK);
	}
	return NULL;
}

static void *map_and_read(void *count)
{
	while (racing()) {
		volatile uint32_t *shm =
			mmap(NULL, raced->made.shm_size, PROT_READ, MAP_SHARED, raced->device, 0);

		if (shm == MAP_FAILED || *shm == 0)
			exit(3);
		++*(long *)count;
		munmap((void *)shm, raced->made.shm_size);
		usleep(500);
	}
	return NULL;
}

static void *run_probes(void *count)
{
	while (racing()) {
		for (uint32_t i = 0; i < attached.set_count; i++)
			*(long *)count += !__real_ioctl(raced->device, FAY_KERNEL_RUN, &i);
		usleep(500);
	}
	return NULL;
}

/* Attached (calls may be under way still when it is detached), or there is no module just then;
 * nothing else. Returns the errno of what else there was. */
static int attach_often(long count)
{
	struct fay_kernel_detached detached;
	int wrong = 0;

	for (long won = 0; !wrong && won < count;) {
		int failed = __real_ioctl(raced->device, FAY_KERNEL_ATTACH, &attached) ? errno : 0;

		if (!failed || failed == EBUSY)
			failed = __real_ioctl(raced->device, FAY_KERNEL_DETACH, &detached) &&
						 errno != EAGAIN
					 ? errno
					 : 0;
		wrong = failed == ENOEXEC ? 0 : failed;
		won += !failed;
	}
	return wrong;
}

static int races(const struct fay_verdict *verdict, long count)
{
	void *(*const others[])(void *) = { come_and_go, map_and_read, run_probes };
	pthread_t threads[3];
	long did[3] = { 0 };
	struct fay_error error;

	if (attach(verdict, &raced, &error) || detach(raced, &error)) {
		printf("%s\n", error.message);
		return 1;
	}
	syscall(SYS_delete_module, raced->name, O_NONBLOCK);
	for (int i = 0; i < 3; i++)
		pthread_create(&threads[i], NULL, others[i], &did[i]);
	int wrong = attach_often(count);
	__atomic_store_n(&raced_enough, true, __ATOMIC_RELEASE);
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	printf("attached: %s; the module came %ld times, %ld mappings, %ld probes run\n",
	       strerror(wrong), did[0], did[1], did[2]);
	fay_kernel_session_destroy(raced);
	return wrong || attach(verdict, &raced, &error) || detach(raced, &error) ||
	       (fay_kernel_session_destroy(raced), 0);
}

static int run(const char *what, struct fay_verdict *verdict, long count)
{
	return !strcmp(what, "cycles")      ? cycles(verdict, count)
	       : !strcmp(what, "races")     ? races(verdict, count)
	       : !strcmp(what, "in_module") ? in_module(verdict)
					    : tampered(verdict);
}

int main(int argc, char **argv)
{
	struct fay_policy policy;
	struct fay_verdict verdict;
	struct fay_error error;
	const char *why;
	void *certified;

	if (argc < 3)
		return 2;
	plain = read_file(argv[2], &plain_size);
	fay_policy_default(&policy);
	fay_policy_restrict_kernel(&policy);
	if (fay_verify_certify(plain, plain_size, &policy, &certified, &image_size, &why,
			       &verdict)) {
		fay_verdict_print(stdout, argv[2], &verdict);
		return 1;
	}
	image = certified;
	if (fay_kernel_btf_open(&btf, &error) || fay_kernel_symbols_read(&symbols, &error)) {
		printf("%s\n", error.message);
		return 1;
	}
	for (uint32_t i = 0; argc > 4 && i < verdict.probe_count; i++)
		if (*verdict.probes[i].pattern)
			verdict.probes[i].pattern = argv[4];
	int result = run(argv[1], &verdict, argc > 3 ? atol(argv[3]) : 500);
	fay_kernel_symbols_deinit(&symbols);
	fay_kernel_btf_close(btf);
	fay_verdict_deinit(&verdict);
	free(image);
	free(plain);
	return result;
}
