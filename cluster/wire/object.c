/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include <sodium.h>

#include "wire.h"

#define MAGIC 0x42594146u /* "FAYB" */
#define TYPES "/sys/kernel/btf/vmlinux"

/* What programs are attached to. */
enum kind { KIND_TRACEPOINT = 1, KIND_ENTRY, KIND_EXIT, KIND_TIMER };

static int malformed(const char *what, struct fay_error *error)
{
	return fay_error_set(error, FAY_E_REFUSED, "the BPF object is malformed: %s", what);
}

/* The running kernel's types. */
static int kernel_types(uint8_t sha256[FAY_KEY_BYTES], struct fay_error *error)
{
	crypto_hash_sha256_state hash;
	uint8_t bytes[65536];
	size_t size, all = 0;
	FILE *file = fopen(TYPES, "re");
	if (!file)
		return fay_error_set(error, FAY_E_REFUSED,
				     "the kernel's types are not known: %s cannot be read", TYPES);
	crypto_hash_sha256_init(&hash);
	while ((size = fread(bytes, 1, sizeof(bytes), file)) > 0) {
		crypto_hash_sha256_update(&hash, bytes, size);
		all += size;
	}
	bool fine = !ferror(file) && all;
	fclose(file);
	crypto_hash_sha256_final(&hash, sha256);
	return fine ? FAY_OK : fay_error_set(error, FAY_E_REFUSED, "%s cannot be read", TYPES);
}

/* --- writing --- */

static enum kind kind_of(const struct fay_bpf_program *program)
{
	return program->period                       ? KIND_TIMER
	       : program->attach == BPF_TRACE_RAW_TP ? KIND_TRACEPOINT
	       : program->attach == BPF_TRACE_FENTRY ? KIND_ENTRY
						     : KIND_EXIT;
}

static void write_schema(const struct fay_schema *schema, struct fay_writer_buffer *out)
{
	const struct fay_schema_state *state = schema->states;
	fay_wire_put16(out, state->kind);
	fay_wire_put32(out, state->size);
	fay_wire_put32(out, state->rows);
	fay_wire_put32(out, state->row_size);
	fay_wire_put_text(out, state->name, 63);
	fay_wire_put16(out, state->keys);
	fay_wire_put16(out, state->values);
	for (uint32_t i = 0; i < schema->column_count; i++) {
		const struct fay_schema_column *column = &schema->columns[i];
		fay_wire_put_text(out, column->name, 63);
		fay_wire_put16(out, column->type);
		fay_wire_put16(out, column->merge);
		fay_wire_put32(out, column->offset);
		fay_wire_put32(out, column->size);
		fay_wire_put64(out, (uint64_t)column->param[0]);
		fay_wire_put64(out, (uint64_t)column->param[1]);
	}
}

int fay_object_write(const struct fay_bpf_object *object, const struct fay_schema *schema,
		     struct fay_writer_buffer *out, struct fay_error *error)
{
	uint8_t types[FAY_KEY_BYTES] = { 0 };
	if (object->typed && kernel_types(types, error))
		return error->code;
	fay_wire_put32(out, MAGIC);
	fay_wire_put32(out, object->maps);
	fay_wire_put32(out, schema->local_size);
	write_schema(schema, out);
	fay_wire_put8(out, object->typed);
	fay_wire_put(out, types, sizeof(types));
	fay_wire_put16(out, (uint16_t)object->place_count);
	for (uint32_t i = 0; i < object->place_count; i++) {
		fay_wire_put_text(out, object->places[i].structure, 31);
		fay_wire_put_text(out, object->places[i].member, 31);
		fay_wire_put32(out, object->places[i].offset);
	}
	if (object->maps >> FAY_BPF_NAMES & 1)
		fay_wire_put(out, object->names, FAY_BPF_SYSCALLS * sizeof(*object->names));
	fay_wire_put16(out, (uint16_t)object->program_count);
	for (uint32_t i = 0; i < object->program_count; i++) {
		const struct fay_bpf_program *program = &object->programs[i];
		const char *space = strchr(program->name, ' ');
		fay_wire_put8(out, (uint8_t)kind_of(program));
		fay_wire_put_text(out, space ? space + 1 : program->name, 63);
		fay_wire_put64(out, program->period);
		fay_wire_put32(out, program->count);
		fay_wire_put(out, program->code, program->count * sizeof(*program->code));
	}
	return out->bad ? fay_error_set(error, FAY_E_LIMIT,
					"the query's BPF programs do not fit into one message")
			: FAY_OK;
}

/* --- reading --- */

