/* SPDX-License-Identifier: MIT */
/* Calls whose arguments are known: numbers of all widths, enumerations, structures behind pointers.
 * What they are is in arguments.sh. */
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define USED(x) __asm__ volatile("" : : "r"(x) : "memory")
#define TRACED __attribute__((noinline))

enum operation { OPERATION_READ = 1, OPERATION_WRITE = 2, OPERATION_NONE = -5 };
enum flags { FLAG_HIGH = 0x80000000u, FLAG_LOW = 1 };

/* Constants that a signed byte or word of two bytes does not hold, also beside negative ones and in
 * a type of one byte. */
enum status { STATUS_OK = 200, STATUS_GONE = 410, STATUS_LAST = 65535 };
enum balance { BALANCE_BELOW = -200, BALANCE_BYTE = 128, BALANCE_WORD = 40000 };
enum __attribute__((packed)) level { LEVEL_LOW = 1, LEVEL_HIGH = 0x80 };
enum __attribute__((packed)) depth { DEPTH_BELOW = -128, DEPTH_ABOVE = 127 };

struct hidden; /* described in arguments_hidden.c */
struct hidden *hidden_make(int value);

struct part {
	int x;
	unsigned low : 3, middle : 7;
	int negative : 5;
	uint64_t wide : 40;
};
union number {
	uint32_t whole;
	uint8_t bytes[4];
};
typedef struct buffer {
	struct buffer *next;
	size_t len;
	char name[16];
	const char *title;
	struct part in[4]; /* a keyword of the query language */
	union number number;
	struct {
		short unnamed;
	};
	enum operation operation;
	_Bool full;
	int grid[2][3];
	int *numbers;
	struct hidden *hidden;
	double real;
} buffer_t;
struct request {
	buffer_t *buf;
	int fd;
};

TRACED int handle(struct request *request, int fd, unsigned char small, enum operation operation,
		  const char *path, const buffer_t *extra, long seventh, double real)
{
	USED(request);
	USED(fd);
	USED(small);
	USED(operation);
	USED(path);
	USED(extra);
	USED(seventh);
	return request ? -fd : (int)real;
}

TRACED short widths(int8_t a, uint16_t b, int32_t c, uint32_t d, int64_t e, _Bool f)
{
	USED(a);
	USED(b);
	USED(c);
	USED(d);
	USED(e);
	USED(f);
	return (short)c;
}

TRACED enum operation classify(unsigned n, enum flags flags)
{
	USED(flags);
	return n % 2 ? OPERATION_NONE : OPERATION_WRITE;
}

TRACED buffer_t *find(buffer_t *all, double weight, float other, unsigned n)
{
	USED(all);
	USED(n);
	return weight > other && n % 4 ? all->next : 0;
}

/* Arrays of characters that are full: what follows is not theirs. */
struct chunk {
	char kind[4];
	uint32_t size;
	char eight[8], nine[9], fifteen[15], sixteen[16];
	char after[8];
};

TRACED int answer(enum status status, enum balance balance, enum level level, enum depth depth,
		  const struct chunk *chunk)
{
	USED(status);
	USED(balance);
	USED(level);
	USED(depth);
	USED(chunk);
	return status == STATUS_OK;
}

/* A small structure goes in registers, a large one on the stack, a result in memory takes the first
 * register. */
struct small {
	long a, b;
};
struct large {
	long a[8];
};
TRACED struct large by_value(struct large large, int behind)
{
	USED(behind);
	return large;
}
TRACED long two_words(struct small small, int behind)
{
	USED(behind);
	return small.a + small.b;
}

/* Results that are no integers. */
TRACED void nothing(int n)
{
	USED(n);
}
TRACED double real(int n)
{
	return n + 0.5;
}
TRACED struct small two(int n)
{
	return (struct small){ n, 9 };
}
TRACED __int128 wide(int n)
{
	return (__int128)n << 64;
}
TRACED _Bool odd(int n)
{
	return n % 2;
}
TRACED const char *name_of(int n)
{
	return n % 4 ? "odd or even" : 0;
}

int main(int argc, char **argv)
{
	static int numbers[] = { 10, 20, 30 };
	buffer_t second = { .len = 99, .name = "second" };
	buffer_t first = { .next = &second,
			   .len = 4096,
			   .name = "first",
			   .title = "a title of more than 15 bytes",
			   .in = { [1] = { .x = -7,
					   .low = 5,
					   .middle = 100,
					   .negative = -3,
					   .wide = 0x1234567890 } },
			   .number.whole = 0x41424344,
			   .unnamed = -2,
			   .operation = OPERATION_WRITE,
			   .full = 1,
			   .grid = { { 1, 2, 3 }, { 4, 5, 6 } },
			   .numbers = numbers,
			   .hidden = hidden_make(17) };
	struct request request = { &first, 3 };
	struct chunk chunk = { "RIFF",      0x64636261,        "12345678",
			       "123456789", "123456789abcdef", "123456789abcdefg",
			       "after" };
	/* A string that ends where the memory does. */
	char *pages = mmap(0, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	munmap(pages + 4096, 4096);
	char *last = strcpy(pages + 4096 - 6, "/edge");
	USED(&first);
	USED(argv);
	USED(argc);
	for (int i = 0; i < 1000; i++) {
		handle(i % 10 ? &request : 0, i % 5 - 1, 200,
		       i % 2 ? OPERATION_READ : OPERATION_NONE, i % 4 ? "/srv/file" : last, &first,
		       7, 1.5);
		widths((int8_t)-i, (uint16_t)-i, -i, (uint32_t)-i, -i, i % 3 == 0);
		answer(i % 2 ? STATUS_OK : STATUS_LAST,
		       i % 4 == 0 ? BALANCE_BELOW
		       : i % 2    ? BALANCE_BYTE
				  : BALANCE_WORD,
		       i % 2 ? LEVEL_HIGH : LEVEL_LOW, i % 2 ? DEPTH_BELOW : DEPTH_ABOVE, &chunk);
		classify((unsigned)i, i % 2 ? FLAG_HIGH : FLAG_LOW);
		find(&first, 2, 1, (unsigned)i);
		by_value((struct large){ { i } }, i);
		two_words((struct small){ i, i }, i);
		nothing(i);
		USED((long)(real(i) + two(i).a + wide(i) + odd(i)));
		USED(name_of(i));
	}
	while (argc > 1) { /* for ever */
		handle(&request, 4, 200, OPERATION_WRITE, "/srv/file", &first, 7, 1.5);
		usleep(1000);
	}
	return 0;
}
