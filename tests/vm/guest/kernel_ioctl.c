/* SPDX-License-Identifier: MIT */
/*
 * /dev/fay as a hostile or broken program would use it, with an image that it accepts
 * (/probes/idle.fay):
 *
 *   kernel_ioctl COUNT     so many calls with random and nearly valid arguments, then a valid
 *			    session, to see that the device still works. Prints the answers,
 *			    counted. Of a user's, who may trace a few functions, some do attach
 *   kernel_ioctl together  sessions made at the same time do not take more memory together than one
 *			    after the other; more than there are numbers for take none
 *   kernel_ioctl accept IMAGE   what fay.ko says of an image
 *   kernel_ioctl check ADDRESS...   whether functions can be traced there
 *   kernel_ioctl stalled   calls whose arguments' memory does not come, by userfaultfd(2): nobody
 *			    else waits for them
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "dispatcher/kernel/abi.h"
#include "verifier/reader/reader.h"

static uint64_t state = 88172645463325252u;

static uint64_t next(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	return state ^= state << 17;
}

#define IMAGE "/probes/idle.fay"
#define IMAGE_ROOM 65536u

static struct fay_kernel_probe probes[FAY_KERNEL_PROBES_MAX]; /* answered */
/* The caller is one who is held to a policy; how many of its calls attached. */
static bool user;
static long attached;
static uint8_t honest[IMAGE_ROOM], image[IMAGE_ROOM];
static uint32_t image_size;

static bool read_image(const char *path)
{
	FILE *file = fopen(path, "r");

	image_size = file ? (uint32_t)fread(honest, 1, IMAGE_ROOM, file) : 0;
	if (!image_size)
		perror(path);
	if (file)
		fclose(file);
	memcpy(image, honest, image_size);
	return image_size;
}

/* That of the image beside it, if there is one, for a fay.ko that asks for them. */
static uint8_t signature[FAY_KERNEL_SIGNATURE_MAX], spoilt[FAY_KERNEL_SIGNATURE_MAX];
static uint32_t signature_size;

static void read_signature(const char *path)
{
	char name[256];
	snprintf(name, sizeof(name), "%s.p7s", path);
	FILE *file = fopen(name, "r");

	signature_size = file ? (uint32_t)fread(signature, 1, sizeof(signature), file) : 0;
	if (file)
		fclose(file);
}

static struct fay_kernel_create valid(void)
{
	return (struct fay_kernel_create){ .abi = FAY_KERNEL_ABI,
					   .image = (uint64_t)honest,
					   .image_size = image_size,
					   .probes = (uint64_t)probes,
					   .signature = (uint64_t)signature,
					   .signature_size = signature_size };
}

/* An interesting number. */
static uint64_t any(void)
{
	static const uint64_t edges[] = { 0,
					  1,
					  2,
					  7,
					  8,
					  63,
					  64,
					  65,
					  4095,
					  4096,
					  65535,
					  65536,
					  1u << 20,
					  (1u << 20) + 1,
					  0x7fffffff,
					  0x80000000,
					  0xffffffff,
					  UINT64_MAX,
					  1ull << 63,
					  0x7ffffffff000,
					  0xffff888000000000,
					  0xffffffff81000000 };
	uint64_t which = next() % 40;

	return which < sizeof(edges) / sizeof(*edges) ? edges[which]
	       : which < 30                           ? next() % 100
						      : next();
}

/* Some of the bytes, by words. */
static void spoil(void *bytes, size_t size)
{
	for (unsigned times = (unsigned)(next() % 4); times--;) {
		uint64_t value = any();
		size_t width = next() % 2 ? 4 : 8, at = next() % (size / width) * width;

		memcpy((char *)bytes + at, &value, width);
	}
}

/* Some bits, or bytes from elsewhere in the image, or its end is missing. */
static void spoil_image(struct fay_kernel_create *create)
{
	memcpy(image, honest, image_size);
	create->image = (uint64_t)image;
	for (unsigned times = (unsigned)(next() % 4); times--;) {
		size_t at = next() % (image_size - 16), from = next() % (image_size - 16);

		if (next() % 2)
			image[at] ^= (uint8_t)(1u << next() % 8);
		else
			memmove(image + at, image + from, next() % 16);
	}
	create->image_size = next() % 8 ? image_size : (uint32_t)(next() % image_size);
}

static void spoil_signature(struct fay_kernel_create *create)
{
	memcpy(spoilt, signature, signature_size);
	create->signature = (uint64_t)spoilt;
	for (unsigned times = (unsigned)(next() % 4); times--;)
		spoilt[next() % signature_size] ^= (uint8_t)(1u << next() % 8);
}

