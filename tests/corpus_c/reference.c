/* SPDX-License-Identifier: MIT */
/* See reference.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dlfcn.h>
#include <elf.h>
#include <limits.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>

#include "fay/verify.h"
#include "reference.h"

#define RECORDS 24

static uint64_t seed;

/* ---- what the programs read ---- */

struct record { /* as in corpus.h */
	uint64_t next, left, right, name;
	uint32_t kind, size;
	int32_t weight;
	uint16_t flags, refs;
};

static uint64_t random_word(void)
{
	uint64_t z = seed += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return z ^ z >> 31;
}

static unsigned pick(unsigned n)
{
	return (unsigned)(random_word() % n);
}

#define SAMPLE(bytes) {bytes, sizeof(bytes) - 1}
static const struct {
	const char *bytes;
	size_t size;
} samples[] = {
	SAMPLE("GET /index.html?x=1 HTTP/1.1\r\nHost: a.example\r\nContent-Length: 1234\r\n\r\nlength"),
	SAMPLE("POST /form/%41%2f+b%zz HTTP/1.0\r\ncontent-length:   77\r\n\r\n"),
	SAMPLE("HTTP/1.1 404 Not Found\r\nServer: x\r\n\r\n"),
	SAMPLE("*3\r\n$3\r\nSET\r\n$5\r\nhello\r\n$5\r\nworld\r\n"),
	SAMPLE(":-1234567\r\n"),
	SAMPLE("$-1\r\n+OK\r\n-ERR unknown\r\n"),
	SAMPLE("set key 0 0 5\r\nvalue\r\n"),
	SAMPLE("{\"name\": \"a\\\"b\", \"list\": [1, -2.5e3, true, null], \"o\": {}}   "),
	SAMPLE("one,\"two, three\",\"four \"\"five\"\"\",,six\nnext,line"),
	SAMPLE("# comment\n[section]\nkey=value\nother = thing\n; more\n[x]\ny=1\n"),
	SAMPLE("12:hello world!,3:abc,0:,5:hello,"),
	SAMPLE("192.168.17.3 10.0.0.1 127.0.0.1"),
	SAMPLE("/usr/lib/x86_64-linux-gnu/libc.so.6"),
	SAMPLE("/home/user/.config/some.program/main.c"),
	SAMPLE("The quick brown fox jumps over the lazy dog; some words come and some go home again."),
	SAMPLE("caf\303\251 \342\202\254 \360\237\230\200 na\303\257ve \355\240\200 \300\200 \377"),
	SAMPLE("QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVphYmNkZWZnaGlqa2xtbm9wcXJzdHV2d3h5ejAxMjM0"),
	SAMPLE("abacabadabacabaabacabadabacabad"),
	SAMPLE("1a2F\r\n0\r\n  -77 123 99999999999999999999 42 "),
	SAMPLE("\105\000\000\124\000\001\100\000\100\001\000\000\300\250\000\001\300\250\000\002\010\000"),
	SAMPLE("\114\000\000\124\000\001\100\000\100\006\000\000\012\001\002\003\177\000\000\001\001\007\004\005\000\000\104\010\0\0"),
	SAMPLE("\140\000\000\000\000\040\000\100\040\001\015\270\0\0\0\0\0\0\0\0\0\0\0\001\040\001\015\270\0\0\0\0\0\0\0\0\0\0\0\002\006\0"),
	SAMPLE("\002\000\000\000\000\001\002\000\000\000\000\002\201\000\000\005\010\000\105\000\000\050"),
	SAMPLE("\022\064\201\200\000\001\000\002\000\000\000\000\003WwW\007Example\003com\000\000\001\000\001"),
	SAMPLE("\026\003\001\002\000\001\000\001\374\003\003"),
	SAMPLE("\177ELF\002\001\001\000\000\000\000\000\000\000\000\000\003\000\076\000\001\000\000\000"),
	SAMPLE("\211PNG\r\n\032\n\000\000\000\015IHDR\000\000\000\001\000\000\000\001\010\002\000\000\000\000\000\000\000\000\000\000\012IDAT"),
	SAMPLE("\037\213\010\014\000\000\000\000\000\003\004\000abcdname.txt\000compressed"),
	SAMPLE("\060\202\001\012\002\001\001\060\015\006\011\052\206\110\206\367\015\001\001\013\005\000\060\201\200"),
	SAMPLE("\010\226\001\022\007testing\032\003\010\001\020\170\055\001\002\003\004\061abcdefgh"),
	SAMPLE("\201\205\067\372\041\075\177\237\115\121\130\201\176\001\000"),
	SAMPLE("Q\000\000\000\015select 1\000P\000\000\000\010\000\000\000\000"),
	SAMPLE("((a)[b]{c})([)]"),
	SAMPLE("\020\040\220\030\050\240\001\002\200\010\260"),
};

