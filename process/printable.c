/* SPDX-License-Identifier: MIT */
/*
 * Names, strings and paths are the traced program's, which may be hostile: no byte of theirs
 * commands the terminal. Tables show `?` instead; standard error passes through a filter, whoever
 * writes there. JSON escapes such bytes, and so does CSV (cli/output/csv.c).
 */
#include <string.h>
#include <unistd.h>

#include "fay/utf8.h"

#include "process.h"

/* How many bytes at `text` are shown as they are; 0: the first is not. */
static size_t shown(const char *text, size_t size)
{
	return *text == '\n' || *text == '\t' ? 1 : fay_utf8_printable((const uint8_t *)text, size);
}

void fay_printable(char *text)
{
	size_t size = strlen(text);
	for (size_t at = 0; at < size;) {
		size_t length = fay_utf8_printable((const uint8_t *)text + at, size - at);
		if (!length)
			text[at] = '?';
		at += length ? length : 1;
	}
}

void fay_printable_put(FILE *out, const char *text)
{
	size_t size = strlen(text);
	for (size_t at = 0, length; at < size; at += length ? length : 1) {
		length = fay_utf8_printable((const uint8_t *)text + at, size - at);
		if (length)
			fwrite(text + at, length, 1, out);
		else
			fputc('?', out);
	}
}

void fay_json_string(FILE *out, const char *bytes, size_t size)
{
	size = strnlen(bytes, size);
	fputc('"', out);
	for (size_t i = 0, length; i < size; i += length) {
		unsigned char c = (unsigned char)bytes[i];
		length = fay_utf8_printable((const uint8_t *)bytes + i, size - i);
		if (c == '"' || c == '\\')
			fprintf(out, "\\%c", c);
		else if (length)
			fwrite(bytes + i, length, 1, out);
		else
			/* no character of UTF-8, or one that commands a terminal: each byte as
			 * Latin-1 */
			fprintf(out, "\\u%04x", c);
		length += !length;
	}
	fputc('"', out);
}

void fay_json_text(FILE *out, const char *before, const char *text)
{
	fputs(before, out);
	if (text)
		fay_json_string(out, text, strlen(text));
	else
		fputs("null", out);
}

static bool write_all(const char *bytes, size_t size)
{
	while (size) {
		ssize_t written = write(STDERR_FILENO, bytes, size);
		if (written <= 0)
			return false;
		bytes += written;
		size -= (size_t)written;
	}
	return true;
}

void (*fay_messages_before)(void);

static ssize_t write_message(void *cookie, const char *bytes, size_t size)
{
	char out[512];
	size_t used = 0;
	if (fay_messages_before)
		fay_messages_before();
	for (size_t at = 0, length; at < size; at += length ? length : 1) {
		length = shown(bytes + at, size - at);
		if (used + 4 > sizeof(out)) {
			if (!write_all(out, used))
				return 0;
			used = 0;
		}
		if (length)
			memcpy(out + used, bytes + at, length);
		else
			out[used] = '?';
		used += length ? length : 1;
	}
	return write_all(out, used) ? (ssize_t)size : 0;
}

void fay_messages_guard(void)
{
	FILE *guarded = fopencookie(NULL, "w", (cookie_io_functions_t){ .write = write_message });
	if (!guarded)
		return;
	setvbuf(guarded, NULL, _IOLBF, 4096);
	stderr = guarded;
}
