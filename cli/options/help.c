/* SPDX-License-Identifier: MIT */
/* Options as a table, for getopt_long(3) and for --help. */
#include <stdio.h>
#include <string.h>

#include "options.h"

#define WIDTH 80
#define MARGIN 19 /* where what an option is for begins */

size_t fay_cli_long_options(const struct fay_cli_option *table, struct option *options)
{
	size_t count = 0;
	for (; table->name; table++, count++)
		options[count] = (struct option){ .name = table->name,
						  .has_arg = table->argument ? required_argument
									     : no_argument,
						  .val = table->value };
	options[count] = (struct option){ 0 };
	return count;
}

/* A word, on a new line where it does not fit; returns the column behind it. */
static int put_word(const char *word, int length, int column)
{
	if (column > MARGIN && column + 1 + length > WIDTH)
		column = printf("\n%*s", MARGIN, "") - 1;
	else if (column > MARGIN)
		column += printf(" ");
	return column + printf("%.*s", length, word);
}

static void put_text(const char *text, int column)
{
	if (column >= MARGIN) /* as between words */
		column += printf(" ");
	else
		column += printf("%*s", MARGIN - column, "");
	while (*text) {
		int length = (int)strcspn(text, " ");
		column = put_word(text, length, column);
		text += length;
		text += *text == ' ';
	}
	printf("\n");
}

static int put_names(const struct fay_cli_option *option, const char *letters, int column)
{
	char letter[8] = "", text[64];
	if (option->value < 128 && strchr(letters, option->value))
		snprintf(letter, sizeof(letter), "-%c, ", option->value);
	snprintf(text, sizeof(text), "%s--%s%s%s", letter, option->name,
		 option->argument ? " " : "", option->argument ? option->argument : "");
	if (column && column + 2 + (int)strlen(text) >= WIDTH)
		column = printf(",\n  ") - 2;
	else
		column += printf(column ? ", " : "  ");
	return column + printf("%s", text);
}

void fay_cli_help(const struct fay_cli_option *table, const char *letters)
{
	int column = 0;
	for (; table->name; table++) {
		column = put_names(table, letters, column);
		if (!table->help) /* that of the next one is of both */
			continue;
		put_text(table->help, column);
		column = 0;
	}
}
