#include <fay/probe.h>

FAY_COUNT(n);

#include <stdio.h>

FAY_ENTRY("a!b")
{
	printf("%llu\n", (unsigned long long)event->arg[0]);
}
