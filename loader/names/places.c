/* SPDX-License-Identifier: MIT */
/*
 * Places that the debug information of an object tells: lines of the source, copies of functions
 * that were inlined. Whoever uses the loader reads it, and what it says is believed as little as a
 * marker's note: texts are bounded, an address counts only in an executable mapping of the module
 * (markers.c), and what may be overwritten there is judged as at any place inside a function.
 */
#include <stdlib.h>
#include <string.h>

#include "target.h"

/* What one text is. */
struct fay_told {
	struct fay_told *next;
	char *text;
	struct fay_debug_places places;
	struct fay_marker *markers; /* their texts are those of `places` */
	size_t marker_count;
};

static fay_places_reader *places_reader;

void fay_places_read_by(fay_places_reader *reader)
{
	places_reader = reader;
}

void fay_debug_places_deinit(struct fay_debug_places *places)
{
	for (size_t i = 0; i < places->count; i++) {
		free(places->items[i].function);
		free(places->items[i].arguments);
	}
	free(places->items);
	*places = (struct fay_debug_places){ 0 };
}

static void destroy(struct fay_told *told)
{
	fay_debug_places_deinit(&told->places);
	free(told->markers);
	free(told->text);
	free(told);
}

void fay_object_forget_told(struct fay_object *object)
{
	while (object->told) {
		struct fay_told *told = object->told;

		object->told = told->next;
		destroy(told);
	}
	object->told_count = 0;
}

static bool matches(const char *glob_text, const char *symbol)
{
	struct fay_glob glob;

	fay_glob_init(&glob, glob_text);
	return fay_glob_match(&glob, symbol, strlen(symbol));
}

static bool is_text(const char *text)
{
	size_t length = text ? strnlen(text, FAY_MARKER_MAX_STRING + 1) : 0;

	for (size_t i = 0; i < length; i++)
		if ((unsigned char)text[i] < ' ' || text[i] == 0x7f)
			return false;
	return text && length <= FAY_MARKER_MAX_STRING;
}

/* The places as markers; those with a text that is none are left out. */
static bool make_markers(struct fay_told *told)
{
	told->markers = calloc(told->places.count + 1, sizeof(*told->markers));
	for (size_t i = 0; told->markers && i < told->places.count; i++) {
		const struct fay_debug_place *place = &told->places.items[i];

		if (!is_text(place->function) || !*place->function || !is_text(place->arguments))
			continue;
		told->markers[told->marker_count++] =
			(struct fay_marker){ .provider = "",
					     .name = told->text,
					     .function = place->function,
					     .arguments = place->arguments,
					     .address = place->address };
	}
	return told->markers != NULL;
}

static int ask(struct fay_object *object, const char *path, struct fay_told *told,
	       struct fay_error *error)
{
	int code;

	if (!places_reader)
		return fay_error_set(error, FAY_E_REFUSED, "%s: debug information is not read here",
				     path);
	code = places_reader(object->fd, path, told->text, matches, &told->places, error);
	if (!code && told->places.count > FAY_OBJECT_MAX_MARKERS)
		code = fay_error_set(error, FAY_E_LIMIT, "%s: `%.255s` is more than %u places",
				     path, told->text, FAY_OBJECT_MAX_MARKERS);
	return code;
}

int fay_object_told(struct fay_object *object, const char *path, const char *text,
		    const struct fay_marker **markers, size_t *count, struct fay_error *error)
{
	struct fay_told *told = object->told;
	int code;

	while (told && strcmp(told->text, text))
		told = told->next;
	if (!told) {
		if (object->told_count == FAY_OBJECT_MAX_TOLD)
			return fay_error_set(error, FAY_E_LIMIT,
					     "%s: more than %u patterns of places", path,
					     FAY_OBJECT_MAX_TOLD);
		told = calloc(1, sizeof(*told));
		if (told)
			told->text = strdup(text);
		code = told && told->text ? ask(object, path, told, error)
					  : fay_error_set(error, FAY_E_LIMIT, "out of memory");
		if (!code && !make_markers(told))
			code = fay_error_set(error, FAY_E_LIMIT, "out of memory");
		if (code) {
			if (told)
				destroy(told);
			return code;
		}
		told->next = object->told;
		object->told = told;
		object->told_count++;
	}
	*markers = told->markers;
	*count = told->marker_count;
	return 0;
}
