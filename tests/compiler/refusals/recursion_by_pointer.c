#include <fay/probe.h>

struct state {
	uint64_t (*next)(uint64_t);
	uint64_t result;
};
FAY_SCRATCH(struct state, s);

static uint64_t twice(uint64_t x)
{
	return s.next ? s.next(x) : 2 * x;
}

FAY_ENTRY("a!b")
{
	s.next = twice;
	s.result = twice(event->arg[0]);
}
