#include <fay/probe.h>

FAY_COUNT(n);

FAY_ENTRY("a!b")
{
	volatile char *text = __builtin_alloca(event->arg[0] & 63);

	text[0] = 1;
	n.n += (uint64_t)text[event->arg[1] & 7];
}
