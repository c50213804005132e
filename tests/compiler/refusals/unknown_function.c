#include <fay/probe.h>

FAY_COUNT(n);

uint64_t checksum(uint64_t x);

FAY_ENTRY("a!b")
{
	n.n += checksum(event->arg[0]);
}
