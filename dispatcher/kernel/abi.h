/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * What fay.ko and the user side agree on: /dev/fay, one session an open file. docs/kernel.md has
 * the order of things.
 *
 * Every structure is copied in and checked before anything is done; sizes are in bytes, offsets
 * from the start of the module's text, where the verified layout begins. An error leaves the
 * session as it was.
 */
#ifndef FAY_KERNEL_ABI_H
#define FAY_KERNEL_ABI_H

#ifdef __KERNEL__
#include <linux/ioctl.h>
#include <linux/types.h>
#else
#include <stdint.h>
#include <sys/ioctl.h>
#endif

#define FAY_KERNEL_ABI 6u
#define FAY_KERNEL_DEVICE "/dev/fay"
#define FAY_KERNEL_MODULE_PREFIX "fay_s" /* then the session's number, decimal */

#define FAY_KERNEL_SESSIONS_MAX 16u
#define FAY_KERNEL_CONTEXTS 4u    /* task, softirq, irq, NMI */
#define FAY_KERNEL_PROBES_MAX 64u /* a set of probes is a mask */
#define FAY_KERNEL_SETS_MAX 256u
#define FAY_KERNEL_POINTS_MAX 65536u
/*
 * Functions of all sessions that call their trampoline directly: Linux 6.1 copies its table of
 * direct calls for each one beyond 8,192, and does not free the copies. The rest is for others
 * (BPF). One set has at most FAY_KERNEL_DIRECT_MAX, and so have return probes; more entries are
 * called back by ftrace.
 */
#define FAY_KERNEL_DIRECT_TOTAL 7680u
#define FAY_KERNEL_DIRECT_MAX 4096u
#define FAY_KERNEL_CHECK_MAX (1u << 18)
#define FAY_KERNEL_IMAGE_MAX (1u << 20) /* bytes; also of what runs of it */
#define FAY_KERNEL_SIGNATURE_MAX 65536u /* bytes */
#define FAY_KERNEL_STACK_WORDS_MAX 16u
#define FAY_KERNEL_TRAMPOLINE_MAX 2048u
#define FAY_KERNEL_SHM_MAX (1ull << 30) /* bytes of state of one session */
/*
 * The code of users' sessions, which have no module of their own: a module of this name, which root
 * loads, has an area for each of the first session numbers.
 */
#define FAY_KERNEL_AREAS "fay_areas"
#define FAY_KERNEL_AREA_COUNT 8u
#define FAY_KERNEL_AREA_SIZE 65536u
#define FAY_KERNEL_FUNCTIONS_MAX 65536u /* of a policy */
#define FAY_KERNEL_NAMES_MAX (4u << 20) /* bytes of their names */

/* What a trampoline refers to; fay.ko says it. Per-CPU offsets are used as %gs:offset. */
struct fay_kernel_places {
	uint32_t preempt_count;
	uint32_t contexts; /* address of this CPU's FAY_KERNEL_CONTEXTS contexts */
	uint32_t begun;    /* calls that were led through a return trampoline */
	uint32_t ended;
	uint64_t fill;       /* void fill(struct fay_kernel_context *, uint32_t fields) */
	uint64_t resched;    /* void resched(void) */
	uint64_t helpers[3]; /* by enum fay_helper */
};

/* What the checker says of a probe. */
struct fay_kernel_probe {
	uint32_t kind; /* enum fay_probe_kind: entry, return, begin, end, timer */
	uint32_t code_offset;
	uint32_t fields;    /* mask of enum fay_event_field: what it reads */
	uint16_t clobbers;  /* general registers by encoding, bit 1 << number */
	uint16_t arguments; /* likewise: of rdi, rsi and rdx those that it reads */
};

/* Of a user (struct fay_kernel_policy), the answer's places are zero. */
struct fay_kernel_create {
	uint32_t abi;        /* FAY_KERNEL_ABI */
	uint32_t spill_size; /* a power of two, or 0 */
	/* the file of a probe image with its certificate: all that is believed of the code */
	uint64_t image;
	uint32_t image_size;
	/* answers */
	uint32_t session;
	uint64_t probes; /* struct fay_kernel_probe[FAY_KERNEL_PROBES_MAX]: those of the image */
	uint32_t probe_count;
	uint32_t layout_size;
	uint64_t shm_size; /* to be mapped at offset 0 of the device */
	struct fay_kernel_places places;
	/* of EKEYREJECTED: enum fay_rule, and where (docs/rules.md) */
	uint32_t rule;
	/*
	 * A PKCS #7 signature of the image's file (DER, detached), which is asked for where the
	 * module's parameter `signatures` says so; size 0: there is none. ENOKEY: there is none, or
	 * none by a key of the keyring `.fay`; EKEYEXPIRED, EKEYREVOKED: by one that counts no
	 * more; EILSEQ: it is of other bytes; EBADMSG: it is no signature.
	 */
	uint32_t signature_size;
	uint64_t place;
	uint64_t signature;
};

