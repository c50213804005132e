// SPDX-License-Identifier: MIT
/*
 * interrupted NOTES COUNT: two threads call functions of all kinds, and timers' signals interrupt
 * them anywhere. The handler notes the stack by the compiler's unwinder and calls reached(), which
 * is traced: COUNT times in all. What was noted goes to NOTES, "FILE ADDRESS;FILE ADDRESS..." a
 * line, addresses as in the file, from what the handler returns to on.
 */
#include <dlfcn.h>
#include <execinfo.h>
#include <link.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <string>
#include <thread>
#include <vector>

#define KEPT __attribute__((noinline, noclone))
#define FRAMES 24
#define NOTES_MAX 100000
#define EVERY 150000 // ns between two signals

extern "C" {
// of a library, by its procedure linkage table: interrupted.sh
int linked_one(int x);
int linked_two(int x);
int linked_call(int (*function)(int), int x);
KEPT void reached(long number)
{
	__asm__ volatile("" : : "r"(number) : "memory");
}
}

static struct note {
	int count;
	void *frames[FRAMES];
} notes[NOTES_MAX];
static std::atomic<long> noted;
static long wanted;
static thread_local volatile long sink;

// Where libgcc leaves its own frames by __builtin_eh_return its unwind tables are wrong, and it
// crashes: there is no answer to compare with.
static thread_local sigjmp_buf no_answer;
static thread_local volatile bool asked;

static void crashed(int)
{
	if (!asked)
		abort();
	siglongjmp(no_answer, 1);
}

static void handler(int)
{
	void *frames[FRAMES];
	int count = 0;
	asked = true;
	if (!sigsetjmp(no_answer, 1))
		count = backtrace(frames, FRAMES);
	asked = false;
	long number = count ? noted.fetch_add(1) : wanted;
	if (number >= wanted)
		return;
	notes[number].count = count;
	memcpy(notes[number].frames, frames, sizeof(frames));
	reached(number);
}

// The stack pointer alone tells where the caller's frame is, or rbp, or what is saved there.
KEPT static int dynamic(int n)
{
	volatile char *some = static_cast<char *>(alloca(static_cast<size_t>(n % 500 + 16)));
	some[0] = static_cast<char>(n);
	return linked_one(some[0]) + linked_call(linked_two, n);
}
__attribute__((force_align_arg_pointer)) KEPT static int realigned(int n)
{
	alignas(64) volatile int some[16];
	volatile char *more = static_cast<char *>(alloca(static_cast<size_t>(n % 100 + 16)));
	more[0] = 1;
	some[n % 16] = n;
	return linked_one(some[n % 16]) + more[0];
}
KEPT static int large(int n)
{
	volatile char some[100000];
	some[n] = 1;
	return linked_two(some[n]);
}
KEPT static int deep(int n)
{
	if (!n)
		return linked_one(n);
	int below = deep(n - 1);
	return linked_two(below) + 1;
}
// They end in jumps to each other.
KEPT static int last(int n)
{
	__asm__ volatile("" : "+r"(n));
	return n & 1 ? linked_one(n) : linked_two(n);
}
KEPT static int middle(int n)
{
	__asm__ volatile("" : "+r"(n));
	return last(n + 1);
}
KEPT static int first(int n)
{
	__asm__ volatile("" : "+r"(n));
	return n % 3 ? middle(n) : last(n);
}

struct cleanup {
	int n;
	KEPT ~cleanup()
	{
		sink = sink + linked_one(n);
	}
};
KEPT static int thrower(int n)
{
	cleanup at_end{ n };
	if (!n)
		throw std::string("thrown from some depth, and longer than what fits in a string");
	return thrower(n - 1) + 1;
}
KEPT static int passes_on(int n)
{
	cleanup at_end{ n };
	try {
		return thrower(n);
	} catch (const std::string &) {
		sink = sink + linked_two(n);
		throw;
	}
}
KEPT static int catches(int n)
{
	try {
		return passes_on(n);
	} catch (const std::string &what) {
		return linked_one(static_cast<int>(what.size()));
	}
}

