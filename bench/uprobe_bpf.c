/* SPDX-License-Identifier: MIT */
/*
 * What BPF on uprobes costs at the least: programs of a few instructions, loaded and attached by
 * themselves, without a tracer around them.
 *
 *     fay_bench_bpf PROGRAM LINK FILE PID FUNCTION...
 *
 * PROGRAM: empty, count, or group (third argument / 1024, 64 groups). LINK: uprobe, uretprobe (one
 * perf event a function), multi, remulti (one link for all; Linux 6.6) or session (the program runs
 * at entry and at return; Linux 6.13). A FUNCTION that ends in * is a prefix. Says "ready
 * FUNCTIONS"; at SIGINT how often the program ran, and exits. The numbers and layouts that Debian
 * 12's headers do not have are those of include/uapi/linux/bpf.h.
 */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <inttypes.h>
#include <linux/perf_event.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define GROUPS 64u
#define CPUS_MAX 1024u
#define POINTS_MAX 65536u
#define TRACE_UPROBE_MULTI 48u
#define TRACE_UPROBE_SESSION 57u
#define UPROBE_MULTI_RETURN 1u
#define PT_REGS_DX 96

/* union bpf_attr of BPF_LINK_CREATE, its uprobe_multi part: libbpf 1.1 of Debian 12 does not have
 * it (1.3 does), so this one call of bpf(2) is made here. */
struct multi_link {
	uint32_t program, target, attach_type, flags;
	uint64_t path, offsets, ref_ctr_offsets, cookies;
	uint32_t count, multi_flags, pid, padding;
};

static struct points {
	uint64_t offsets[POINTS_MAX]; /* in the file */
	uint32_t count;
} points;

static _Noreturn void fail(const char *what)
{
	fprintf(stderr, "%s: %s\n", what, strerror(errno));
	exit(1);
}

static bool matches(const char *name, char **patterns)
{
	for (; *patterns; patterns++) {
		size_t length = strlen(*patterns);
		bool prefix = length && (*patterns)[length - 1] == '*';

		if (prefix ? !strncmp(name, *patterns, length - 1) : !strcmp(name, *patterns))
			return true;
	}
	return false;
}

static uint64_t offset_in_file(Elf *elf, uint64_t address)
{
	size_t count;
	GElf_Phdr segment;

	elf_getphdrnum(elf, &count);
	for (size_t i = 0; i < count; i++)
		if (gelf_getphdr(elf, (int)i, &segment) && segment.p_type == PT_LOAD &&
		    address >= segment.p_vaddr && address - segment.p_vaddr < segment.p_filesz)
			return address - segment.p_vaddr + segment.p_offset;
	return 0;
}

static void find_in(Elf *elf, uint32_t table, char **patterns)
{
	GElf_Shdr header;
	GElf_Sym symbol;

	for (Elf_Scn *section = NULL;
	     (section = elf_nextscn(elf, section)) && gelf_getshdr(section, &header);) {
		Elf_Data *data = header.sh_type == table ? elf_getdata(section, NULL) : NULL;

		for (int i = 0; data && points.count < POINTS_MAX && gelf_getsym(data, i, &symbol);
		     i++) {
			const char *name = elf_strptr(elf, header.sh_link, symbol.st_name);

			if (name && GELF_ST_TYPE(symbol.st_info) == STT_FUNC && symbol.st_value &&
			    matches(name, patterns))
				points.offsets[points.count++] =
					offset_in_file(elf, symbol.st_value);
		}
	}
}

static void find_points(const char *path, char **patterns)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	Elf *elf = elf_version(EV_CURRENT) == EV_NONE || fd < 0 ? NULL
								: elf_begin(fd, ELF_C_READ, NULL);

	if (!elf)
		fail(path);
	find_in(elf, SHT_SYMTAB, patterns);
	if (points.count == 0)
		find_in(elf, SHT_DYNSYM, patterns);
	elf_end(elf);
	close(fd);
	if (points.count == 0) {
		fprintf(stderr, "no such function in %s\n", path);
		exit(1);
	}
}

static int make_map(void)
{
	int map = bpf_map_create(BPF_MAP_TYPE_PERCPU_ARRAY, NULL, 4, 8, GROUPS, NULL);

	if (map < 0)
		fail("map");
	return map;
}

#define INSTRUCTION(c, d, s, o, i)                                                                 \
	{ .code = (uint8_t)(c), .dst_reg = (d), .src_reg = (s), .off = (o), .imm = (i) }

enum { READ_GROUP, LOAD_MAP = 6, RETURN_ZERO = 13, LENGTH = 15 };

