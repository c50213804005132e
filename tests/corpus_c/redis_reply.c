/* SPDX-License-Identifier: MIT */
// RESP replies by their first byte, with integers summed.
// needs: nothing
#include "corpus.h"

STATE {
	uint64_t status, errors, integers, bulk, arrays, nil, other;
	int64_t sum;
};

PROBE("redis-server!writeToClient")
{
	char reply[24];

	if (READ(reply, event->arg[1]))
		return;
	switch (reply[0]) {
	case '+':
		state->status++;
		break;
	case '-':
		state->errors++;
		break;
	case ':': {
		bool negative = reply[1] == '-';
		int64_t value = 0;

		for (unsigned i = negative ? 2 : 1; i < 20; i++) {
			if (reply[i] < '0' || reply[i] > '9')
				break;
			value = (int64_t)((uint64_t)value * 10 + (uint64_t)(reply[i] - '0'));
		}
		state->integers++;
		state->sum = (int64_t)((uint64_t)state->sum + (uint64_t)(negative ? -value : value));
		break;
	}
	case '$':
		if (reply[1] == '-')
			state->nil++;
		else
			state->bulk++;
		break;
	case '*':
		state->arrays++;
		break;
	default:
		state->other++;
	}
}
