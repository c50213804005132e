/* SPDX-License-Identifier: MIT */
/* `fay new extension NAME`: a folder with an interface, a function in C and a Makefile that makes a
 * certified extension of it. */
#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "fay/error.h"

#include "commands.h"

#define NAME_MOST 64u

/* %1$s is the name */
static const char interface[] =
	"# What %1$s may see: the bytes that it is passed, and memory of its own.\n"
	"# docs/internals/host-interface.md explains each word.\n"
	"region data passed 65536 aligned 1 read constant\n"
	"region state local 4096 aligned 64 read write\n"
	"parameter data start data\n"
	"parameter size size data 0\n"
	"parameter state start state\n"
	"result 0 0xffffffffffffffff\n"
	"limit instructions 10000000\n"
	"limit stack 4096\n";

static const char source[] = "/* An extension for %1$s.host. */\n"
			     "#include <fay/host/entry.h>\n"
			     "\n"
			     "/* entries, and bytes of local state, in digits */\n"
			     "FAY_EXTENSION(1, 8);\n"
			     "FAY_ENTRY(%1$s);\n"
			     "\n"
			     "/* How many zeros there were so far. */\n"
			     "uint64_t %1$s(const uint8_t *data, uint64_t size, uint64_t *zeros);\n"
			     "uint64_t %1$s(const uint8_t *data, uint64_t size, uint64_t *zeros)\n"
			     "{\n"
			     "\tfor (uint64_t i = 0; i < size; i++)\n"
			     "\t\t*zeros += data[i] == 0;\n"
			     "\treturn *zeros;\n"
			     "}\n";

static const char makefile[] =
	"# make: %1$s.fay, which a host of %1$s.host loads (fay_host_load(3)).\n"
	"FAY ?= fay\n"
	"CFLAGS ?= -O2 -Wall\n"
	"CPPFLAGS ?= $(shell pkg-config --cflags fay-extension)\n"
	"# what extensions cannot have: stack protectors, jump tables, a red zone, a dynamic "
	"linker\n"
	"MODE = -ffreestanding -fPIC -fvisibility=hidden -fno-plt -fno-jump-tables \\\n"
	"\t-fno-stack-protector -fcf-protection=none -fno-asynchronous-unwind-tables \\\n"
	"\t-fno-optimize-sibling-calls -mno-red-zone -fno-unroll-loops\n"
	"\n"
	"%1$s.fay: %1$s.so %1$s.host\n"
	"\t$(FAY) verify --interface %1$s.host --certify $@ %1$s.so\n"
	"%1$s.so: %1$s.o\n"
	"\tld -shared -nostdlib -z now -z noexecstack --hash-style=gnu --build-id=none -o $@ $<\n"
	"%1$s.o: %1$s.c\n"
	"\t$(CC) $(CPPFLAGS) $(CFLAGS) $(MODE) -c -o $@ $<\n"
	"clean:\n"
	"\trm -f %1$s.o %1$s.so %1$s.fay\n"
	".PHONY: clean\n";

static void print_usage(FILE *out)
{
	fputs("usage: fay new extension NAME\n"
	      "\n"
	      "Makes a folder NAME with an extension, native code that a program of your own\n"
	      "checks and calls: NAME.host says what it may see, NAME.c is its function, and\n"
	      "`make` there compiles it and attaches the certificate.\n",
	      out);
}

/* An identifier of C, since a function has that name. */
static bool fits(const char *name)
{
	size_t size = strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				   "0123456789_");

	return size && !name[size] && size <= NAME_MOST && !isdigit((unsigned char)name[0]);
}

static bool write_file(const char *folder, const char *name, const char *text)
{
	char path[2 * NAME_MOST + 16];
	FILE *file;
	bool ok;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	file = fopen(path, "wxe");
	/* the texts above, with the folder's name */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
	ok = file && fprintf(file, text, folder) > 0;
#pragma GCC diagnostic pop
	if (file)
		ok = !fclose(file) && ok;
	if (!ok)
		fprintf(stderr, "fay new: %s: %s\n", path, strerror(errno));
	return ok;
}

int fay_new_main(int argc, char **argv)
{
	char host[NAME_MOST + 8], code[NAME_MOST + 8];
	const char *name;

	if (argc == 2 && (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h"))) {
		print_usage(stdout);
		return FAY_OK;
	}
	if (argc != 3 || strcmp(argv[1], "extension")) {
		print_usage(stderr);
		return FAY_E_USAGE;
	}
	name = argv[2];
	if (!fits(name)) {
		fprintf(stderr, "fay new: '%s' cannot be the name of a function in C\n", name);
		return FAY_E_USAGE;
	}
	if (mkdir(name, 0777)) {
		fprintf(stderr, "fay new: %s: %s\n", name, strerror(errno));
		return errno == EEXIST ? FAY_E_USAGE : FAY_E_INTERNAL;
	}
	snprintf(host, sizeof(host), "%s.host", name);
	snprintf(code, sizeof(code), "%s.c", name);
	if (!write_file(name, host, interface) || !write_file(name, code, source) ||
	    !write_file(name, "Makefile", makefile))
		return FAY_E_INTERNAL;
	printf("%s/%s: what it may see; %s/%s: its function; make -C %s makes %s.fay\n", name, host,
	       name, code, name, name);
	return FAY_OK;
}
