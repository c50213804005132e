/* SPDX-License-Identifier: MIT */
/* `fay doctor`: what this machine can and cannot do, found by trying it. */
#ifndef FAY_CLI_DOCTOR_H
#define FAY_CLI_DOCTOR_H

int fay_doctor_main(int argc, char **argv);

#endif
