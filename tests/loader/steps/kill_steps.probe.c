/* Every function of the loader's target, entered and left. */
#include <fay/probe.h>

FAY_COUNT(entries);
FAY_COUNT(returns);

FAY_ENTRY("fay-test-target!fn_*")
{
	fay_count(&entries);
}

FAY_RETURN("fay-test-target!fn_c")
{
	fay_count(&returns);
}
