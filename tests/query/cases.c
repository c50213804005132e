/* SPDX-License-Identifier: MIT */
#include "cases.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static char *read_file(const char *path)
{
	FILE *file = fopen(path, "r");
	char *text = NULL;
	size_t room = 0;
	assert_non_null(file);
	ssize_t size = getdelim(&text, &room, '\0', file);
	assert_true(size > 0 && feof(file));
	fclose(file);
	return text;
}

/* The first line from here on that begins with `mark`; NULL. */
static char *find_line(char *at, const char *mark)
{
	while (at && strncmp(at, mark, strlen(mark)) != 0) {
		at = strchr(at, '\n');
		at = at ? at + 1 : NULL;
	}
	return at;
}

/* Ends the line; what follows it. */
static char *cut_line(char *at)
{
	char *end = strchr(at, '\n');
	assert_non_null(end);
	*end = '\0';
	return end + 1;
}

bool query_table_next(DIR *folder, const char *path, struct query_table *table)
{
	static const char suffix[] = ".cases";
	struct dirent *entry;
	do {
		entry = readdir(folder);
		if (!entry)
			return false;
	} while (strlen(entry->d_name) < sizeof(suffix) ||
		 strcmp(entry->d_name + strlen(entry->d_name) - strlen(suffix), suffix) != 0);
	snprintf(table->path, sizeof(table->path), "%s/%s", path, entry->d_name);
	table->bytes = read_file(table->path);
	table->count = 0;
	for (char *at = find_line(table->bytes, "== "), *next; at; at = next) {
		struct query_case *c = &table->cases[table->count++];
		assert_true(table->count <= sizeof(table->cases) / sizeof(table->cases[0]));
		next = find_line(at + 3, "== ");
		if (next)
			next[-1] = '\0'; /* the blank line */
		char *text = cut_line(at + 3), *outcome = find_line(text, "-- ");
		*c = (struct query_case){ .name = at + 3, .text = text };
		if (outcome) {
			c->kind = outcome + 3;
			c->outcome = cut_line(outcome + 3);
			*outcome = '\0';
		}
	}
	return true;
}

void query_table_free(struct query_table *table)
{
	free(table->bytes);
}

void query_table_write(const struct query_table *table)
{
	FILE *file = fopen(table->path, "w");
	assert_non_null(file);
	for (size_t i = 0; i < table->count; i++) {
		const struct query_case *c = &table->cases[i];
		fprintf(file, "%s== %s\n%s-- %s\n%s", i ? "\n" : "", c->name, c->text, c->kind,
			c->outcome);
	}
	assert_int_equal(fclose(file), 0);
}
