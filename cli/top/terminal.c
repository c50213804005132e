/* SPDX-License-Identifier: MIT */
/* What the terminal can do; apart, and <term.h> last, since that makes macros of words such as
 * `lines`. */
#include <unistd.h>

#include "parts.h"

#include <curses.h>

#include <term.h>

bool fay_top_can_draw(void)
{
	int status = 0;
	char cursor_to_place[] = "cup";
	return setupterm(NULL, STDOUT_FILENO, &status) == OK && tigetstr(cursor_to_place);
}
