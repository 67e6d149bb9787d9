/* SPDX-License-Identifier: MIT */
/* table, as C++ sees the headers. */
#include "table.c"
