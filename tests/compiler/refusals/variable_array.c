#include <fay/probe.h>

FAY_COUNT(n);

FAY_ENTRY("a!b")
{
	volatile char bytes[event->tid & 63];

	bytes[0] = 1;
}
