/* SPDX-License-Identifier: MIT */
/* See extensions.h. */
#include "extensions.h"

const char *directory;

uint8_t *read_file(const char *name, size_t *size)
{
	static uint8_t bytes[1 << 20];
	char path[512];
	uint8_t *copy;
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", directory, name);
	file = fopen(path, "re");
	if (!file)
		fail_msg("%s is not there", path);
	*size = fread(bytes, 1, sizeof(bytes), file);
	fclose(file);
	copy = malloc(*size);
	assert_non_null(copy);
	return memcpy(copy, bytes, *size);
}

struct fay_host *open_host(void)
{
	struct fay_error error;
	struct fay_host *host;
	size_t size;
	char *text = (char *)read_file("packets.host", &size);

	if (fay_host_open(text, size, &host, &error))
		fail_msg("%s", error.message);
	free(text);
	return host;
}

packet_function *entry(const struct fay_loaded *loaded, const char *name)
{
	packet_function *f = (packet_function *)fay_loaded_entry(loaded, name);

	assert_non_null(f);
	return f;
}
