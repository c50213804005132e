/* SPDX-License-Identifier: MIT */
/* Nothing that a query could call. */
const int number = 7;
