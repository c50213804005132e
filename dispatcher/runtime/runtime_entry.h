/* SPDX-License-Identifier: MIT */
/* Offsets that runtime_entry.S reads at; runtime.c compares them with the structures. */
#ifndef FAY_DISPATCHER_RUNTIME_ENTRY_H
#define FAY_DISPATCHER_RUNTIME_ENTRY_H

/* in struct fay_runtime_config */
#define FAY_ENTRY_CONTROL 8
#define FAY_ENTRY_TID_OFFSET 200
/* in struct fay_shm_control */
#define FAY_ENTRY_NAMES 384
/* in struct fay_slot_header, and its size */
#define FAY_ENTRY_NAMES_SEEN 96
#define FAY_ENTRY_NAME 104
#define FAY_ENTRY_NAMED 120
#define FAY_ENTRY_SLOT 192

#endif
