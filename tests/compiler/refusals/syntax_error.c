#include <fay/probe.h>

FAY_COUNT(n);

FAY_ENTRY("a!b")
{
	n.n = event->no_such_field;
}
