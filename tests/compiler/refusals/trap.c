#include <fay/probe.h>

FAY_COUNT(n);

FAY_ENTRY("a!b")
{
	if (!event->arg[0])
		__builtin_trap();
	n.n++;
}
