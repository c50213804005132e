/* SPDX-License-Identifier: MIT */
/*
 * Kernel sessions by the loader's own functions, inside the machine:
 *
 *   kernel_sessions cycles IMAGE COUNT PATTERN   attaches to other functions than the image's and detaches; prints memory before and after
 *   kernel_sessions tampered IMAGE       after the verdict, changes code, hash, trampolines: each must be refused by fay.ko; so must a loader of another version of fay
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernel.h"

static struct fay_kernel_symbols symbols;
static struct fay_kernel_btf *btf;
static unsigned spoil_trampoline; /* byte to change, plus one */

/* The loader's trampoline writer, with a fault. */
uint32_t __real_fay_kernel_trampoline_write(struct fay_kernel_trampoline *trampoline, uint8_t *code, uint32_t capacity);
uint32_t __wrap_fay_kernel_trampoline_write(struct fay_kernel_trampoline *trampoline, uint8_t *code, uint32_t capacity);
uint32_t __wrap_fay_kernel_trampoline_write(struct fay_kernel_trampoline *trampoline, uint8_t *code, uint32_t capacity)
{
	uint32_t size = __real_fay_kernel_trampoline_write(trampoline, code, capacity);

	if (spoil_trampoline && spoil_trampoline <= size)
		code[spoil_trampoline - 1] ^= 1;
	return size;
}

static enum { THIS_VERSION, OTHER_NUMBER, OTHER_SIZE } version;

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

static long memory_kib(void)
{
	FILE *file = fopen("/proc/meminfo", "r");
	char line[128];
	long kib = -1;

	while (file && fgets(line, sizeof(line), file))
		if (sscanf(line, "MemAvailable: %ld", &kib) == 1)
			break;
	if (file)
		fclose(file);
	return kib;
}

static int attach(const struct fay_verdict *verdict, struct fay_kernel_session **session, struct fay_error *error)
{
	return fay_kernel_session_attach_with(verdict, NULL, &symbols, btf, session, error);
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
		if (fay_kernel_session_detach(session, &error)) {
			printf("cycle %ld: %s\n", i, error.message);
			return 1;
		}
		fay_kernel_session_destroy(session);
	}
	printf("%ld cycles; %ld KiB less memory than after the first ten\n", count, before - memory_kib());
	return before - memory_kib() > 8192;
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

static int tampered(struct fay_verdict *verdict)
{
	static const char other_bytes[] = "not what was verified", other_version[] = "belongs to another version of fay";
	struct fay_layout *layout = &verdict->layout;
	int wrong = 0;

	layout->bytes[layout->code_offset] ^= 1;
	wrong += refused(verdict, "first byte of the code", other_bytes);
	layout->bytes[layout->code_offset] ^= 1;
	layout->bytes[layout->code_offset + layout->code_size - 1] ^= 0x80;
	wrong += refused(verdict, "last byte of the code", other_bytes);
	layout->bytes[layout->code_offset + layout->code_size - 1] ^= 0x80;
	layout->sha256[31] ^= 1;
	wrong += refused(verdict, "another hash", other_bytes);
	layout->sha256[31] ^= 1;
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

int main(int argc, char **argv)
{
	struct fay_policy policy;
	struct fay_verdict verdict;
	struct fay_error error;
	size_t size;
	void *image;

	if (argc < 3)
		return 2;
	image = read_file(argv[2], &size);
	fay_policy_default(&policy);
	fay_policy_restrict_kernel(&policy);
	fay_verify(image, size, &policy, &verdict);
	if (verdict.outcome != FAY_ACCEPTED) {
		fay_verdict_print(stdout, argv[2], &verdict);
		return 1;
	}
	if (fay_kernel_btf_open(&btf, &error) || fay_kernel_symbols_read(&symbols, &error)) {
		printf("%s\n", error.message);
		return 1;
	}
	for (uint32_t i = 0; argc > 4 && i < verdict.probe_count; i++)
		if (*verdict.probes[i].pattern)
			verdict.probes[i].pattern = argv[4];
	int result = !strcmp(argv[1], "cycles") ? cycles(&verdict, argc > 3 ? atol(argv[3]) : 500) : tampered(&verdict);
	fay_kernel_symbols_deinit(&symbols);
	fay_kernel_btf_close(btf);
	fay_verdict_deinit(&verdict);
	free(image);
	return result;
}
