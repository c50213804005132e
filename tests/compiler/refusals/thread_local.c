#include <fay/probe.h>

FAY_COUNT(n);

static _Thread_local uint64_t calls;

FAY_ENTRY("a!b")
{
	n.n = ++calls;
}
