#include <fay/probe.h>

FAY_COUNT(n);

FAY_ENTRY("a!b")
{
	uint64_t (*target)(uint64_t) = (uint64_t (*)(uint64_t))event->arg[0];

	n.n += target(1);
}
