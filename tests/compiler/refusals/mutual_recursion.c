#include <fay/probe.h>

FAY_COUNT(n);

static unsigned odd(unsigned x);

static unsigned even(unsigned x)
{
	return x == 0 ? 1 : odd(x - 1);
}

static unsigned odd(unsigned x)
{
	return x == 0 ? 0 : even(x - 1);
}

FAY_ENTRY("a!b")
{
	n.n += even(event->tid & 7);
}