static int one_about_users(int fd)
{
	static struct fay_policy images;
	static struct fay_kernel_function functions[4];
	static char names[256];
	struct fay_kernel_policy policy = { .functions = (uint64_t)functions,
					    .names = (uint64_t)names,
					    .images = (uint64_t)&images,
					    .images_size = sizeof(images),
					    .function_count = (uint32_t)(next() % 4),
					    .names_size = (uint32_t)(next() % 256),
					    .group = (uint32_t)any(),
					    .max_points = 1,
					    .max_sessions = 1 };

	spoil(&policy, sizeof(policy));
	spoil(&images, sizeof(images));
	return ioctl(fd, next() % 2 ? FAY_KERNEL_POLICY : FAY_KERNEL_ALLOWED, &policy);
}

static int one(int fd)
{
	struct fay_kernel_create create = valid();
	struct fay_kernel_set sets[4] = {
		{ .probes = 1, .trampoline = user ? 0 : 4096, .point_count = 1 }
	};
	/* of a user some are right: not many, since attaching waits for grace periods */
	struct fay_kernel_point points[4] = { { user ? next() % 64 : 0xffffffff81000000, 1 } };
	uint64_t addresses[8] = { any(), any(), any(), any() };
	uint8_t answers[64];
	struct fay_kernel_attach attach = { (uint64_t)sets, (uint64_t)points, 1, 1 };
	struct fay_kernel_check check = { (uint64_t)addresses, (uint64_t)answers,
					  (uint32_t)(next() % 8), 0 };
	struct fay_kernel_detached detached;
	uint32_t set = (uint32_t)any();

	switch (next() % 8) {
	case 0:
		spoil(&create, sizeof(create));
		create.spill_size %= 131072; /* not a test of how much memory there is */
		if (next() % 2)
			spoil_image(&create);
		if (signature_size && next() % 2)
			spoil_signature(&create);
		return ioctl(fd, FAY_KERNEL_CREATE, &create);
	case 1:
		spoil(sets, sizeof(sets));
		spoil(points, sizeof(points));
		spoil(&attach, sizeof(attach));
		if (ioctl(fd, FAY_KERNEL_ATTACH, &attach))
			return -1;
		attached++;
		return 0;
	case 2:
		spoil(&check, sizeof(check));
		if (check.count > 64)
			check.answers = any(); /* our own memory is not spoilt */
		return ioctl(fd, FAY_KERNEL_CHECK, &check);
	case 3: return ioctl(fd, FAY_KERNEL_RUN, &set);
	case 4: return ioctl(fd, FAY_KERNEL_DETACH, next() % 8 ? (void *)&detached : (void *)any());
	case 5: return one_about_users(fd);
	case 6:
		return ioctl(fd,
			     (unsigned long)(next() % 4 ? FAY_KERNEL_CREATE ^ 1u << next() % 32
							: next()),
			     (void *)any());
	default: {
		size_t size = (size_t)(next() % 8 * 4096);
		void *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
				(off_t)(next() % 4 * 4096));

		if (at == MAP_FAILED)
			return -1;
		memset(at, (int)next(), size < 4096 ? size : 4096);
		return munmap(at, size);
	}
	}
}

/* ---- stalled ---- */

struct call {
	unsigned long command;
	void *argument;
	int fd, failed;
	bool ended;
};

static void *make_call(void *context)
{
	struct call *call = context;

	call->failed = ioctl(call->fd, call->command, call->argument) ? errno : 0;
	__atomic_store_n(&call->ended, true, __ATOMIC_RELEASE);
	return NULL;
}

/* A page that is not there before UFFDIO_ZEROPAGE. */
static void *missing_page(int faults)
{
	void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct uffdio_register range = { .range = { (uintptr_t)page, 4096 },
					 .mode = UFFDIO_REGISTER_MODE_MISSING };

	return page == MAP_FAILED || ioctl(faults, UFFDIO_REGISTER, &range) ? NULL : page;
}

static bool has_ended(struct call *call, int seconds)
{
	for (int i = 0; i < seconds * 100 && !__atomic_load_n(&call->ended, __ATOMIC_ACQUIRE); i++)
		usleep(10000);
	return __atomic_load_n(&call->ended, __ATOMIC_ACQUIRE);
}

