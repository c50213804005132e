/* SPDX-License-Identifier: MIT */
/* What a kernel session (kernel_session.h) is made with: kernel_symbols.c, kernel_btf.c,
 * kernel_object.c (the module with the code). */
#ifndef FAY_LOADER_KERNEL_H
#define FAY_LOADER_KERNEL_H

#include "../dispatcher/kernel/trampoline.h"
#include "fay/kernel.h"

/* ---- kernel_btf.c: the kernel's types ---- */

struct fay_kernel_btf;
int fay_kernel_btf_open(struct fay_kernel_btf **btf, struct fay_error *error);
/* The same of bytes in memory, malloc'ed and taken over in any case. */
int fay_kernel_btf_create(uint8_t *bytes, size_t size, struct fay_kernel_btf **btf,
			  struct fay_error *error);
void fay_kernel_btf_close(struct fay_kernel_btf *btf);
/* sizeof(struct module) and the offset of its name; false: not found. */
bool fay_kernel_btf_module(const struct fay_kernel_btf *btf, uint32_t *size, uint32_t *name_offset);
struct fay_kernel_prototype {
	uint32_t stack_words; /* of arguments */
	uint32_t result;      /* as in struct fay_kernel_set */
};
/* False: there is no prototype of that name, or it has arguments that are not understood. */
bool fay_kernel_btf_prototype(const struct fay_kernel_btf *btf, const char *name,
			      struct fay_kernel_prototype *prototype);

/* ---- kernel_sign.c ---- */

/* Environment: PEM file of the private key that modules are signed with, and file of its
 * certificate (PEM or DER). No key: they are not signed. */
#define FAY_KERNEL_KEY "FAY_MODULE_KEY"
#define FAY_KERNEL_CERTIFICATE "FAY_MODULE_CERT"
bool fay_kernel_signs(void);
/* Appends the signature to a module of malloc's memory, which may move. Does nothing if there is no
 * key. */
int fay_kernel_sign(uint8_t **bytes, size_t *size, struct fay_error *error);

/* ---- kernel_session.c ---- */

/* As fay_kernel_session_attach(), with symbols and types that are the caller's and outlive the
 * session. */
int fay_kernel_session_attach_with(const struct fay_verdict *verdict, const char *fay_ko,
				   const struct fay_kernel_symbols *symbols,
				   const struct fay_kernel_btf *btf,
				   struct fay_kernel_session **session, struct fay_error *error);

/* ---- kernel_object.c ---- */

struct fay_kernel_object {
	/* path of any module of the running kernel: version magic, symbol version */
	const char *reference;
	const uint8_t *text;
	size_t text_size;
	const struct fay_kernel_relocation *relocations; /* offsets in the text */
	size_t relocation_count;
	const char *name;
	bool indirect; /* the text has indirect calls */
};
#define FAY_KERNEL_RELEASE_MAX 65u /* struct utsname */
/* Which kernel a module was built for, by its version magic; false: it is none. */
bool fay_kernel_object_release(const char *path, char release[FAY_KERNEL_RELEASE_MAX]);
/* An ELF object for init_module(2). */
int fay_kernel_object_write(const struct fay_kernel_object *object,
			    const struct fay_kernel_btf *btf, uint8_t **bytes, size_t *size,
			    struct fay_error *error);

#endif
