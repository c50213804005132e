// SPDX-License-Identifier: MIT
// C++20's coroutines, and Boost's: foreign_stacks.sh, with -DBOOST the latter.
#include <stdexcept>

#include "foreign.h"

TRACED long traced_leaf(long x)
{
	CLOBBER;
	if (x % 7 == 6)
		throw std::runtime_error("six");
	return x + 1;
}
// Of 0 to 13 two throw.
static long leaves(long x)
{
	try {
		return traced_leaf(x);
	} catch (const std::runtime_error &) {
		return -1000;
	}
}

#ifndef BOOST
#include <coroutine>

struct generator {
	struct promise_type {
		long value = 0;
		std::exception_ptr left;
		generator get_return_object()
		{
			return { std::coroutine_handle<promise_type>::from_promise(*this) };
		}
		std::suspend_always initial_suspend()
		{
			return {};
		}
		std::suspend_always final_suspend() noexcept
		{
			return {};
		}
		std::suspend_always yield_value(long x)
		{
			value = x;
			return {};
		}
		void return_void()
		{
		}
		void unhandled_exception()
		{
			left = std::current_exception();
		}
	};
	std::coroutine_handle<promise_type> handle;
};
static generator numbers(long count)
{
	for (long i = 0; i < count; i++)
		co_yield leaves(i);
	traced_leaf(6);
}
TRACED long traced_resume(const generator &g)
{
	g.handle.resume();
	CLOBBER;
	return g.handle.done() ? 0 : g.handle.promise().value;
}
static long generators()
{
	long sum = 0;

	for (int i = 0; i < 50; i++) {
		generator g = numbers(14);
		while (!g.handle.done())
			sum += traced_resume(g);
		expect(g.handle.promise().left != nullptr, "the coroutine's exception");
		g.handle.destroy();
	}
	tally(50 * 30, 50 * 27, 50 * 3);
	return sum;
}
SCENARIOS({ "generators", generators })

#else
#include <boost/context/continuation.hpp>
#include <boost/coroutine2/all.hpp>
#include <boost/fiber/all.hpp>

typedef boost::coroutines2::coroutine<long> coroutine;
TRACED void traced_yield(coroutine::push_type &to, long x)
{
	to(x);
	CLOBBER;
}
static long coroutines()
{
	long sum = 0;

	for (int i = 0; i < 20; i++) {
		coroutine::pull_type from([](coroutine::push_type &to) {
			for (long x = 0; x < 14; x++)
				traced_yield(to, leaves(x));
		});
		for (long x : from)
			sum += x;
		// One that is destroyed within a call, by unwinding.
		coroutine::pull_type left([](coroutine::push_type &to) { traced_yield(to, 1); });
		sum += left.get();
	}
	tally(20 * 29, 20 * 26, 20 * 3);
	return sum;
}

namespace context = boost::context;
TRACED context::continuation traced_switch(context::continuation &&to)
{
	auto back = to.resume();
	CLOBBER;
	return back;
}
static long continuations()
{
	long sum = 0;

	for (int i = 0; i < 20; i++) {
		context::continuation c = context::callcc([&](context::continuation &&to) {
			for (long x = 0; x < 14; x++) {
				sum += leaves(x);
				to = traced_switch(std::move(to));
			}
			return std::move(to);
		});
		while (c)
			c = traced_switch(std::move(c));
	}
	tally(20 * (14 + 28), 20 * (12 + 28), 20 * 2);
	return sum;
}

TRACED void traced_pass()
{
	boost::this_fiber::yield();
	CLOBBER;
}
static long fibers()
{
	long sum = 0;
	boost::fibers::fiber all[5];

	for (auto &one : all)
		one = boost::fibers::fiber([&] {
			for (long x = 0; x < 14; x++) {
				sum += leaves(x);
				traced_pass();
			}
		});
	for (auto &one : all)
		one.join();
	tally(5 * 28, 5 * 26, 5 * 2);
	return sum;
}
SCENARIOS({ "coroutines", coroutines }, { "continuations", continuations }, { "fibers", fibers })
#endif