/* One program's call does not get its argument; another one makes a session meanwhile. */
static int one_stalled(const char *name, unsigned long command)
{
	struct uffdio_api api = { .api = UFFD_API };
	struct fay_kernel_create create = valid(), other = valid();
	/* else poll(2) does not wait */
	int faults = (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);
	void *page = faults < 0 || ioctl(faults, UFFDIO_API, &api) ? NULL : missing_page(faults);
	struct call calls[2] = { { .command = command,
				   .argument = page,
				   .fd = open(FAY_KERNEL_DEVICE, O_RDWR | O_CLOEXEC) },
				 { .command = FAY_KERNEL_CREATE,
				   .argument = &other,
				   .fd = open(FAY_KERNEL_DEVICE, O_RDWR | O_CLOEXEC) } };
	struct pollfd fault = { .fd = faults, .events = POLLIN };
	struct uffdio_zeropage zero = { .range = { (uintptr_t)page, 4096 } };
	pthread_t threads[2];

	if (!page || calls[0].fd < 0 || calls[1].fd < 0 ||
	    (command == FAY_KERNEL_ATTACH && ioctl(calls[0].fd, FAY_KERNEL_CREATE, &create))) {
		perror("stalled");
		return 1;
	}
	pthread_create(&threads[0], NULL, make_call, &calls[0]);
	bool asked = poll(&fault, 1, 60000) == 1 && fault.revents == POLLIN;
	pthread_create(&threads[1], NULL, make_call, &calls[1]);
	bool made = has_ended(&calls[1], 60), stalled = !has_ended(&calls[0], 0);
	ioctl(faults, UFFDIO_ZEROPAGE, &zero);
	for (int i = 0; i < 2; i++) {
		pthread_join(threads[i], NULL);
		close(calls[i].fd);
	}
	close(faults);
	munmap(page, 4096);
	printf("%s without its argument: another session %s; then: %s\n", name,
	       !made             ? "WAITED"
	       : calls[1].failed ? strerror(calls[1].failed)
				 : "was made",
	       strerror(calls[0].failed));
	return !asked || !made || !stalled || calls[1].failed;
}

static int stalled(void)
{
	return one_stalled("CREATE", FAY_KERNEL_CREATE) | one_stalled("ATTACH", FAY_KERNEL_ATTACH) |
	       one_stalled("CHECK", FAY_KERNEL_CHECK);
}

/* ---- together ---- */

/* MemAvailable */
static uint64_t free_bytes(void)
{
	FILE *file = fopen("/proc/meminfo", "r");
	unsigned long long kib = 0;
	char line[128];

	while (file && fgets(line, sizeof(line), file) &&
	       sscanf(line, "MemAvailable: %llu", &kib) != 1)
		;
	if (file)
		fclose(file);
	return kib * 1024;
}

/* The image with sizes of its state that nothing in its code needs. */
static void resize(uint32_t local_size, uint32_t global_size)
{
	struct fay_image_header *header = memmem(image, image_size, FAY_IMAGE_MAGIC, 8);
	struct check_subject subject;

	header->local_size = local_size;
	header->global_size = global_size;
	if (fay_read_image(image, image_size, &subject).rule != FAY_RULE_NONE)
		abort();
	fay_read_fingerprint(&subject, (uint8_t *)(uintptr_t)subject.certificate.bytes + 6);
}

/* A session that takes 2/5 of what is free: one after the other, a second one is more than half of
 * the rest. */
static struct fay_kernel_create large(void)
{
	struct fay_kernel_create create = valid();
	uint64_t slot = (free_bytes() * 2 / 5 - FAY_IMAGE_MAX_GLOBAL) /
			(FAY_KERNEL_CONTEXTS * (uint64_t)sysconf(_SC_NPROCESSORS_CONF));
	uint64_t local = slot > 16u << 20 ? slot - (16u << 20) : 0;

	if (local > FAY_IMAGE_MAX_LOCAL)
		local = FAY_IMAGE_MAX_LOCAL;
	resize((uint32_t)(local < 4096 ? 4096 : local) & ~4095u, FAY_IMAGE_MAX_GLOBAL);
	create.image = (uint64_t)image;
	create.spill_size = 16u << 20;
	return create;
}

static int at_once(void)
{
	struct fay_kernel_create creates[2] = { large(), large() };
	struct call calls[2];
	pthread_t threads[2];
	int made = 0;

	for (int i = 0; i < 2; i++) {
		calls[i] = (struct call){ .command = FAY_KERNEL_CREATE,
					  .argument = &creates[i],
					  .fd = open(FAY_KERNEL_DEVICE, O_RDWR | O_CLOEXEC) };
		pthread_create(&threads[i], NULL, make_call, &calls[i]);
	}
	for (int i = 0; i < 2; i++) {
		pthread_join(threads[i], NULL);
		made += !calls[i].failed;
		if (calls[i].failed && calls[i].failed != ENOMEM)
			printf("%s\n", strerror(calls[i].failed));
	}
	for (int i = 0; i < 2; i++)
		close(calls[i].fd);
	return made;
}

