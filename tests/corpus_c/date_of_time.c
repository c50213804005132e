/* SPDX-License-Identifier: MIT */
// Days since 1970 to year, month and day (Hinnant's method).
// needs: nothing
#include "corpus.h"

STATE {
	uint32_t year, month, day;
	uint64_t by_month[13], by_weekday[7];
};

PROBE("libc!write")
{
	uint64_t days = event->time / 86400000000000u + 719468;
	uint32_t era = (uint32_t)(days / 146097), in_era = (uint32_t)(days % 146097);
	uint32_t year = (in_era - in_era / 1460 + in_era / 36524 - in_era / 146096) / 365;
	uint32_t in_year = in_era - (365 * year + year / 4 - year / 100);
	uint32_t part = (5 * in_year + 2) / 153;

	state->day = in_year - (153 * part + 2) / 5 + 1;
	state->month = part < 10 ? part + 3 : part - 9;
	state->year = year + era * 400 + (state->month <= 2);
	if (part < 12)
		state->by_month[part < 10 ? part + 3 : part - 9]++;
	state->by_weekday[(days + 3) % 7]++;
}