static const uint8_t *read_bytes(struct fay_reader *reader, size_t size)
{
	const uint8_t *at = reader->at;
	if (reader->bad || size > (size_t)(reader->end - at)) {
		reader->bad = true;
		return NULL;
	}
	reader->at += size;
	return at;
}

static void read_text(struct fay_reader *reader, char *to, size_t size)
{
	fay_text_copy(to, size, fay_wire_string(reader, (uint16_t)(size - 1)));
}

/* Operators whose partials the aggregator merges word by word in columns of this size. */
static bool column_is_sound(const struct fay_schema_column *column)
{
	if (column->type < FAY_TYPE_I64 || column->type > FAY_TYPE_BOOL || !column->size ||
	    column->size % 8)
		return false;
	switch (column->merge) {
	case FAY_MERGE_KEY: return column->type == FAY_TYPE_STRING || column->size == 8;
	case FAY_MERGE_COUNT:
	case FAY_MERGE_SUM:
	case FAY_MERGE_MIN:
	case FAY_MERGE_MAX: return column->size == 8;
	case FAY_MERGE_AVERAGE:
	case FAY_MERGE_FIRST:
	case FAY_MERGE_LAST: return column->size == 16;
	case FAY_MERGE_HIST_LOG2:
	case FAY_MERGE_HIST_LINEAR:
	case FAY_MERGE_HIST_LOGLINEAR:
	case FAY_MERGE_QUANTILE:
	case FAY_MERGE_DISTINCT: return true;
	default: return false;
	}
}

/* One state at the beginning of each slot. The aggregator checks that it, and its columns, lie
 * where they may. */
static int read_schema(struct fay_object *object, struct fay_reader *reader,
		       struct fay_error *error)
{
	struct fay_schema_state *state = &object->state;
	state->kind = fay_wire_u16(reader);
	state->scope = FAY_SCOPE_LOCAL;
	state->size = fay_wire_u32(reader);
	state->rows = fay_wire_u32(reader);
	state->row_size = fay_wire_u32(reader);
	read_text(reader, object->state_name, sizeof(object->state_name));
	state->name = object->state_name;
	state->keys = fay_wire_u16(reader);
	state->values = fay_wire_u16(reader);
	if (reader->bad || state->keys + (uint32_t)state->values > FAY_OBJECT_COLUMNS_MAX)
		return malformed("columns", error);
	object->verdict.schema =
		(struct fay_schema){ .local_size = object->bpf.local_size,
				     .state_count = 1,
				     .column_count = state->keys + (uint32_t)state->values,
				     .states = state,
				     .columns = object->columns };
	for (uint32_t i = 0; i < object->verdict.schema.column_count; i++) {
		struct fay_schema_column *column = &object->columns[i];
		read_text(reader, object->column_names[i], sizeof(object->column_names[i]));
		column->name = object->column_names[i];
		column->type = fay_wire_u16(reader);
		column->merge = fay_wire_u16(reader);
		column->offset = fay_wire_u32(reader);
		column->size = fay_wire_u32(reader);
		column->param[0] = (int64_t)fay_wire_u64(reader);
		column->param[1] = (int64_t)fay_wire_u64(reader);
		if (reader->bad || !column_is_sound(column))
			return malformed("a column", error);
	}
	return FAY_OK;
}

static int read_places(struct fay_object *object, struct fay_reader *reader,
		       struct fay_error *error)
{
	struct fay_bpf_object *bpf = &object->bpf;
	const uint8_t *typed = read_bytes(reader, 1), *types = read_bytes(reader, FAY_KEY_BYTES);
	bpf->place_count = fay_wire_u16(reader);
	if (reader->bad || *typed > 1 || bpf->place_count > FAY_BPF_PLACES_MAX)
		return malformed("types", error);
	bpf->typed = *typed;
	memcpy(object->types, types, FAY_KEY_BYTES);
	for (uint32_t i = 0; i < bpf->place_count; i++) {
		read_text(reader, bpf->places[i].structure, sizeof(bpf->places[i].structure));
		read_text(reader, bpf->places[i].member, sizeof(bpf->places[i].member));
		bpf->places[i].offset = fay_wire_u32(reader);
	}
	if (!(bpf->maps >> FAY_BPF_NAMES & 1))
		return FAY_OK;
	const uint8_t *names = read_bytes(reader, sizeof(object->names));
	if (names)
		memcpy(object->names, names, sizeof(object->names));
	bpf->names = object->names;
	return reader->bad ? malformed("names", error) : FAY_OK;
}

