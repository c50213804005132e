// SPDX-License-Identifier: MIT
// `switched_target MODE`: traced calls that go on elsewhere than where they began, ROUNDS times. A
// coroutine has a stack of its own.
//
// stolen a coroutine that two threads resume in turn: each of its calls begins in one thread and
// returns in the other, and later calls have their return addresses at
//               the same place of its stack
//     thrown    the same, where the calls are left by exceptions
//     jumped    coroutines that switch by longjmp, to and fro over one whose stack is gone
//     waiting   the same; says "ready" and "half", and goes on after a line of input each
//
// Checks that the program works as it would untraced, and ends by printing how many traced calls
// began, returned, and were left by unwinding or longjmp: "ENTRIES RETURNS EXCEPTIONS".
#undef _FORTIFY_SOURCE // its longjmp refuses to switch stacks
#include <csetjmp>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <pthread.h>
#include <semaphore.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#define TRACED extern "C" __attribute__((noinline, noclone, used))
#define CLOBBER asm volatile("" ::: "memory")

static const long ROUNDS = 200;
static const size_t STACK = 256 << 10;

static void expect(bool condition, const char *what)
{
	if (condition)
		return;
	fprintf(stderr, "switched_target: %s\n", what);
	_exit(70);
}

// ---- one coroutine, two threads ----

static ucontext_t coroutine, resumer;
static char coroutine_stack[256 << 10];

// Goes on in the thread that resumes the coroutine next.
static void give_up()
{
	swapcontext(&coroutine, &resumer);
}

TRACED long traced_first(long x)
{
	give_up();
	CLOBBER;
	return x + 1;
}

TRACED long traced_second(long x)
{
	give_up();
	CLOBBER;
	return x * 2;
}

static void returns_elsewhere()
{
	for (long i = 0; i < ROUNDS; i++) {
		const long one = traced_first(i);
		expect(one == i + 1, "a call came back to another's caller");
		const long two = traced_second(i);
		expect(two == i * 2, "a call came back to another's caller");
	}
	for (;;)
		give_up();
}

TRACED long traced_thrower(long x)
{
	give_up();
	CLOBBER;
	throw x;
}

TRACED long traced_passed(long x)
{
	const long y = traced_thrower(x);
	CLOBBER;
	return y + 1;
}

static void throws_elsewhere()
{
	for (long i = 0; i < ROUNDS; i++) {
		long caught = -1;
		try {
			if (i % 2)
				traced_passed(i);
			else
				traced_thrower(i);
		} catch (long thrown) {
			caught = thrown;
		}
		expect(caught == i, "an exception was lost");
	}
	for (;;)
		give_up();
}

struct thread {
	pthread_t id;
	sem_t go, done;
};

static void *resume_all(void *argument)
{
	struct thread *thread = (struct thread *)argument;
	for (;;) {
		sem_wait(&thread->go);
		swapcontext(&resumer, &coroutine);
		sem_post(&thread->done);
	}
	return nullptr;
}

static void in_turn(void (*body)(), long times)
{
	static struct thread
		threads[3]; // never joined; three and two calls a round: each call meets each pair
	getcontext(&coroutine);
	coroutine.uc_stack.ss_sp = coroutine_stack;
	coroutine.uc_stack.ss_size = sizeof(coroutine_stack);
	makecontext(&coroutine, body, 0);
	for (auto &thread : threads) {
		sem_init(&thread.go, 0, 0);
		sem_init(&thread.done, 0, 0);
		expect(!pthread_create(&thread.id, nullptr, resume_all, &thread), "pthread_create");
	}
	for (long i = 0; i < times; i++) {
		const long pattern = i % 7; // back to a thread at once, and later
		struct thread &thread = threads[pattern == 2 || pattern == 5 ? 2 : pattern % 2];
		sem_post(&thread.go);
		sem_wait(&thread.done);
	}
}

// ---- coroutines that switch by longjmp ----

static jmp_buf place[4];
static ucontext_t start, back;
static bool started;

// From coroutine `from` to where `to` has left.
static void hop(int from, int to)
{
	if (!_setjmp(place[from]))
		_longjmp(place[to], 1);
}

TRACED long traced_hop(int from, int to, long x)
{
	hop(from, to);
	CLOBBER;
	return x + from;
}

// Stays in a traced call for good.
TRACED void traced_abandoned(int from)
{
	if (!_setjmp(place[from])) {
		started = true;
		swapcontext(&start, &back);
	}
}

static void abandoned()
{
	traced_abandoned(0);
}

// 1 is the lower stack, 2 the upper: from 1 to 2 is a jump that seems to leave calls.
static void lower()
{
	for (long i = 0;; i++) {
		const long x = traced_hop(1, 2, i);
		expect(x == i + 1, "the lower coroutine's value");
	}
}

static bool waits;

static void wait_for_line(const char *what)
{
	if (!waits)
		return;
	puts(what);
	fflush(stdout);
	getchar();
}

static void upper()
{
	for (long i = 0; i < ROUNDS; i++) {
		if (i == ROUNDS / 2)
			wait_for_line("half");
		const long x = traced_hop(2, 1, i);
		expect(x == i + 2, "the upper coroutine's value");
	}
	started = true;
	_longjmp(place[3], 1);
}

// Runs `body` on a stack up to where it first leaves.
static void begin(char *stack, void (*body)())
{
	getcontext(&start);
	start.uc_stack.ss_sp = stack;
	start.uc_stack.ss_size = STACK;
	makecontext(&start, body, 0);
	swapcontext(&back, &start);
}

static void first_lower()
{
	if (!_setjmp(place[1]))
		swapcontext(&start, &back);
	lower();
}

static void jumped()
{
	wait_for_line("ready");
	char *stacks = (char *)mmap(nullptr, 3 * STACK, PROT_READ | PROT_WRITE,
				    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	expect(stacks != MAP_FAILED, "mmap");
	begin(stacks, first_lower);
	begin(stacks + STACK, abandoned);
	munmap(stacks + STACK, STACK);
	if (!_setjmp(place[3]))
		begin(stacks + 2 * STACK, upper);
	expect(started, "the coroutines did not end");
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "stolen";
	if (!strcmp(mode, "stolen")) {
		in_turn(returns_elsewhere, 2 * ROUNDS + 1);
		printf("%ld %ld 0\n", 2 * ROUNDS, 2 * ROUNDS);
	} else if (!strcmp(mode, "thrown")) {
		in_turn(throws_elsewhere, ROUNDS + 1);
		printf("%ld 0 %ld\n", ROUNDS + ROUNDS / 2, ROUNDS + ROUNDS / 2);
	} else {
		waits = !strcmp(mode, "waiting");
		jumped();
		// Each round has a call on either stack; the lower one's seems to be left, and
		// returns, but for the last.
		printf("%ld %ld 2\n", 2 * ROUNDS + 1, 2 * ROUNDS - 1);
	}
	fflush(stdout);
	_exit(0);
}
