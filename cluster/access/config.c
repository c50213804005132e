/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "access.h"

/* What has to be read before the file as a whole is known to be fine. */
struct config {
	const char *path;
	const struct option *names;
	int (*set)(void *context, int option, const char *value);
	void *context;
	bool for_others; /* others than its owner can read the file */
};

static bool is_space(char character)
{
	return character == ' ' || character == '\t';
}

static const struct option *find(const struct option *names, const char *name, bool has_value)
{
	for (; names->name; names++)
		if (!strcmp(names->name, name))
			return has_value == (names->has_arg == required_argument) ? names : NULL;
	return NULL;
}

/* One line, without comment, newline and spaces at its end. */
static int set_line(const struct config *config, unsigned number, const char *line,
		    struct fay_error *error)
{
	char *name = NULL, *value = NULL;
	int got = sscanf(line, " %m[a-z-] = %m[^\n]", &name, &value), after = 0;
	bool alone = got == 1 && sscanf(line, " %*[a-z-] %n", &after) == 0 && !line[after];
	const struct option *option =
		got == 2 || alone ? find(config->names, name, got == 2) : NULL;
	free(name);
	if (!option) {
		free(value);
		return fay_error_set(error, FAY_E_USAGE, "%s:%u: not understood: %s", config->path,
				     number, line);
	}
	const char *address = value ? strstr(value, "://") : NULL;
	if (config->for_others && address && strchr(address, '@')) {
		free(value);
		return fay_error_set(error, FAY_E_USAGE,
				     "%s:%u: a password in a file that users other than its owner "
				     "can read (chmod 600 %s)",
				     config->path, number, config->path);
	}
	if (config->set(config->context, option->val, value))
		return fay_error_set(error, FAY_E_USAGE, "%s:%u: the value cannot be used",
				     config->path, number);
	return FAY_OK;
}

/* Takes the newline, a comment and spaces off a line's end. A '#' within a word, such as a
 * password, begins no comment. */
static void strip(char *line)
{
	size_t length = 0;
	while (line[length] && line[length] != '\n' &&
	       (line[length] != '#' || (length && !is_space(line[length - 1]))))
		length++;
	while (length && is_space(line[length - 1]))
		length--;
	line[length] = 0;
}

int fay_config_read(const char *path, const struct option *names,
		    int (*set)(void *context, int option, const char *value), void *context,
		    struct fay_error *error)
{
	struct config config = { .path = path, .names = names, .set = set, .context = context };
	struct stat stat;
	char line[1024];
	FILE *file = fopen(path, "re");
	int result = FAY_OK;
	if (!file || fstat(fileno(file), &stat)) {
		fay_error_set(error, FAY_E_USAGE, "cannot open '%s': %s", path, strerror(errno));
		if (file)
			fclose(file);
		return FAY_E_USAGE;
	}
	config.for_others = stat.st_mode & 077;
	for (unsigned number = 1; !result && fgets(line, sizeof(line), file); number++) {
		if (!strchr(line, '\n') && !feof(file)) {
			result = fay_error_set(error, FAY_E_USAGE,
					       "%s:%u: a line of more than %zu bytes", path, number,
					       sizeof(line) - 2);
			break;
		}
		strip(line);
		if (line[strspn(line, " \t")])
			result = set_line(&config, number, line, error);
	}
	fclose(file);
	return result;
}
