/* SPDX-License-Identifier: MIT */
/* A kernel that wasm2c made C of, as a function like the native one. wasm.h is wasm2c's header;
 * memory of 4 MiB: statics and stack, then input, output, local state. */
#include <stdint.h>

#include "wasm-rt-impl.h"
#include "wasm.h"

static struct Z_kernel_instance_t instance;

uint8_t *place(unsigned which);
uint8_t *place(unsigned which)
{
	if (!which) {
		wasm_rt_init();
		Z_kernel_init_module();
		Z_kernel_instantiate(&instance);
	}
	return Z_kernelZ_memory(&instance)->data + ((which + 1u) << 20);
}

uint64_t kernel(const uint8_t *data, uint64_t size, uint8_t *out, uint64_t room, void *state);
uint64_t kernel(const uint8_t *data, uint64_t size, uint8_t *out, uint64_t room, void *state)
{
	const uint8_t *memory = Z_kernelZ_memory(&instance)->data;

	return Z_kernelZ_kernel(&instance, (u32)(data - memory), size, (u32)(out - memory), room,
				(u32)((uint8_t *)state - memory));
}