static int together(void)
{
	struct fay_kernel_create create, too_large;
	int fds[FAY_KERNEL_SESSIONS_MAX + 1], wrong = 0, made = 0;

	for (int round = 0; round < 10; round++)
		wrong += at_once() != 1;
	printf("two sessions of 2/5 of the memory at once: %d times of 10 not exactly one was "
	       "made\n",
	       wrong);
	create = too_large = large();
	for (unsigned i = 0; i <= FAY_KERNEL_SESSIONS_MAX; i++)
		fds[i] = open(FAY_KERNEL_DEVICE, O_RDWR | O_CLOEXEC);
	for (unsigned i = 0; i < FAY_KERNEL_SESSIONS_MAX; i++, create = valid())
		made += !ioctl(fds[i], FAY_KERNEL_CREATE, &create);
	int code = ioctl(fds[FAY_KERNEL_SESSIONS_MAX], FAY_KERNEL_CREATE, &too_large) ? errno : 0;
	printf("%d sessions, and one more: %s\n", made, strerror(code));
	for (unsigned i = 0; i <= FAY_KERNEL_SESSIONS_MAX; i++)
		close(fds[i]);
	return wrong || made != FAY_KERNEL_SESSIONS_MAX || code != EUSERS;
}

static int check_addresses(int count, char **addresses)
{
	int fd = open(FAY_KERNEL_DEVICE, O_RDWR | O_CLOEXEC);

	for (int i = 0; i < count; i++) {
		uint64_t address = strtoull(addresses[i], NULL, 16);
		uint8_t answer = 2;
		struct fay_kernel_check check = { (uint64_t)&address, (uint64_t)&answer, 1, 0 };

		if (ioctl(fd, FAY_KERNEL_CHECK, &check))
			perror(addresses[i]);
		printf("%s%d", i ? " " : "", answer);
	}
	printf("\n");
	return close(fd);
}

static int accept_image(const char *path)
{
	int fd = open(FAY_KERNEL_DEVICE, O_RDWR | O_CLOEXEC);
	struct fay_kernel_create create;

	if (!read_image(path))
		return 1;
	create = valid();
	create.spill_size = 65536;
	printf("%s\n", ioctl(fd, FAY_KERNEL_CREATE, &create) ? strerror(errno) : "accepted");
	return close(fd);
}

static bool is_user(void)
{
	struct fay_kernel_policy policy = { 0 };
	int fd = open(FAY_KERNEL_DEVICE, O_RDWR | O_CLOEXEC);
	bool answered = !ioctl(fd, FAY_KERNEL_ALLOWED, &policy);

	close(fd);
	return answered && policy.user;
}

int main(int argc, char **argv)
{
	if (argc > 2 && !strcmp(argv[1], "accept"))
		return accept_image(argv[2]);
	if (!(argc > 1 && !strcmp(argv[1], "check")) && !read_image(IMAGE))
		return 1;
	read_signature(IMAGE);
	if (argc > 1 && !strcmp(argv[1], "stalled"))
		return stalled();
	if (argc > 1 && !strcmp(argv[1], "together"))
		return together();
	if (argc > 1 && !strcmp(argv[1], "check"))
		return check_addresses(argc - 2, argv + 2);
	long count = argc > 1 ? atol(argv[1]) : 100000;
	unsigned long answers[256] = { 0 };
	int fd = -1;

	user = is_user();
	for (long i = 0; i < count; i++) {
		if (fd < 0 || next() % 32 == 0) {
			if (fd >= 0)
				close(fd);
			fd = open(FAY_KERNEL_DEVICE, O_RDWR | O_CLOEXEC);
			if (fd < 0) {
				perror(FAY_KERNEL_DEVICE);
				return 1;
			}
		}
		errno = 0;
		answers[one(fd) ? errno & 255 : 0]++;
	}
	for (int i = 0; i < 256; i++)
		if (answers[i])
			printf("%s: %lu\n", i ? strerror(i) : "done", answers[i]);
	close(fd);
	fd = open(FAY_KERNEL_DEVICE, O_RDWR | O_CLOEXEC);
	struct fay_kernel_create create = valid();
	if (ioctl(fd, FAY_KERNEL_CREATE, &create) || create.shm_size < 4096) {
		perror("a valid session after all that");
		return 1;
	}
	printf("%ld calls%s, %ld attached, the device works\n", count, user ? " as a user" : "",
	       attached);
	return 0;
}
