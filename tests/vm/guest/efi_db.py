#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""efi_db.py TEMPLATE CERTIFICATE OUTPUT: a copy of an empty EFI variable store (OVMF_VARS*.fd) with one variable, `db`: the certificates (here one, DER) that the
machine's owner trusts. Linux puts these on its platform keyring. Formats: UEFI specification 2.10, 32.4.1 (EFI_SIGNATURE_LIST); EDK II, Guid/VariableFormat.h (the
store)."""
import struct
import sys
import uuid

SIGNATURE_DATABASE = uuid.UUID("d719b2cb-3d3a-4596-a3bc-dad00e67656f").bytes_le
X509 = uuid.UUID("a5c059a1-94e4-4aa7-87b5-ab155c2bf072").bytes_le
AUTHENTICATED_STORE = uuid.UUID("aaf32c78-947b-439a-a180-2e144ec37792").bytes_le
OWNER = uuid.UUID("2b5dd3ea-0fd2-4b64-9b4a-7d2c1f3c5a10").bytes_le  # anybody's
KEPT, AT_BOOT, AT_RUN_TIME = 1, 2, 4
VARIABLE_START, VARIABLE_ADDED = 0x55AA, 0x3F
STORE_HEADER = 28


def main(template, certificate, output):
    store = bytearray(open(template, "rb").read())
    der = open(certificate, "rb").read()
    size = 16 + len(der)
    data = X509 + struct.pack("<III", 28 + size, 0, size) + OWNER + der
    name = "db\0".encode("utf-16le")
    header = struct.pack("<HBBIQ16xIII", VARIABLE_START, VARIABLE_ADDED, 0, KEPT | AT_BOOT | AT_RUN_TIME, 0, 0, len(name), len(data)) + SIGNATURE_DATABASE
    at = struct.unpack_from("<H", store, 48)[0]  # behind the volume's header
    if store[40:44] != b"_FVH" or store[at:at + 16] != AUTHENTICATED_STORE:
        sys.exit("efi_db.py: %s is not a variable store" % template)
    at += STORE_HEADER
    if struct.unpack_from("<H", store, at)[0] == VARIABLE_START:
        sys.exit("efi_db.py: %s is not empty" % template)
    variable = header + name + data
    store[at:at + len(variable)] = variable
    open(output, "wb").write(store)


main(*sys.argv[1:])