static void fill_buffer(uint8_t *b, size_t size, unsigned event)
{
	unsigned kind = pick(8), n = event % (sizeof(samples) / sizeof(*samples));

	for (size_t i = 0; i < size; i += 8) {
		uint64_t word = kind == 0 ? 0 : kind == 1 ? random_word() & 0x0303030303030303u : random_word();

		if (kind == 2)
			word &= 0x7f7f7f7f7f7f7f7fu;
		memcpy(b + i, &word, 8);
	}
	if (kind < 3)
		return;
	for (size_t at = 0; at < 600; at += samples[n].size) { /* a sample, again and again, or one after the other */
		memcpy(b + at, samples[n].bytes, samples[n].size);
		if (kind & 1)
			n = pick(sizeof(samples) / sizeof(*samples));
	}
	for (unsigned flips = kind == 7 ? 1 + pick(6) : 0; flips; flips--)
		b[pick(200)] ^= (uint8_t)(1u << pick(8));
}

static void fill_records(struct record *r, uint64_t strings)
{
	for (unsigned i = 0; i < RECORDS; i++) {
		r[i] = (struct record){
			.next = pick(12) ? (uintptr_t)&r[pick(3) ? (i + 1) % RECORDS : pick(RECORDS)] : 0,
			.left = 2 * i + 1 < RECORDS && pick(8) ? (uintptr_t)&r[2 * i + 1] : 0,
			.right = 2 * i + 2 < RECORDS && pick(8) ? (uintptr_t)&r[2 * i + 2] : 0,
			.name = pick(10) ? strings + pick(500) : pick(5000), .kind = pick(9), .size = pick(100000),
			.weight = (int32_t)random_word() >> pick(24), .flags = (uint16_t)random_word(), .refs = (uint16_t)pick(50),
		};
	}
}

static uint64_t any_number(void)
{
	static const uint64_t extremes[] = {0, 1, 2, 15, 16, 63, 64, 255, 256, INT32_MAX, UINT32_MAX, INT64_MAX, UINT64_C(1) << 63, UINT64_MAX};

	switch (pick(4)) {
	case 0:
		return extremes[pick(sizeof(extremes) / sizeof(*extremes))];
	case 1:
		return pick(200);
	default:
		return random_word() >> pick(64);
	}
}

static void fill_event(struct fay_event *e, uint8_t *data, uint64_t *clock, unsigned number)
{
	static const char *const names[] = {"worker", "redis-server", "bash", "thread7", "a-name-of-15-by", ""};
	struct record *records = (void *)(data + DATA_SIZE / 2);

	fill_buffer(data, DATA_SIZE / 2, number);
	fill_records(records, (uintptr_t)data);
	*clock += random_word() >> (30 + pick(30));
	memset(e, 0, sizeof(*e));
	e->arg[0] = pick(3) ? pick(40) : any_number();
	e->arg[1] = pick(16) ? (uintptr_t)data : pick(8192);
	e->arg[2] = pick(3) ? pick(300) : any_number();
	e->arg[3] = pick(4) ? random_word() : any_number();
	e->arg[4] = pick(16) ? (uintptr_t)records : 0;
	e->arg[5] = any_number();
	e->time = *clock;
	e->cycles = *clock * 3;
	e->function = fay_name_hash("write");
	e->pid = 1000;
	e->tid = 1000 + pick(8);
	e->cpu = pick(70);
	strncpy(e->comm, names[pick(6)], FAY_COMM_SIZE - 1);
}

/* ---- the native reference ---- */

/* In scope of the libraries: the program exports it. */
int64_t fay_try_read(void *to, uint64_t size, uint64_t address);
int64_t fay_try_read(void *to, uint64_t size, uint64_t address)
{
	return harness_try_read(to, size, address);
}

