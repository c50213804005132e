#include <fay/probe.h>

FAY_COUNT(n);

FAY_ENTRY("a!b")
{
	n.n += *(uint64_t *)event->arg[0];
}
