#include <fay/probe.h>

FAY_COUNT(n);

FAY_SCRATCH(struct { uint64_t *where; uint64_t value; }, keep);

FAY_ENTRY("a!b")
{
	keep.where = &keep.value;
}

FAY_RETURN("a!b")
{
	*keep.where = 1;
}
