# SPDX-License-Identifier: MIT
"""native.py FILE.c   writes the C source of the module fay._native: what fay/verify.h, fay/trace.h
and fay/host/host.h declare, as far as the module fay uses it. The compiler fills in what stands as `...`."""
import sys

import cffi

ffi = cffi.FFI()
ffi.set_source('fay._native', '''
#include <fay/host/host.h>
#include <fay/trace.h>
#include <fay/verify.h>

/* System V passes six words in registers; what an entry does not take it does not look at. */
static uint64_t fay_python_call(fay_host_function entry, const uint64_t *word)
{
    typedef uint64_t six(uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t);

    return ((six *)entry)(word[0], word[1], word[2], word[3], word[4], word[5]);
}
''')
ffi.cdef('''
#define FAY_IMAGE_MAX_FILE ...
#define FAY_E_REFUSED ...
#define FAY_E_USAGE ...
#define FAY_E_LIMIT ...

struct fay_error { int code; char message[2048]; ...; };
struct fay_policy { ...; };
struct fay_probe_facts {
    const char *pattern;
    uint32_t kind;
    uint64_t worst_instructions, worst_stack;
    ...;
};
struct fay_rejection {
    int rule;
    const char *function, *what, *missing, *counterexample, *hint;
    ...;
};
struct fay_verdict {
    int outcome;
    struct fay_rejection rejection;
    uint32_t probe_count;
    struct fay_probe_facts *probes;
    bool certified;
    ...;
};
int fay_policy_read(const char *path, struct fay_policy *policy, char *message, size_t size);
void fay_policy_default(struct fay_policy *policy);
const char *fay_rule_id(int rule);
const char *fay_outcome_name(int outcome);
const char *fay_probe_kind_name(unsigned kind);
void fay_verify(const void *bytes, size_t size, const struct fay_policy *policy,
                struct fay_verdict *verdict);
void fay_verdict_deinit(struct fay_verdict *verdict);

struct fay_tracer;
struct fay_cell_item { const char *label; uint64_t count; double value; ...; };
struct fay_cell {
    int kind;
    int64_t i64;
    uint64_t u64;
    double real;
    const char *bytes;
    size_t size;
    const struct fay_cell_item *items;
    ...;
};
struct fay_row {
    size_t result;
    uint64_t picture;
    bool final, revised;
    size_t count;
    const struct fay_cell *cells;
    ...;
};
typedef int... pid_t;
struct fay_tracer_options {
    size_t size;
    const pid_t *pids;
    size_t pid_count;
    const char *const *comms;
    size_t comm_count;
    char *const *command;
    uint64_t duration_ns, every_ns;
    double budget;
    const char *policy_path;
    void *context;
    void (*row)(void *context, const struct fay_row *row);
    void (*message)(void *context, const char *text);
    ...;
};
struct fay_tracer_statistics {
    size_t size;
    uint64_t rows;
    uint32_t threads;
    uint64_t lost_reentrant, lost_full, lost_no_slot, lost_calls, late;
    ...;
};
int fay_tracer_open(const char *query, const struct fay_tracer_options *options,
                    struct fay_tracer **tracer, struct fay_error *error);
const char *fay_tracer_column(const struct fay_tracer *tracer, size_t result, size_t index);
int fay_tracer_fd(const struct fay_tracer *tracer);
int fay_tracer_step(struct fay_tracer *tracer, int timeout_ms, struct fay_error *error);
const char *fay_tracer_over(const struct fay_tracer *tracer);
pid_t fay_tracer_command(const struct fay_tracer *tracer);
void fay_tracer_stop(struct fay_tracer *tracer);
int fay_tracer_finish(struct fay_tracer *tracer, struct fay_error *error);
int fay_tracer_statistics(struct fay_tracer *tracer, struct fay_tracer_statistics *statistics,
                          struct fay_error *error);
void fay_tracer_close(struct fay_tracer *tracer);

struct fay_host;
struct fay_loaded;
typedef void (*fay_host_function)(void);
#define FAY_HOST_SIZE ...
#define FAY_HOST_NUMBER ...
struct fay_host_parameter {
    const char *name, *region;
    int kind;
    uint32_t bytes, alignment;
    bool written, constant, passed;
    int64_t lo;
    uint64_t hi;
    ...;
};
int fay_host_open(const char *text, size_t size, struct fay_host **host, struct fay_error *error);
void fay_host_close(struct fay_host *host);
int fay_host_bind(struct fay_host *host, const char *helper, fay_host_function function,
                  struct fay_error *error);
int fay_host_parameter(const struct fay_host *host, size_t index,
                       struct fay_host_parameter *parameter);
int fay_host_result(const struct fay_host *host, int64_t *lo, uint64_t *hi);
int fay_host_load(const struct fay_host *host, const void *image, size_t size,
                  struct fay_loaded **loaded, struct fay_error *error);
void fay_host_unload(struct fay_loaded *loaded);
fay_host_function fay_loaded_entry(const struct fay_loaded *loaded, const char *name);
int fay_loaded_limits(const struct fay_loaded *loaded, const char *name, uint64_t *instructions,
                      uint64_t *stack);
size_t fay_loaded_local_size(const struct fay_loaded *loaded);
void *fay_loaded_instance(const struct fay_loaded *loaded);
void fay_instance_release(void *local);
uint64_t fay_python_call(fay_host_function entry, const uint64_t *word);

extern "Python" void take_row(void *context, const struct fay_row *row);
extern "Python" void take_message(void *context, const char *text);
''')

if __name__ == '__main__':
    ffi.emit_c_code(sys.argv[1])
