// SPDX-License-Identifier: MIT
// C++ exceptions through traced frames, for every unwinder and way to link: foreign_exceptions.sh.
#include <exception>
#include <stdexcept>
#include <string>
#include <thread>

#include "foreign.h"

enum { TIMES = 200 };
static thread_local long cleaned;

struct cleanup {
	~cleanup()
	{
		cleaned++;
	}
};

TRACED long traced_inner(long x)
{
	CLOBBER;
	if (x % 2)
		throw std::runtime_error(std::to_string(x));
	return x;
}
TRACED long traced_middle(long x)
{
	cleanup cleanup;
	long y = traced_inner(x);
	CLOBBER;
	return y + 1;
}
TRACED long traced_again(long x)
{
	try {
		return traced_middle(x);
	} catch (const std::exception &) {
		CLOBBER;
		throw;
	}
}
TRACED long traced_outer(long x)
{
	try {
		return traced_again(x);
	} catch (const std::runtime_error &e) {
		return -std::stol(e.what());
	}
}

static long throw_often()
{
	long sum = 0, before = cleaned;

	for (long i = 0; i < TIMES; i++)
		sum += i * traced_outer(i);
	expect(cleaned - before == TIMES, "destructors");
	tally(4 * TIMES, TIMES + 3 * TIMES / 2, 3 * TIMES / 2);
	return sum;
}

static long in_threads()
{
	long sums[4];
	std::thread threads[4];

	for (int t = 0; t < 4; t++)
		threads[t] = std::thread([&sums, t] { sums[t] = throw_often(); });
	for (auto &thread : threads)
		thread.join();
	expect(sums[0] == sums[1] && sums[1] == sums[2] && sums[2] == sums[3], "threads' sums");
	return sums[0];
}

// An exception within a handler, and one that goes on in another thread.
TRACED long traced_nested(long x)
{
	try {
		return traced_inner(x);
	} catch (const std::runtime_error &) {
		try {
			return traced_inner(x + 2);
		} catch (const std::runtime_error &e) {
			std::throw_with_nested(std::logic_error(e.what()));
		}
	}
}
TRACED void traced_carry(std::exception_ptr what)
{
	CLOBBER;
	std::rethrow_exception(what);
}
static long nested()
{
	long sum = 0;

	for (long i = 0; i < 20; i++) {
		std::exception_ptr kept;
		try {
			sum += traced_nested(i);
		} catch (...) {
			kept = std::current_exception();
		}
		tally(i % 2 ? 3 : 2, i % 2 ? 0 : 2, i % 2 ? 3 : 0);
		if (!kept)
			continue;
		std::thread([&] {
			try {
				traced_carry(kept);
			} catch (const std::logic_error &e) {
				sum += 1000 * std::stol(e.what());
			}
		}).join();
		tally(1, 0, 1);
	}
	return sum;
}

// The exception crosses frames that are deep, and calls that return meanwhile.
TRACED long traced_deep(long n)
{
	if (n == 0)
		throw n;
	long y = traced_deep(n - 1);
	CLOBBER;
	return y + 1;
}
struct calls_at_end {
	long *sum;
	~calls_at_end()
	{
		*sum += traced_outer(3);
	}
};
static long deep()
{
	long sum = 0;

	for (long depth : { 1, 30, 300 }) {
		try {
			calls_at_end end{ &sum };
			sum += traced_deep(depth);
		} catch (long x) {
			sum += depth + x;
		}
		tally(depth + 1 + 4, 1, depth + 1 + 3);
	}
	return sum;
}

SCENARIOS({ "throws", throw_often }, { "threads", in_threads }, { "nested", nested },
	  { "deep", deep })
