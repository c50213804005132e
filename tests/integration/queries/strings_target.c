/* SPDX-License-Identifier: MIT */
/* Calls said() with strings of one kind, and prints how often each was passed, a JSON object a
 * line. `strings_target KIND [COUNT]`. */
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PAGE 4096u

static volatile unsigned long sink;

__attribute__((noinline)) void said(const char *text);
__attribute__((noinline)) void said(const char *text)
{
	sink += (unsigned long)text;
}

static void report(const char *text, size_t length, unsigned calls)
{
	printf("{\"text\":\"%.*s\",\"calls\":%u}\n", (int)length, text, calls);
}

static void repeat(const char *text, unsigned calls)
{
	for (unsigned i = 0; i < calls; i++)
		said(text);
}

/* Different at each length, and at each place. */
static void fill(char *text, unsigned length)
{
	for (unsigned i = 0; i < length; i++)
		text[i] = (char)('a' + (i * 7 + i / 26 + length) % 26);
	text[length] = 0;
}

/* All lengths up to 300, and those about the limit; longer ones are cut. */
static void lengths(void)
{
	static char text[8192];
	for (unsigned length = 0; length < 5000; length = length == 300 ? 4080 : length + 1) {
		if (length > 4120)
			break;
		fill(text, length);
		if (length > 4096)
			text[0] = (char)('A' + length % 26); /* not the beginning of another one */
		repeat(text, 1 + length % 5);
		if (length <= 4096)
			report(text, length, 1 + length % 5);
		else
			printf("{\"text\":\"%.4096s...\",\"calls\":%u}\n", text, 1 + length % 5);
	}
}

/* Files that are not there, by names of all lengths that the kernel takes, and more. */
static void opens(void)
{
	static char text[8192];
	for (unsigned length = 17; length < 4110; length = length == 80 ? 4080 : length + 1) {
		fill(text, length);
		memcpy(text, "/no/such/folder/", 16);
		for (unsigned i = 0; i < 1 + length % 3; i++)
			if (syscall(SYS_openat, AT_FDCWD, text, O_RDONLY, 0) >= 0)
				exit(1);
		if (length <= 4096)
			report(text, length, 1 + length % 3);
		else
			printf("{\"text\":\"%.4096s...\",\"calls\":%u}\n", text, 1 + length % 3);
	}
}

/* Strings that end with the last byte that there is, and some that do not end there. */
static void ends(void)
{
	char *pages =
		mmap(NULL, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *end = pages + 3 * PAGE;
	if (pages == MAP_FAILED || munmap(end, PAGE))
		exit(1);
	for (unsigned length = 1; length < 6000; length += length < 40 ? 1 : 97) {
		char *text = end - length - 1;
		fill(text, length);
		repeat(text, 2);
		printf("{\"text\":\"%.4096s%s\",\"calls\":2}\n", text, length > 4096 ? "..." : "");
	}
	memset(pages, 'x', 3 * PAGE);
	for (unsigned length = 7; length < 4096; length += 511) {
		end[-(int)length] = (char)('A' + length / 511);
		repeat(end - length, 3);
		report(end - length, length, 3);
	}
	said(end);
	said(NULL);
	printf("{\"text\":\"\",\"calls\":2}\n");
}

/* Two that are the same as far as they are kept. */
static void same(void)
{
	static char one[5000], other[5000];
	memset(one, 'y', 4500);
	memset(other, 'y', 4500);
	strcpy(one + 4200, "one");
	strcpy(other + 4300, "other");
	repeat(one, 4);
	repeat(other, 5);
	printf("{\"text\":\"%.4096s...\",\"calls\":9}\n", one);
	one[4096] = 0;
	repeat(one, 6);
	report(one, 4096, 6);
}

/* Long strings that differ at their ends. */
static void deep(void)
{
	static char text[4200];
	for (unsigned at = 0; at < 4080; at += 510) {
		memset(text, 'x', sizeof(text));
		snprintf(text + at, 100, "the end %u", at);
		repeat(text, 1 + at / 510);
		report(text, strlen(text), 1 + at / 510);
	}
}

/* Bytes that are no characters, and those that JSON escapes. */
static void bytes(void)
{
	static char text[300];
	for (unsigned i = 0; i < 255; i++)
		text[i] = (char)(i + 1);
	repeat(text, 6);
	repeat(text + 200, 7);
}

static void distinct(unsigned count)
{
	char text[64];
	for (unsigned i = 0; i < count; i++) {
		snprintf(text, sizeof(text), "a key that is there once, number %u", i);
		said(text);
	}
}

static char changing_text[2048];
static volatile bool changing_end;

static void *change(void *argument)
{
	(void)argument;
	for (unsigned round = 0; !changing_end; round++) {
		memset(changing_text, 'a' + round % 26, 100 + round % 1900);
		changing_text[100 + round % 1900] = 0;
	}
	return NULL;
}

static void changing(unsigned count)
{
	pthread_t thread;
	memset(changing_text, 'z', sizeof(changing_text) - 1);
	if (pthread_create(&thread, NULL, change, NULL))
		exit(1);
	for (unsigned i = 0; i < count; i++)
		said(changing_text);
	changing_end = true;
	pthread_join(thread, NULL);
}

int main(int argc, char **argv)
{
	const char *kind = argc > 1 ? argv[1] : "";
	unsigned count = argc > 2 ? (unsigned)atoi(argv[2]) : 1000;
	if (!strcmp(kind, "lengths"))
		lengths();
	else if (!strcmp(kind, "opens"))
		opens();
	else if (!strcmp(kind, "ends"))
		ends();
	else if (!strcmp(kind, "same"))
		same();
	else if (!strcmp(kind, "deep"))
		deep();
	else if (!strcmp(kind, "bytes"))
		bytes();
	else if (!strcmp(kind, "distinct"))
		distinct(count);
	else if (!strcmp(kind, "changing"))
		changing(count);
	else
		return 2;
	return 0;
}
