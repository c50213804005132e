#include <fay/probe.h>

FAY_COUNT(n);

FAY_TABLE(sizes, 65536, FAY_KEYS(FAY_KEY_U64(size)), FAY_VALUES(FAY_VALUE_HISTOGRAM(h)));

FAY_ENTRY("a!b")
{
	n.n++;
}
