#include <fay/probe.h>

FAY_COUNT(n);

FAY_ENTRY("a!b")
{
	__atomic_fetch_max(&n.n, event->arg[0], __ATOMIC_RELAXED);
}
