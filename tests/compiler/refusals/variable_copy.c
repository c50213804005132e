#include <fay/probe.h>

FAY_COUNT(n);

FAY_SCRATCH(struct { char bytes[64]; }, copy);

FAY_ENTRY("a!b")
{
	__builtin_memset(&copy, 0, event->arg[2]);
}