static bool helper_is_allowed(int32_t number)
{
	static const int32_t helpers[] = FAY_BPF_HELPERS;
	for (size_t i = 0; i < sizeof(helpers) / sizeof(helpers[0]); i++)
		if (helpers[i] == number)
			return true;
	return false;
}

/* An ld_imm64 of two instructions: a number, one of the object's maps, one of the machine's values.
 * */
static bool wide_is_sound(const struct fay_bpf_object *object, const struct bpf_insn *code)
{
	uint32_t number = (uint32_t)code[0].imm;
	if (code[0].off || code[1].code || code[1].dst_reg || code[1].src_reg || code[1].off)
		return false;
	switch (code[0].src_reg) {
	case 0: return true;
	case BPF_PSEUDO_MAP_FD:
	case BPF_PSEUDO_MAP_VALUE:
		return number < FAY_BPF_MAPS && object->maps >> number & 1 && !code[1].imm;
	case FAY_BPF_PSEUDO_MACHINE: return number < FAY_BPF_VALUES && !code[1].imm;
	default: /* the kernel's variables, other programs, descriptors of ours */ return false;
	}
}

static bool code_is_sound(const struct fay_bpf_object *object, const struct bpf_insn *code,
			  uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		if (code[i].code == (BPF_LD | BPF_IMM | BPF_DW)) {
			if (i + 1 == count || !wide_is_sound(object, &code[i]))
				return false;
			i++;
		} else if (BPF_CLASS(code[i].code) == BPF_LD) {
			return false; /* of socket filters */
		} else if ((BPF_CLASS(code[i].code) == BPF_JMP ||
			    BPF_CLASS(code[i].code) == BPF_JMP32) &&
			   BPF_OP(code[i].code) == BPF_CALL) {
			/* No functions of the kernel by number of their type, and none of the
			 * program's own. */
			if (code[i].code != (BPF_JMP | BPF_CALL) || code[i].src_reg ||
			    code[i].off || !helper_is_allowed(code[i].imm))
				return false;
		}
	}
	return count > 0;
}

static bool set_kind(struct fay_bpf_program *program, unsigned kind, const char *name)
{
	static const uint32_t attach[] = { [KIND_TRACEPOINT] = BPF_TRACE_RAW_TP,
					   [KIND_ENTRY] = BPF_TRACE_FENTRY,
					   [KIND_EXIT] = BPF_TRACE_FEXIT };
	if (kind < KIND_TRACEPOINT || kind > KIND_TIMER || !*name)
		return false;
	if (kind == KIND_TIMER) {
		program->type = BPF_PROG_TYPE_PERF_EVENT;
		memcpy(program->name, "timer", sizeof("timer"));
		return program->period >= FAY_BPF_PERIOD_LEAST &&
		       program->period <= FAY_BPF_PERIOD_MOST;
	}
	program->type = BPF_PROG_TYPE_TRACING;
	program->attach = attach[kind];
	return (size_t)snprintf(program->name, sizeof(program->name), "%s %s",
				kind == KIND_TRACEPOINT ? "tracepoint" : "function",
				name) < sizeof(program->name) &&
	       !program->period;
}

/* More functions than one: those that the kernel does not take are left out. A function whose
 * duration is asked for has two programs. */
static bool has_several_functions(const struct fay_bpf_object *object)
{
	for (uint32_t i = 1; i < object->program_count; i++)
		if (object->programs[0].attach != BPF_TRACE_RAW_TP &&
		    strcmp(object->programs[i].name, object->programs[0].name))
			return true;
	return false;
}

static int read_programs(struct fay_object *object, struct fay_reader *reader,
			 struct fay_error *error)
{
	struct fay_bpf_object *bpf = &object->bpf;
	struct bpf_insn *code = object->code;
	uint32_t used = 0;
	bpf->programs = object->programs;
	bpf->program_count = fay_wire_u16(reader);
	if (!bpf->program_count || bpf->program_count > FAY_BPF_PROGRAMS_MAX)
		return malformed("programs", error);
	for (uint32_t i = 0; i < bpf->program_count; i++) {
		struct fay_bpf_program *program = &bpf->programs[i];
		char name[64];
		const uint8_t *kind = read_bytes(reader, 1);
		read_text(reader, name, sizeof(name));
		program->period = fay_wire_u64(reader);
		program->count = fay_wire_u32(reader);
		if (reader->bad || program->count > FAY_OBJECT_INSTRUCTIONS_MAX - used)
			return malformed("a program's size", error);
		const uint8_t *bytes = read_bytes(reader, program->count * sizeof(*code));
		if (!bytes || !set_kind(program, *kind, name))
			return malformed("a program", error);
		program->code = code + used;
		memcpy(program->code, bytes, program->count * sizeof(*code));
		used += program->count;
		if (!code_is_sound(bpf, program->code, program->count))
			return fay_error_set(error, FAY_E_REFUSED,
					     "the BPF program for %s refers to something that "
					     "queries do not use",
					     program->name);
	}
	bpf->some = has_several_functions(bpf);
	return FAY_OK;
}

