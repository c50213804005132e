/* SPDX-License-Identifier: MIT */
/*
 * A program that runs some of its functions from a second mapping of its file as well, as V8 does
 * with its own. Says "ready"; for each line with two numbers calls each function so often where it
 * was linked to, and so often in the other mapping, and says "ran" and what came of it. For
 * "change" twice_next is another function in the other mapping.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* A page of the file. twice_next is too short for a jump, with other code behind it. */
__asm__(".section .text.twice, \"ax\"\n"
	"	.p2align 12\n"
	"	.globl twice_begin\n"
	"twice_begin:\n"
	"	.globl twice_add\n"
	"	.type twice_add, @function\n"
	"twice_add:\n"
	"	lea 3(%rdi), %rax\n"
	"	nopl 0(%rax)\n"
	"	ret\n"
	"	.size twice_add, . - twice_add\n"
	"	.p2align 4, 0xcc\n"
	"	.globl twice_next\n"
	"	.type twice_next, @function\n"
	"twice_next:\n"
	"	inc %rdi\n"
	"	ret\n"
	"	.size twice_next, . - twice_next\n"
	"	.globl twice_behind\n"
	"	.type twice_behind, @function\n"
	"twice_behind:\n"
	"	mov %rdi, %rax\n"
	"	nopl 0(%rax)\n"
	"	ret\n"
	"	.size twice_behind, . - twice_behind\n"
	"	.p2align 12, 0xcc\n"
	"	.text\n");

#define PAGE 4096u

typedef long function(long);
function twice_add, twice_next, twice_behind;
extern const char twice_begin[];

/* Where a page of this program's code lies in its file. */
static long find_offset(uint64_t address)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	unsigned long start, end, offset, found = 0;
	char line[4608];

	while (maps && fgets(line, sizeof(line), maps))
		if (sscanf(line, "%lx-%lx %*4s %lx", &start, &end, &offset) == 3 &&
		    address >= start && address < end)
			found = address - start + offset;
	if (maps)
		fclose(maps);
	return (long)found;
}

static long call_all(long count, uint64_t distance)
{
	function *const list[] = { twice_add, twice_next, twice_behind };
	long sum = 0;

	for (long i = 0; i < count; i++)
		for (unsigned k = 0; k < 3; k++)
			sum += ((function *)((uintptr_t)list[k] + distance))(i) * (k != 1);
	return sum;
}

static void change(char *other)
{
	char *next = other + ((uintptr_t)twice_next - (uintptr_t)twice_begin);

	mprotect(other, PAGE, PROT_READ | PROT_WRITE);
	next[2] ^= 8; /* dec %rdi */
	mprotect(other, PAGE, PROT_READ | PROT_EXEC);
	printf("changed\n");
	fflush(stdout);
}

int main(void)
{
	FILE *file = fopen("/proc/self/exe", "re");
	char *other, line[64];
	long first, second;

	if (!file)
		return 1;
	other = mmap(NULL, PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE, fileno(file),
		     find_offset((uintptr_t)twice_begin));
	fclose(file);
	if (other == MAP_FAILED || memcmp(other, twice_begin, PAGE))
		return 1;
	printf("ready\n");
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin)) {
		if (!strcmp(line, "change\n")) {
			change(other);
			continue;
		}
		if (sscanf(line, "%ld %ld", &first, &second) != 2)
			break;
		printf("ran %ld\n",
		       call_all(first, 0) +
			       call_all(second, (uintptr_t)other - (uintptr_t)twice_begin));
		fflush(stdout);
	}
	return 0;
}
