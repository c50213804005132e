#include <fay/probe.h>

FAY_COUNT(n);

FAY_ENTRY("a!b")
{
	static const void *const labels[2] = {&&even, &&odd};

	goto *labels[event->arg[0] & 1];
even:
	n.n++;
	return;
odd:
	n.n += 2;
}
