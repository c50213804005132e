#include <fay/probe.h>

FAY_COUNT(n);

static uint64_t calls;

FAY_ENTRY("a!b")
{
	n.n = ++calls;
}
