#include <fay/probe.h>

FAY_COUNT(n);

FAY_SHARED_SCRATCH(uint64_t, flag);

FAY_ENTRY("a!b")
{
	__atomic_store_n(&flag, 1, __ATOMIC_SEQ_CST);
}
