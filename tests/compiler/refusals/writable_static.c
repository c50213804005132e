#include <fay/probe.h>

FAY_COUNT(n);

FAY_ENTRY("a!b")
{
	static uint32_t before;

	n.n += event->tid != before;
	before = event->tid;
}
