// SPDX-License-Identifier: MIT
//! An extension for packets.host in Rust: Adler-32 of a packet.
#![no_std]

use core::arch::global_asm;

// What include/fay/host/entry.h writes in C: one entry, no local state.
global_asm!(
    ".section .fay.image, \"a\"",
    ".ascii \"FAYPROBE\"",
    ".long 1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0",
    ".section .fay.interface, \"a\"",
    ".zero 32",
    ".section .fay.strings, \"a\"",
    "2: .asciz \"adler32\"",
    ".section .fay.probes, \"a\"",
    ".long 2b - ., 11, adler32 - ., 0",
    ".quad 0, 0",
    ".text",
    ".hidden adler32",
);

#[panic_handler]
fn never(_: &core::panic::PanicInfo) -> ! {
    loop {}
}

/// The packet is `size` bytes at `packet`, as the host promises.
#[no_mangle]
pub unsafe extern "C" fn adler32(packet: *const u8, size: u64, _state: *mut u8) -> u64 {
    let packet = core::slice::from_raw_parts(packet, size as usize);
    let (mut a, mut b) = (1u32, 0u32);
    for byte in packet {
        a = (a + *byte as u32) % 65521;
        b = (b + a) % 65521;
    }
    (b << 16 | a) as u64
}
