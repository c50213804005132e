#include <fay/probe.h>

FAY_COUNT(n);

FAY_ENTRY("a!b")
{
	unsigned __int128 product = (unsigned __int128)event->arg[0] * event->arg[1];

	n.n += (uint64_t)(product / event->arg[2]);
}
