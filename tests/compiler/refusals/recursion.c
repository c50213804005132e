#include <fay/probe.h>

FAY_COUNT(n);

static unsigned depth(unsigned x)
{
	return x ? 1 + depth(x / 3) : 0;
}

FAY_ENTRY("a!b")
{
	n.n += depth(event->tid);
}