static int compare(const void *a, const void *b)
{
	return linked_one(*static_cast<const int *>(a)) - linked_one(*static_cast<const int *>(b));
}
KEPT static int library(int n)
{
	int numbers[40];
	char text[200];
	std::map<std::string, int> words;
	for (int i = 0; i < 40; i++)
		numbers[i] = (i * 7919 + n) % 101;
	qsort(numbers, 40, sizeof(numbers[0]), compare);
	snprintf(text, sizeof(text), "%d %s %.6f %08lx", n, "word", n / 3.0, static_cast<long>(n));
	for (int i = 0; i < 8; i++)
		words[std::to_string(numbers[i]) + text] = i;
	std::vector<std::string> sorted;
	for (const auto &word : words)
		sorted.push_back(word.first);
	std::sort(sorted.begin(), sorted.end(), std::greater<std::string>());
	return static_cast<int>(strtod(text, nullptr)) + static_cast<int>(sorted[0].size());
}
KEPT static int kernel(int n)
{
	struct timespec now;
	for (int i = 0; i < 20; i++) {
		clock_gettime(CLOCK_MONOTONIC, &now);
		sink = sink + now.tv_nsec;
	}
	return n + static_cast<int>(syscall(SYS_getppid));
}
KEPT static void jumps_back(jmp_buf *where, int n)
{
	if (!n)
		longjmp(*where, 1);
	jumps_back(where, n - 1);
	sink = sink + 1;
}
KEPT static int jumped(int n)
{
	jmp_buf where;
	if (setjmp(where))
		return linked_one(n);
	jumps_back(&where, n % 8);
	return 0;
}
// A stack of its own
struct routine {
	ucontext_t caller, own;
	char stack[65536];
};
static thread_local routine *running;
KEPT static void routine_body(void)
{
	for (int n = 0;; n++) {
		sink = sink + first(n) + deep(n % 5);
		swapcontext(&running->own, &running->caller);
	}
}
KEPT static int switched(routine *own)
{
	running = own;
	swapcontext(&own->caller, &own->own);
	return 1;
}

static void work()
{
	static thread_local routine own;
	getcontext(&own.own);
	own.own.uc_stack.ss_sp = own.stack;
	own.own.uc_stack.ss_size = sizeof(own.stack);
	makecontext(&own.own, routine_body, 0);
	for (int n = 0; noted < wanted; n++) {
		int sum = library(n) + kernel(n) + catches(n % 6);
		for (int i = 0; i < 50; i++)
			sum += first(n + i) + dynamic(n) + realigned(n) + large(n % 1000);
		sum += deep(n % 40) + jumped(n) + switched(&own);
		sink = sink + sum;
	}
}

static void interrupted()
{
	struct sigevent event = {};
	struct itimerspec often = { { 0, EVERY }, { 0, EVERY } };
	timer_t timer;
	event.sigev_notify = SIGEV_THREAD_ID;
	event.sigev_signo = SIGUSR1;
	event._sigev_un._tid = static_cast<pid_t>(syscall(SYS_gettid));
	if (timer_create(CLOCK_MONOTONIC, &event, &timer) ||
	    timer_settime(timer, 0, &often, nullptr))
		abort();
	work();
	timer_delete(timer);
}

static void write_notes(const char *path)
{
	char program[4096] = "";
	FILE *file = fopen(path, "we");
	if (!file || readlink("/proc/self/exe", program, sizeof(program) - 1) < 0)
		abort();
	for (long i = 0; i < wanted; i++) {
		for (int k = 1; k < notes[i].count; k++) {
			char *at = static_cast<char *>(notes[i].frames[k]);
			Dl_info info;
			struct link_map *map;
			// Not so: the kernel's own object, which is no file.
			bool known = dladdr1(at - 1, &info, reinterpret_cast<void **>(&map),
					     RTLD_DL_LINKMAP) &&
				     (!*map->l_name || *map->l_name == '/');
			fprintf(file, "%s%s %lx", k > 1 ? ";" : "",
				!known         ? "?"
				: *map->l_name ? map->l_name
					       : program,
				reinterpret_cast<unsigned long>(at) - (known ? map->l_addr : 0));
		}
		fputc('\n', file);
	}
	fclose(file);
}

int main(int argc, char **argv)
{
	struct sigaction action = {};
	void *some[1];
	wanted = argc > 2 ? std::min(atol(argv[2]), long{ NOTES_MAX }) : 0;
	backtrace(some, 1); // loads the unwinder
	action.sa_handler = handler;
	action.sa_flags = SA_RESTART;
	sigaction(SIGUSR1, &action, nullptr);
	action.sa_handler = crashed;
	sigaction(SIGSEGV, &action, nullptr);
	sigaction(SIGBUS, &action, nullptr);
	puts("ready");
	fflush(stdout);
	getchar();
	std::thread other(interrupted);
	interrupted();
	other.join();
	write_notes(argv[1]);
	puts("did");
	fflush(stdout);
	getchar();
	return 0;
}
