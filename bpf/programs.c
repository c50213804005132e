/* SPDX-License-Identifier: MIT */
/*
 * Loading a session's programs: this machine's values and maps are put into them, and what the
 * kernel's verifier says against one is handed on.
 */
#include <bpf/bpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "session.h"

#define LOG_BYTES (1u << 20)

static uint64_t machine_value(const struct fay_bpf_session *session, uint32_t number)
{
	if (number == FAY_BPF_VALUE_ENTER_CALLER)
		return fay_bpf_address_of("__bpf_trace_sys_enter");
	if (number == FAY_BPF_VALUE_EXIT_CALLER)
		return fay_bpf_address_of("__bpf_trace_sys_exit");
	return session->object->values[number];
}

/* The instructions with descriptors in the maps' places, and this machine's values. */
static struct bpf_insn *resolve(const struct fay_bpf_session *session,
				const struct fay_bpf_program *program)
{
	struct bpf_insn *code = malloc((program->count + 1) * sizeof(*code));
	if (!code)
		return NULL;
	memcpy(code, program->code, program->count * sizeof(*code));
	for (uint32_t i = 0; i + 1 < program->count; i++) {
		if (code[i].code != (BPF_LD | BPF_IMM | BPF_DW))
			continue;
		if (code[i].src_reg == FAY_BPF_PSEUDO_MACHINE &&
		    (uint32_t)code[i].imm < FAY_BPF_VALUES) {
			uint64_t value = machine_value(session, (uint32_t)code[i].imm);
			code[i].src_reg = 0;
			code[i].imm = (int32_t)value;
			code[i + 1].imm = (int32_t)(value >> 32);
		} else if (code[i].src_reg && (uint32_t)code[i].imm < FAY_BPF_MAPS) {
			code[i].imm = session->maps[code[i].imm];
		}
		i++;
	}
	return code;
}

/* The program's descriptor, or -errno. libbpf asks for a log, which costs time, when a program is
 * refused only. */
static int load(const struct fay_bpf_session *session, const struct fay_bpf_program *program,
		const struct bpf_insn *code, char *log)
{
	bool together = session->together && program->type == BPF_PROG_TYPE_KPROBE;
	uint32_t attach = together ? FAY_BPF_TRACE_UPROBE_MULTI : program->attach;
	LIBBPF_OPTS(bpf_prog_load_opts, options, .expected_attach_type = attach,
		    .attach_btf_id = program->btf_id, .log_buf = log, .log_size = LOG_BYTES);
	*log = 0;
	return bpf_prog_load(program->type, "fay", "Dual MIT/GPL", code, program->count, &options);
}

/* The end of the verifier's log: what it was looking at and what it says. */
static const char *last_lines(const char *log, unsigned lines)
{
	const char *at = log + strlen(log);
	while (at > log && lines) {
		at--;
		lines -= at > log && at[-1] == '\n';
	}
	return at;
}

static int explain_refusal(int code, const struct fay_bpf_program *program, const char *log,
			   struct fay_error *error)
{
	char what[128];
	snprintf(what, sizeof(what), "loading the BPF program for %s", program->name);
	if (!*log || code == -EPERM)
		return fay_bpf_refused(code, what, error);
	return fay_error_set(error, FAY_E_REFUSED,
			     "the kernel's BPF verifier refused the program for %s (%s); nothing "
			     "was attached. The end of its log:\n%s",
			     program->name, strerror(-code), last_lines(log, 8));
}

static int load_program(struct fay_bpf_session *session, uint32_t index, char *log,
			struct fay_error *error)
{
	const struct fay_bpf_program *program = &session->object->programs[index];
	struct bpf_insn *code = resolve(session, program);
	if (!code)
		return fay_error_set(error, FAY_E_LIMIT, "out of memory");
	int fd = load(session, program, code, log);
	free(code);
	if (fd < 0)
		return explain_refusal(fd, program, log, error);
	session->programs[index] = fd;
	session->instructions += program->count;
	return FAY_OK;
}

/* All but those that are refused, if there may be such; the first one's error. */
static int load_all(struct fay_bpf_session *session, char *log, struct fay_error *error)
{
	const struct fay_bpf_object *object = session->object;
	uint32_t loaded = 0;
	int code = FAY_OK;
	for (uint32_t i = 0; i < object->program_count; i++) {
		struct fay_error one;
		int failed = load_program(session, i, log, &one);
		loaded += !failed;
		if (!failed)
			continue;
		session->refusals[i] = EACCES;
		if (!code && error)
			*error = one;
		code = failed;
		if (!object->some)
			return code;
	}
	return loaded ? FAY_OK : code;
}

int fay_bpf_programs_load(struct fay_bpf_session *session, struct fay_error *error)
{
	char *log = malloc(LOG_BYTES);
	int code = log ? load_all(session, log, error)
		       : fay_error_set(error, FAY_E_LIMIT, "out of memory");
	free(log);
	return code;
}
