/* SPDX-License-Identifier: MIT */
// Columns of a line of CSV, quoted ones with doubled quotes.
// needs: nothing
#include "corpus.h"

STATE {
	uint64_t columns[17], quoted, widest;
};

PROBE("libc!fgets")
{
	char t[120];
	unsigned columns = 1, width = 0;
	bool quotes = false;

	if (READ(t, event->arg[1]))
		return;
	for (unsigned i = 0; i < sizeof(t) && t[i] && (quotes || t[i] != '\n'); i++) {
		if (t[i] == '"') {
			if (!quotes)
				state->quoted++;
			quotes = !quotes;
		} else if (t[i] == ',' && !quotes) {
			columns++;
			width = 0;
			continue;
		}
		if (++width > state->widest)
			state->widest = width;
	}
	state->columns[columns <= 16 ? columns : 16]++;
}
