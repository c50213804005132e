/* SPDX-License-Identifier: MIT */
/* What words mean: the tables of docs/faylinq.md, which are there only (words.awk). */
#include <string.h>

#include "parts.h"

static const struct {
	const char *word, *text;
} words[] = {
#include "words.inc"
};

const char *fay_lsp_word(const char *word, size_t length)
{
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (strlen(words[i].word) == length && !memcmp(words[i].word, word, length))
			return words[i].text;
	return NULL;
}