void native_build(const char *sources, const char *folder, char *const *names, unsigned count)
{
	char list[PATH_MAX], command[PATH_MAX * 3];
	FILE *out;

	snprintf(list, sizeof(list), "%s/names", folder);
	out = fopen(list, "w");
	assert_non_null(out);
	for (unsigned i = 0; i < count; i++)
		fprintf(out, "%s\n", names[i]);
	fclose(out);
	snprintf(command, sizeof(command),
		 "xargs -P \"$(nproc)\" -I NAME clang-19 -std=gnu17 -O2 -w -fwrapv -fno-strict-aliasing -fPIC -shared -fvisibility=hidden "
		 "-DCORPUS_PLAIN -I " FAY_SOURCE "/include -I " FAY_SOURCE "/tests/corpus_c -o %s/NAME.so %s/NAME.c <%s", folder, sources, list);
	assert_int_equal(system(command), 0);
}

void native_open(const char *path, struct native *n)
{
	struct link_map *map;
	FILE *file = fopen(path, "rb");
	static uint8_t bytes[1 << 20];
	const Elf64_Ehdr *e = (const void *)bytes;
	const Elf64_Shdr *s;
	const char *names;

	assert_non_null(file);
	assert_true(fread(bytes, 1, sizeof(bytes), file) > sizeof(*e));
	fclose(file);
	memset(n, 0, sizeof(*n));
	n->library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!n->library)
		fail_msg("%s", dlerror());
	assert_int_equal(dlinfo(n->library, RTLD_DI_LINKMAP, &map), 0);
	s = (const void *)(bytes + e->e_shoff);
	names = (const char *)bytes + s[e->e_shstrndx].sh_offset;
	for (unsigned i = 1; i < e->e_shnum; i++) {
		const struct fay_image_header *h = (const void *)(map->l_addr + s[i].sh_addr);
		const struct fay_image_probe *p = (const void *)h;

		if (!strcmp(names + s[i].sh_name, ".fay.image")) {
			n->local_size = h->local_size;
			n->global_size = h->global_size;
		} else if (!strcmp(names + s[i].sh_name, ".fay.probes")) {
			uintptr_t code = (uintptr_t)&p->code + (uintptr_t)(intptr_t)p->code;

			memcpy(&n->probe, &code, sizeof(code));
		}
	}
	assert_non_null(n->probe);
}

static size_t size_of_region(uint32_t size)
{
	return size ? size : 8;
}

bool native_compare(const char *name, struct loaded *l, struct native *n, uint8_t *data, unsigned events)
{
	uint8_t *local = harness_guarded(size_of_region(n->local_size)), *global = harness_guarded(size_of_region(n->global_size));
	uint64_t clock = UINT64_C(1700000000000000000);
	struct fay_event *event = harness_guarded(sizeof(*event));
	bool same = true;

	assert_true(l->header->local_size >= n->local_size && l->header->global_size >= n->global_size);
	helper_log.readable = data;
	helper_log.readable_size = DATA_SIZE;
	seed = fay_name_hash(name);
	for (unsigned i = 0; i < events && same; i++) {
		fill_event(event, data, &clock, i);
		*l->event = *event;
		image_call(l, 0);
		n->probe(event, local, global);
		for (uint32_t at = 0; at < n->local_size && same; at++) {
			same = l->local[at] == local[at];
			if (!same)
				printf("  %s: DIFFERS: event %u: byte %u of the state is %02x guarded, %02x unguarded\n", name, i, at,
				       l->local[at], local[at]);
		}
		if (memcmp(l->global, global, size_of_region(n->global_size))) {
			printf("  %s: DIFFERS: event %u: shared state\n", name, i);
			same = false;
		}
		assert_memory_equal(l->event, event, sizeof(*event));
	}
	harness_guarded_free(local, size_of_region(n->local_size));
	harness_guarded_free(global, size_of_region(n->global_size));
	harness_guarded_free(event, sizeof(*event));
	return same;
}

bool image_accepted(const char *name, const struct fay_buffer *image)
{
	struct fay_verdict verdict;
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);
	bool yes;

	fay_verify(image->data, image->size, NULL, &verdict);
	yes = verdict.outcome == FAY_ACCEPTED;
	fay_verdict_print(out, name, &verdict);
	fclose(out);
	if (!yes)
		printf("  %.*s\n", (int)strcspn(text, "\n") + (int)strcspn(strchr(text, '\n') + 1, "\n") + 1, text);
	free(text);
	fay_verdict_deinit(&verdict);
	return yes;
}

