/* SPDX-License-Identifier: MIT */
/*
 * Code that does not stay what it was. changing_target FILE FILE: from the first line of its
 * standard input to the second, again and again, checking each result (abort),
 *
 *	reload	   a module is loaded, called and unloaded; then another, at the same place
 *	by hand	   the first file's pages are mapped, called and unmapped; then other code is mapped
 *		   there without a file
 *	rewritten  a function's bytes are overwritten with another version of it, while nobody runs
 *		   it; a second thread calls it all the time, but for that
 *
 * Says "ready" at first, "done ROUNDS" behind the second line, and ends with its input.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAGE 4096u
#define CALLS 200
#define VERSION_BYTES 32u

typedef long work(long number);

static void check(bool right, const char *what)
{
	if (right)
		return;
	printf("wrong: %s\n", what);
	fflush(stdout);
	abort();
}

static void call(work *function, long added, const char *what)
{
	for (long i = 0; i < CALLS; i++)
		check(function(i) == i + added, what);
}

static void reload(const char *file)
{
	void *module = dlopen(file, RTLD_NOW);
	work *function = module ? (work *)dlsym(module, "plugin_work") : NULL;

	check(function != NULL, "dlopen");
	call(function, 5, "reload");
	check(!dlclose(module), "dlclose");
}

/* Where plugin_work lies in the file: it is a module whose pages are mapped as they are in it. */
static uint64_t offset_of_work(const char *file)
{
	void *module = dlopen(file, RTLD_NOW);
	struct link_map *map = module;
	uint64_t offset = module ? (uint64_t)dlsym(module, "plugin_work") - map->l_addr : 0;

	check(offset && !dlclose(module), "dlopen");
	return offset;
}

static void by_hand(const char *file, uint64_t offset)
{
	/* lea 9(%rdi), %rax; ret */
	static const uint8_t other[] = { 0x48, 0x8d, 0x47, 0x09, 0xc3 };
	uint64_t page = offset & ~(uint64_t)(PAGE - 1);
	int fd = open(file, O_RDONLY | O_CLOEXEC);
	uint8_t *code = mmap(NULL, PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, (off_t)page);

	check(code != MAP_FAILED, "mmap");
	close(fd);
	call((work *)(code + (offset - page)), 5, "mapped by hand");
	check(!munmap(code, PAGE), "munmap");
	check(mmap(code, PAGE, PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) == code,
	      "mmap");
	memcpy(code + (offset - page), other, sizeof(other));
	check(!mprotect(code, PAGE, PROT_READ | PROT_EXEC), "mprotect");
	call((work *)(code + (offset - page)), 9, "mapped without a file");
	check(!munmap(code, PAGE), "munmap");
}

/* Alone in its page. Returns its argument plus one; or plus two, by other instructions. */
long rewritten(long number);
__asm__(".pushsection .text.rewritten, \"ax\", @progbits\n"
	".p2align 12\n"
	".globl rewritten\n"
	".type rewritten, @function\n"
	"rewritten:\n"
	"	lea 1(%rdi), %rax\n"
	"	.byte 0x0f, 0x1f, 0x44, 0x00, 0x00\n"
	"	.byte 0x0f, 0x1f, 0x44, 0x00, 0x00\n"
	"	.byte 0x0f, 0x1f, 0x40, 0x00\n"
	"	.byte 0x0f, 0x1f, 0x40, 0x00\n"
	"	nop; nop; nop\n"
	"	ret\n"
	".size rewritten, . - rewritten\n"
	"	.skip 6, 0x90\n"
	".p2align 12\n"
	".popsection\n");

static const uint8_t versions[2][VERSION_BYTES] = {
	/* lea 1(%rdi), %rax; nops; ret */
	{ 0x48, 0x8d, 0x47, 0x01, 0x0f, 0x1f, 0x44, 0x00, 0x00, 0x0f, 0x1f,
	  0x44, 0x00, 0x00, 0x0f, 0x1f, 0x40, 0x00, 0x0f, 0x1f, 0x40, 0x00,
	  0x90, 0x90, 0x90, 0xc3, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90 },
	/* mov %rdi, %rax; push %rbx; add $2, %rax; pop %rbx; ret */
	{ 0x48, 0x89, 0xf8, 0x53, 0x48, 0x83, 0xc0, 0x02, 0x5b, 0xc3, 0x90,
	  0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90,
	  0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90 },
};
static pthread_rwlock_t changing = PTHREAD_RWLOCK_INITIALIZER;
static atomic_long version;
static atomic_bool over;

static void rewrite(void)
{
	pthread_rwlock_wrlock(&changing);
	version ^= 1;
	check(!mprotect((void *)rewritten, PAGE, PROT_READ | PROT_WRITE | PROT_EXEC), "mprotect");
	/* byte by byte, that a trace may come in between */
	for (unsigned i = 0; i < VERSION_BYTES; i++) {
		((volatile uint8_t *)rewritten)[i] = versions[version][i];
		if (i % 8 == 3)
			sched_yield();
	}
	check(!mprotect((void *)rewritten, PAGE, PROT_READ | PROT_EXEC), "mprotect");
	pthread_rwlock_unlock(&changing);
}

static void *call_rewritten(void *unused)
{
	while (!over) {
		pthread_rwlock_rdlock(&changing);
		call(rewritten, 1 + version, "rewritten");
		pthread_rwlock_unlock(&changing);
	}
	return unused;
}

static bool asked(int wait)
{
	struct pollfd input = { .fd = 0, .events = POLLIN };

	return poll(&input, 1, wait) != 0;
}

int main(int argc, char **argv)
{
	long rounds = 0;
	pthread_t thread;
	uint64_t offset;

	if (argc != 3)
		return 2;
	offset = offset_of_work(argv[1]);
	if (pthread_create(&thread, NULL, call_rewritten, NULL))
		return 1;
	rewrite(); /* its mapping is divided from now on */
	rewrite();
	puts("ready");
	fflush(stdout);
	for (asked(-1), getchar(); !asked(0); rounds++) {
		reload(argv[1]);
		reload(argv[2]);
		by_hand(argv[1], offset);
		if (rounds % 4 == 0)
			rewrite();
	}
	over = true;
	pthread_join(thread, NULL);
	if (version)
		rewrite();
	call(rewritten, 1, "rewritten at last");
	printf("done %ld\n", rounds);
	fflush(stdout);
	while (getchar() != EOF)
		;
	return 0;
}
