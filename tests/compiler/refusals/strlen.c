#include <fay/probe.h>

FAY_COUNT(n);

#include <string.h>

FAY_ENTRY("a!b")
{
	n.n += strlen(event->comm);
}
