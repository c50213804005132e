#include <fay/probe.h>

FAY_COUNT(n);

#include <stdlib.h>

FAY_ENTRY("a!b")
{
	uint64_t *list = malloc(64);

	list[0] = event->arg[0];
	n.n += list[0];
	free(list);
}
