// SPDX-License-Identifier: MIT
// node wasm.mjs KERNEL.wasm INPUT   a kernel in V8's WebAssembly. For each line read: the
// nanoseconds of one call, and its result. Memory as in shim.c.
import { readFileSync } from 'fs';
import { createInterface } from 'readline';

const MIB = 1 << 20;
const module = await WebAssembly.instantiate(readFileSync(process.argv[2]));
const { kernel, memory } = module.instance.exports;
const input = readFileSync(process.argv[3]);

new Uint8Array(memory.buffer).set(input, MIB);
for await (const line of createInterface({ input: process.stdin })) {
	const begin = process.hrtime.bigint();
	const result = kernel(MIB, BigInt(input.length), 2 * MIB, BigInt(MIB - 64), 3 * MIB);
	const ns = process.hrtime.bigint() - begin;
	process.stdout.write(`${ns} ${BigInt.asUintN(64, result)}\n`);
}