/* Bits of rax above a function's value: 0, 32, 48 or 56, and FAY_KERNEL_RESULT_SIGNED if its sign
 * fills them; FAY_KERNEL_RESULT_NONE: it has no value, 0 is read. */
#define FAY_KERNEL_RESULT_SIGNED 128u
#define FAY_KERNEL_RESULT_NONE 64u

/* Points that have the same probes, and their trampoline: the next `point_count` behind those of
 * the set before. A set of one begin, end or timer probe has none. */
struct fay_kernel_set {
	uint64_t probes; /* mask */
	/* words of stack arguments of the functions; only with a return probe, else 0 */
	uint32_t stack_words;
	uint32_t trampoline; /* offset, multiple of 16 */
	uint32_t point_count;
	/* 1: ftrace calls the trampoline back, beside those of others; entry probes only. 0: the
	 * functions call it directly */
	uint32_t callback;
	/* FAY_KERNEL_RESULT_*: what the functions return; only with a return probe that reads it,
	 * else 0 */
	uint32_t result;
	uint32_t reserved;
};

/* Of a user, `address` is a function's index in the policy, `function` means nothing, and all sets'
 * `trampoline` is 0: fay.ko writes the code itself. */
struct fay_kernel_point {
	uint64_t address;
	uint64_t function; /* fay_name_hash() of its name */
};

struct fay_kernel_attach {
	uint64_t sets;   /* struct fay_kernel_set[set_count] */
	uint64_t points; /* struct fay_kernel_point[point_count] */
	uint32_t set_count, point_count;
};

/* Whether ftrace can trace at these addresses of the kernel's own functions: one byte each is
 * written, 1 or 0. */
struct fay_kernel_check {
	uint64_t addresses; /* uint64_t[count] */
	uint64_t answers;   /* uint8_t[count] */
	uint32_t count, reserved;
};

struct fay_kernel_detached {
	/* under way: their functions have not returned yet; the session's module stays until they
	 * have */
	uint64_t calls;
};

/* What those may do who have no CAP_SYS_ADMIN ("users"). A function that they may trace: */
struct fay_kernel_function {
	uint64_t address;     /* a function of the kernel's own; 0 in answers */
	uint32_t stack_words; /* as in struct fay_kernel_set; with `returns` */
	uint32_t result;
	uint32_t returns; /* 1: its returns can be traced */
	uint32_t reserved;
};

struct fay_kernel_policy {
	uint64_t functions; /* struct fay_kernel_function[function_count], by address */
	uint64_t names;     /* their names in this order, each with its NUL */
	uint64_t images;    /* struct fay_policy: what images are held to */
	uint64_t max_state; /* bytes of memory for one session's state, all CPUs */
	uint32_t images_size, function_count, names_size;
	uint32_t group; /* whose members are users, as the first user namespace numbers it */
	uint32_t max_points, max_sessions; /* of a session, of a user */
	uint32_t user;                     /* answer: 1: the caller is one */
	uint32_t reserved;
};

#define FAY_KERNEL_CREATE _IOWR('F', 0x80, struct fay_kernel_create)
#define FAY_KERNEL_ATTACH _IOW('F', 0x81, struct fay_kernel_attach)
#define FAY_KERNEL_CHECK _IOW('F', 0x82, struct fay_kernel_check)
#define FAY_KERNEL_RUN _IOW('F', 0x83, uint32_t) /* index of a set without points */
#define FAY_KERNEL_DETACH _IOR('F', 0x84, struct fay_kernel_detached)
/* Sets the policy, or, without functions, ends it. Needs CAP_SYS_ADMIN. Users that are there keep
 * the policy that they opened the device under, but attach to nothing more. */
#define FAY_KERNEL_POLICY _IOW('F', 0x85, struct fay_kernel_policy)
/* What holds for the caller, or for users if it is none. Functions and names are written if both
 * sizes are what they are, and only the sizes if both are 0. */
#define FAY_KERNEL_ALLOWED _IOWR('F', 0x86, struct fay_kernel_policy)

#endif