/* map[0]++, on this processor */
static struct bpf_insn instructions[LENGTH] = {
	[READ_GROUP] = INSTRUCTION(BPF_ALU64 | BPF_MOV | BPF_K, 2, 0, 0, 0),
	INSTRUCTION(BPF_ALU64 | BPF_RSH | BPF_K, 2, 0, 0, 10),
	INSTRUCTION(BPF_ALU64 | BPF_AND | BPF_K, 2, 0, 0, (int)GROUPS - 1),
	INSTRUCTION(BPF_STX | BPF_MEM | BPF_W, 10, 2, -4, 0),
	INSTRUCTION(BPF_ALU64 | BPF_MOV | BPF_X, 2, 10, 0, 0),
	INSTRUCTION(BPF_ALU64 | BPF_ADD | BPF_K, 2, 0, 0, -4),
	[LOAD_MAP] = INSTRUCTION(BPF_LD | BPF_IMM | BPF_DW, 1, BPF_PSEUDO_MAP_FD, 0, 0),
	INSTRUCTION(0, 0, 0, 0, 0),
	INSTRUCTION(BPF_JMP | BPF_CALL, 0, 0, 0, BPF_FUNC_map_lookup_elem),
	INSTRUCTION(BPF_JMP | BPF_JEQ | BPF_K, 0, 0, 3, 0),
	INSTRUCTION(BPF_LDX | BPF_MEM | BPF_DW, 1, 0, 0, 0),
	INSTRUCTION(BPF_ALU64 | BPF_ADD | BPF_K, 1, 0, 0, 1),
	INSTRUCTION(BPF_STX | BPF_MEM | BPF_DW, 0, 1, 0, 0),
	[RETURN_ZERO] = INSTRUCTION(BPF_ALU64 | BPF_MOV | BPF_K, 0, 0, 0, 0),
	INSTRUCTION(BPF_JMP | BPF_EXIT, 0, 0, 0, 0),
};

static int load_program(const char *name, int map, uint32_t attach_type)
{
	static char log[8192];
	size_t first = strcmp(name, "empty") ? 0 : RETURN_ZERO;
	LIBBPF_OPTS(bpf_prog_load_opts, options, .expected_attach_type = attach_type,
		    .log_buf = log, .log_size = sizeof(log));
	int program;

	instructions[LOAD_MAP].imm = map;
	if (!strcmp(name, "group"))
		instructions[READ_GROUP] = (struct bpf_insn)INSTRUCTION(BPF_LDX | BPF_MEM | BPF_DW,
									2, 1, PT_REGS_DX, 0);
	program = bpf_prog_load(BPF_PROG_TYPE_KPROBE, NULL, "GPL", instructions + first,
				LENGTH - first, &options);
	if (program < 0) {
		fprintf(stderr, "%s", log);
		fail("program");
	}
	return program;
}

static void attach_together(int program, const char *path, uint32_t pid, uint32_t attach_type,
			    bool at_return)
{
	struct multi_link link = { .program = (uint32_t)program,
				   .attach_type = attach_type,
				   .path = (uintptr_t)path,
				   .offsets = (uintptr_t)points.offsets,
				   .count = points.count,
				   .multi_flags = at_return ? UPROBE_MULTI_RETURN : 0,
				   .pid = pid };

	if (syscall(SYS_bpf, BPF_LINK_CREATE, &link, sizeof(link)) < 0)
		fail("the link");
}

static uint32_t number_in(const char *path)
{
	FILE *file = fopen(path, "re");
	uint32_t number;

	if (!file || fscanf(file, "%" SCNu32, &number) != 1)
		fail(path);
	fclose(file);
	return number;
}

static void attach_each(int program, const char *path, uint32_t pid, bool at_return)
{
	struct perf_event_attr event = { .type = number_in(
						 "/sys/bus/event_source/devices/uprobe/type"),
					 .size = sizeof(event),
					 .config = at_return ? 1 : 0,
					 .config1 = (uintptr_t)path };

	for (uint32_t i = 0; i < points.count; i++) {
		int fd;

		event.config2 = points.offsets[i];
		fd = (int)syscall(SYS_perf_event_open, &event, (pid_t)pid, -1, -1,
				  PERF_FLAG_FD_CLOEXEC);
		if (fd < 0 || ioctl(fd, PERF_EVENT_IOC_SET_BPF, program) < 0 ||
		    ioctl(fd, PERF_EVENT_IOC_ENABLE, 0) < 0)
			fail("the uprobe event");
	}
}

static uint64_t total(int map)
{
	static uint64_t values[CPUS_MAX];
	uint64_t sum = 0;

	for (uint32_t key = 0; key < GROUPS; key++) {
		memset(values, 0, sizeof(values));
		if (bpf_map_lookup_elem(map, &key, values))
			fail("map");
		for (size_t cpu = 0; cpu < CPUS_MAX; cpu++)
			sum += values[cpu];
	}
	return sum;
}

int main(int argc, char **argv)
{
	int map, program, signal;
	bool session, multi, at_return;
	uint32_t attach_type, pid;
	sigset_t set;

	if (argc < 6) {
		fprintf(stderr, "usage: fay_bench_bpf empty|count|group "
				"uprobe|uretprobe|multi|remulti|session FILE PID FUNCTION...\n");
		return 2;
	}
	session = !strcmp(argv[2], "session");
	multi = session || strstr(argv[2], "multi");
	at_return = !strncmp(argv[2], "u", 1) ? !strcmp(argv[2], "uretprobe")
					      : !strcmp(argv[2], "remulti");
	attach_type = session ? TRACE_UPROBE_SESSION : multi ? TRACE_UPROBE_MULTI : 0;
	pid = (uint32_t)strtoul(argv[4], NULL, 10);
	libbpf_set_print(NULL);
	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigprocmask(SIG_BLOCK, &set, NULL);
	find_points(argv[3], argv + 5);
	map = make_map();
	program = load_program(argv[1], map, attach_type);
	if (multi)
		attach_together(program, argv[3], pid, attach_type, at_return);
	else
		attach_each(program, argv[3], pid, at_return);
	printf("ready %" PRIu32 "\n", points.count);
	fflush(stdout);
	sigwait(&set, &signal);
	printf("%" PRIu64 "\n", total(map));
	return 0;
}
