/** Reading memory at full speed, to compare layers with that must read the same bytes. */
#ifndef TESSERA_TOOLS_BENCH_LINEAR_READ_H
#define TESSERA_TOOLS_BENCH_LINEAR_READ_H

#include <stddef.h>

/** Reads `bytes` of memory once, in several streams, with as little arithmetic as possible. */
void bench_read(const void *memory, size_t bytes);

#endif
