/* SPDX-License-Identifier: MIT */
// TCP's connection states, driven by calls: a switch in a switch.
// needs: nothing
#include "corpus.h"

enum conn { CLOSED, LISTEN, SYN_SENT, ESTABLISHED, FIN_WAIT, CLOSE_WAIT, TIME_WAIT };

STATE {
	enum conn now;
	uint64_t entered[7], refused;
};

PROBE("libc!setsockopt")
{
	enum conn next = state->now;

	switch (state->now) {
	case CLOSED:
		next = event->arg[0] & 1 ? LISTEN : SYN_SENT;
		break;
	case LISTEN:
	case SYN_SENT:
		switch (event->arg[0] & 3) {
		case 0:
			next = ESTABLISHED;
			break;
		case 1:
			next = CLOSED;
			break;
		default:
			state->refused++;
		}
		break;
	case ESTABLISHED:
		next = event->arg[0] & 1 ? FIN_WAIT : CLOSE_WAIT;
		break;
	case FIN_WAIT:
		next = TIME_WAIT;
		break;
	default:
		next = CLOSED;
	}
	if (next != state->now && (unsigned)next < 7)
		state->entered[next]++;
	state->now = next;
}
