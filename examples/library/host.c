/* SPDX-License-Identifier: MIT */
/*
 * A host of extensions, with libfay_extension: loads IMAGE for the interface INTERFACE, whose
 * entries take a packet, its size and their state, and calls ENTRY with standard input.
 *
 *     cc host.c -o host $(pkg-config --cflags --libs fay-extension)
 *     ./host packets.host checksum.fay adler32 <FILE
 *
 * Exit code 0, 1 refused, 2 a file cannot be read or is none.
 */
#include <stdio.h>
#include <stdlib.h>

#include <fay/host/host.h>

#define PACKET 65536u /* as the interface says */

typedef uint64_t packet_function(const uint8_t *packet, uint64_t size, void *state);

static char bytes[1 << 20];

static size_t read_file(const char *path)
{
	FILE *file = fopen(path, "rb");
	size_t size;

	if (!file) {
		perror(path);
		exit(2);
	}
	size = fread(bytes, 1, sizeof(bytes), file);
	fclose(file);
	return size;
}

int main(int argc, char **argv)
{
	static uint8_t packet[PACKET];
	struct fay_loaded *loaded;
	struct fay_error error;
	struct fay_host *host;
	packet_function *call;
	void *state;
	size_t size;

	if (argc != 4) {
		fprintf(stderr, "usage: %s INTERFACE IMAGE ENTRY <PACKET\n", argv[0]);
		return 2;
	}
	size = read_file(argv[1]);
	if (fay_host_open(bytes, size, &host, &error)) {
		fprintf(stderr, "%s:%s\n", argv[1], error.message);
		return 2;
	}
	size = read_file(argv[2]);
	if (fay_host_load(host, bytes, size, &loaded, &error)) {
		fprintf(stderr, "%s: %s\n", argv[2], error.message);
		fay_host_close(host);
		return 1;
	}
	call = (packet_function *)fay_loaded_entry(loaded, argv[3]);
	state = fay_loaded_instance(loaded);
	if (!call || !state) {
		fprintf(stderr, "%s: no entry '%s', or no memory\n", argv[2], argv[3]);
		return 2;
	}
	size = fread(packet, 1, sizeof(packet), stdin);
	printf("%llu\n", (unsigned long long)call(packet, size, state));
	fay_instance_release(state);
	fay_host_unload(loaded);
	fay_host_close(host);
	return 0;
}
