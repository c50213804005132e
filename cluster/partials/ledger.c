/* SPDX-License-Identifier: MIT */
#include <assert.h>

#include "partials.h"

static uint64_t bit(uint64_t sequence)
{
	return 1ull << (sequence % 64);
}

static uint64_t word(uint64_t sequence)
{
	return sequence % FAY_LEDGER_AHEAD / 64;
}

static bool has(const struct fay_ledger *ledger, uint64_t sequence)
{
	if (sequence <= ledger->upto)
		return true;
	return sequence - ledger->upto <= FAY_LEDGER_AHEAD &&
	       ledger->ahead[word(sequence)] & bit(sequence);
}

enum fay_ledger_state fay_ledger_look(const struct fay_ledger *ledger, uint64_t first,
				      uint64_t last)
{
	if (last <= ledger->upto)
		return FAY_LEDGER_OLD;
	if (last - ledger->upto > FAY_LEDGER_AHEAD)
		return FAY_LEDGER_FAR;
	bool some = first <= ledger->upto, all = true;
	/* At most FAY_LEDGER_AHEAD of them lie beyond upto. */
	for (uint64_t i = first > ledger->upto ? first : ledger->upto + 1; i <= last; i++) {
		bool there = has(ledger, i);
		some |= there;
		all &= there;
	}
	return all ? FAY_LEDGER_OLD : some ? FAY_LEDGER_MIXED : FAY_LEDGER_NEW;
}

void fay_ledger_enter(struct fay_ledger *ledger, uint64_t first, uint64_t last)
{
	assert(fay_ledger_look(ledger, first, last) == FAY_LEDGER_NEW);
	for (uint64_t i = first; i <= last; i++)
		ledger->ahead[word(i)] |= bit(i);
	while (ledger->ahead[word(ledger->upto + 1)] & bit(ledger->upto + 1)) {
		ledger->upto++;
		ledger->ahead[word(ledger->upto)] &= ~bit(ledger->upto);
	}
}
