/* SPDX-License-Identifier: MIT */
/*
 * A packet filter over captures: runs a verified function over each packet of a pcap file, where it
 * lies.
 *
 *     filter EXTENSION FUNCTION CAPTURE [OUT]
 *
 * Prints how many packets, and bytes on the wire, have each class that the function says; OUT gets
 * those of a class but 0. The file is mapped, nothing is copied: it must not become shorter
 * meanwhile.
 * Exit code 0, 1 refused, 2 a file cannot be read or is none.
 */
#include <byteswap.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fay/host/host.h>

#define PACKET 262144u /* bytes, as the interface says */
#define CLASSES 4096u  /* different ones that are counted */

__asm__(".pushsection .rodata\n"
	"interface: .incbin \"packets.host\"\n"
	"interface_end: .popsection");
extern const char interface[] __attribute__((visibility("hidden")));
extern const char interface_end[] __attribute__((visibility("hidden")));

typedef uint64_t packet_filter(const uint8_t *packet, uint64_t size, uint64_t length, void *state);

struct capture {
	const uint8_t *bytes;
	size_t size, at;
	bool swapped; /* numbers are of the other byte order */
};

struct record { /* before each packet */
	uint32_t seconds, fraction, captured, length;
};

static struct class
{
	uint64_t number, packets, bytes;
} classes[CLASSES];
static unsigned class_count;

static void quit(const char *what, const char *why, int status)
{
	fprintf(stderr, "%s: %s\n", what, why);
	exit(status);
}

/* The whole file, to be read; *size is its size. */
static const uint8_t *map(const char *path, size_t *size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat status;
	void *at;

	if (fd < 0 || fstat(fd, &status)) {
		perror(path);
		exit(2);
	}
	*size = (size_t)status.st_size;
	at = mmap(NULL, *size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (at == MAP_FAILED) /* an empty one, too */
		quit(path, "cannot be mapped", 2);
	close(fd);
	return at;
}

static uint32_t number(const struct capture *c, size_t at)
{
	uint32_t n;

	memcpy(&n, c->bytes + at, sizeof(n));
	return c->swapped ? bswap_32(n) : n;
}

/* The header of 24 bytes: a pcap file, of Ethernet. */
static struct capture open_capture(const char *path)
{
	struct capture c = { .at = 24 };

	c.bytes = map(path, &c.size);
	if (c.size < 24)
		quit(path, "no pcap file", 2);
	c.swapped = number(&c, 0) == 0xd4c3b2a1 || number(&c, 0) == 0x4d3cb2a1;
	if (number(&c, 0) == 0x0a0d0d0a)
		quit(path, "pcapng; `tcpdump -r` with `-w` makes pcap of it", 2);
	if (number(&c, 0) != 0xa1b2c3d4 && number(&c, 0) != 0xa1b23c4d)
		quit(path, "no pcap file", 2);
	if ((number(&c, 20) & 0xffff) != 1)
		quit(path, "not of Ethernet", 2);
	return c;
}

/* The next packet, or NULL; *record is what is said of it. */
static const uint8_t *next(struct capture *c, struct record *record)
{
	const uint8_t *packet;

	if (c->size - c->at < sizeof(*record))
		return NULL;
	*record = (struct record){ .captured = number(c, c->at + 8),
				   .length = number(c, c->at + 12) };
	if (record->captured > c->size - c->at - sizeof(*record) || record->captured > PACKET)
		return NULL;
	packet = c->bytes + c->at + sizeof(*record);
	c->at += sizeof(*record) + record->captured;
	return packet;
}

static void count(uint64_t class, uint32_t bytes)
{
	unsigned i = 0;

	while (i < class_count && classes[i].number != class)
		i++;
	if (i == CLASSES)
		quit("classes", "more than 4096", 2);
	if (i == class_count)
		classes[class_count++].number = class;
	classes[i].packets++;
	classes[i].bytes += bytes;
	for (struct class one = classes[i]; i && classes[i - 1].packets < one.packets; i--) {
		classes[i] = classes[i - 1]; /* the most frequent are found first */
		classes[i - 1] = one;
	}
}

static packet_filter *load(const char *path, const char *function, struct fay_loaded **loaded)
{
	struct fay_error error;
	struct fay_host *host;
	packet_filter *filter;
	size_t size;
	const uint8_t *image = map(path, &size);

	if (fay_host_open(interface, (size_t)(interface_end - interface), &host, &error))
		quit("packets.host", error.message, 2);
	if (fay_host_load(host, image, size, loaded, &error))
		quit(path, error.message, 1);
	filter = (packet_filter *)fay_loaded_entry(*loaded, function);
	if (!filter)
		quit(path, "no function of this name", 1);
	munmap((void *)image, size);
	fay_host_close(host);
	return filter;
}

int main(int argc, char **argv)
{
	struct fay_loaded *loaded;
	const uint8_t *packet;
	struct capture capture;
	packet_filter *filter;
	struct record record;
	FILE *out = NULL;
	void *state;

	if (argc != 4 && argc != 5)
		quit("usage", "filter EXTENSION FUNCTION CAPTURE [OUT]", 2);
	filter = load(argv[1], argv[2], &loaded);
	state = fay_loaded_instance(loaded);
	if (!state && fay_loaded_local_size(loaded))
		quit(argv[1], "no memory for its state", 2);
	capture = open_capture(argv[3]);
	if (argc == 5) {
		out = fopen(argv[4], "wbe");
		if (!out || fwrite(capture.bytes, 1, 24, out) != 24)
			quit(argv[4], "cannot be written", 2);
	}
	while ((packet = next(&capture, &record))) {
		uint64_t class = filter(packet, record.captured, record.length, state);

		count(class, record.length);
		if (class && out)
			fwrite(packet - sizeof(record), 1, sizeof(record) + record.captured, out);
	}
	for (unsigned i = 0; i < class_count; i++)
		printf("%" PRIu64 ": %" PRIu64 " packets, %" PRIu64 " bytes\n", classes[i].number,
		       classes[i].packets, classes[i].bytes);
	if (capture.at < capture.size)
		fprintf(stderr, "%s: ends with a record that is cut off, or too large\n", argv[3]);
	if (out && (ferror(out) || fclose(out)))
		quit(argv[4], "cannot be written", 2);
	fay_instance_release(state);
	fay_host_unload(loaded);
	return 0;
}