static int read_all(struct fay_object *object, struct fay_reader *reader, struct fay_error *error)
{
	struct fay_bpf_object *bpf = &object->bpf;
	if (fay_wire_u32(reader) != MAGIC)
		return malformed("no BPF object", error);
	bpf->maps = fay_wire_u32(reader);
	bpf->local_size = fay_wire_u32(reader);
	if (reader->bad || bpf->maps >> FAY_BPF_MAPS || !(bpf->maps >> FAY_BPF_SLOTS & 1) ||
	    bpf->local_size > FAY_IMAGE_MAX_LOCAL || bpf->local_size % 8)
		return malformed("maps", error);
	bpf->slot_stride = (FAY_SLOT_HEADER + bpf->local_size + 63) & ~63u;
	int result = read_schema(object, reader, error);
	bpf->row_size = object->state.row_size;
	if (!result)
		result = read_places(object, reader, error);
	if (!result)
		result = read_programs(object, reader, error);
	if (!result && (reader->bad || reader->at != reader->end))
		result = malformed("its end", error);
	return result;
}

int fay_object_read(const void *bytes, size_t size, struct fay_object **result,
		    struct fay_error *error)
{
	struct fay_reader reader = { .at = bytes, .end = (const uint8_t *)bytes + size };
	/* no more instructions than there are bytes */
	struct fay_object *object = calloc(1, sizeof(*object) + size);
	if (!object)
		return fay_error_set(error, FAY_E_LIMIT, "out of memory");
	if (read_all(object, &reader, error)) {
		free(object);
		return error->code;
	}
	crypto_hash_sha256(object->verdict.image_sha256, bytes, size);
	*result = object;
	return FAY_OK;
}

/* --- may it run here --- */

int fay_object_check_policy(const struct fay_object *object, const struct fay_policy *policy,
			    struct fay_error *error)
{
	return fay_bpf_check_policy(&object->bpf, policy, "the signer's policy", error);
}

static int check_types(const struct fay_object *object, const struct btf *btf,
		       struct fay_error *error)
{
	uint8_t types[FAY_KEY_BYTES];
	if (object->bpf.typed) {
		if (kernel_types(types, error))
			return error->code;
		if (memcmp(types, object->types, sizeof(types)))
			return fay_error_set(
				error, FAY_E_REFUSED,
				"this machine's kernel has other types than the one the query was "
				"compiled for; run the client on a machine with this kernel");
	}
	for (uint32_t i = 0; i < object->bpf.place_count; i++) {
		const struct fay_bpf_place *place = &object->bpf.places[i];
		struct fay_btf_field field;
		uint32_t id = fay_btf_find(btf, BTF_KIND_STRUCT, place->structure);
		if (!id || !fay_btf_member(btf, id, place->member, &field) ||
		    field.bit_offset != place->offset * 8u)
			return fay_error_set(
				error, FAY_E_REFUSED,
				"in this machine's kernel, struct %s's %s is at another offset "
				"than in the one the query was compiled for",
				place->structure, place->member);
	}
	return FAY_OK;
}

static int resolve_program(struct fay_bpf_program *program, const struct btf *btf,
			   struct fay_error *error)
{
	struct fay_btf_tracepoint point;
	const char *name = strchr(program->name, ' ');
	if (program->period)
		return FAY_OK;
	bool found = name && (program->attach == BPF_TRACE_RAW_TP
				      ? fay_btf_tracepoint(btf, name + 1, &point)
				      : fay_btf_function(btf, name + 1, &point));
	if (!found)
		return fay_error_set(error, FAY_E_REFUSED, "this machine's kernel has no %s",
				     program->name);
	program->btf_id = point.id;
	return FAY_OK;
}

int fay_object_resolve(struct fay_object *object, struct fay_error *error)
{
	const struct btf *btf;
	if (fay_btf_open(NULL, &btf, error))
		return error->code;
	int result = check_types(object, btf, error);
	for (uint32_t i = 0; i < object->bpf.program_count && !result; i++)
		result = resolve_program(&object->bpf.programs[i], btf, error);
	fay_btf_close(btf);
	fay_bpf_machine(object->bpf.values);
	return result;
}
