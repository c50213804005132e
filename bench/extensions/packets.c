/* SPDX-License-Identifier: MIT */
/*
 * packets.c: what a packet costs a filter by the UDP port it is for, interleaved over one mapped
 * capture: native code, the same verified, and libpcap's program for "udp dst port 53", interpreted
 * (pcap_offline_filter(), as tcpdump does with a file). bench/extensions/packets.sh runs it.
 *
 *     packets INTERFACE EXTENSION NATIVE.so CAPTURE ROUNDS
 */
#include <dlfcn.h>
#include <pcap/pcap.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <fay/host/host.h>

enum { NATIVE, FAY, LIBPCAP, WAYS, ROUNDS_MOST = 1001, PORT = 53 };

typedef uint64_t packet_filter(const uint8_t *packet, uint64_t size, uint64_t length, void *state);

static char *slurp(const char *path, size_t *size)
{
	FILE *file = fopen(path, "rb");
	char *bytes;

	if (!file) {
		perror(path);
		exit(2);
	}
	fseek(file, 0, SEEK_END);
	*size = (size_t)ftell(file);
	rewind(file);
	bytes = malloc(*size + 1);
	if (!bytes || fread(bytes, 1, *size, file) != *size)
		abort();
	fclose(file);
	return bytes;
}

static packet_filter *load(const char *interface, const char *extension)
{
	struct fay_loaded *loaded;
	struct fay_error error;
	struct fay_host *host;
	size_t size;
	char *text = slurp(interface, &size);

	if (fay_host_open(text, size, &host, &error)) {
		fprintf(stderr, "%s: %s\n", interface, error.message);
		exit(2);
	}
	text = slurp(extension, &size);
	if (fay_host_load(host, text, size, &loaded, &error)) {
		fprintf(stderr, "%s: %s\n", extension, error.message);
		exit(2);
	}
	return (packet_filter *)fay_loaded_entry(loaded, "udp_port");
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static unsigned long matched(packet_filter *filter, const struct bpf_program *program,
			     const char *capture, size_t size, unsigned long *packets)
{
	unsigned long count = 0;

	*packets = 0;
	for (size_t at = 24; at + 16 <= size; ++*packets) {
		struct pcap_pkthdr header = { 0 };
		const uint8_t *packet = (const uint8_t *)capture + at + 16;

		memcpy(&header.caplen, capture + at + 8, 4);
		memcpy(&header.len, capture + at + 12, 4);
		count += filter ? filter(packet, header.caplen, header.len, NULL) == PORT
				: pcap_offline_filter(program, &header, packet) != 0;
		at += 16 + header.caplen;
	}
	return count;
}

static int by_size(const void *a, const void *b)
{
	return *(const double *)a < *(const double *)b ? -1 : 1;
}

int main(int argc, char **argv)
{
	static const char *const names[] = { "native", "fay", "libpcap" };
	static double ns[WAYS][ROUNDS_MOST];
	packet_filter *filters[WAYS] = { NULL };
	unsigned long count[WAYS], packets = 0;
	struct bpf_program program;
	unsigned rounds;
	size_t size;
	char *capture;
	void *native;

	if (argc != 6)
		return 2;
	native = dlopen(argv[3], RTLD_NOW);
	filters[NATIVE] = native ? (packet_filter *)dlsym(native, "udp_port") : NULL;
	filters[FAY] = load(argv[1], argv[2]);
	if (!filters[NATIVE] || pcap_compile(pcap_open_dead(DLT_EN10MB, 262144), &program,
					     "udp dst port 53", 1, PCAP_NETMASK_UNKNOWN))
		return 2;
	capture = slurp(argv[4], &size);
	rounds = (unsigned)atoi(argv[5]);
	rounds = rounds < 1 ? 1 : rounds > ROUNDS_MOST ? ROUNDS_MOST : rounds;
	for (unsigned round = 0; round < rounds; round++)
		for (unsigned way = 0; way < WAYS; way++) {
			double begin = now();

			count[way] = matched(filters[way], &program, capture, size, &packets);
			ns[way][round] = (now() - begin) / (double)packets;
		}
	for (unsigned way = 0; way < WAYS; way++) {
		qsort(ns[way], rounds, sizeof(double), by_size);
		printf("{\"way\": \"%s\", \"packets\": %lu, \"matched\": %lu, \"ns\": %.2f, "
		       "\"quartiles\": [%.2f, %.2f]}\n",
		       names[way], packets, count[way], ns[way][rounds / 2], ns[way][rounds / 4],
		       ns[way][rounds * 3 / 4]);
	}
	return 0;
}
