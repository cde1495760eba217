/** What cores read at most, to compare with what else has to read the same bytes. */
#ifndef TESSERA_TOOLS_BENCH_LINEAR_READ_H
#define TESSERA_TOOLS_BENCH_LINEAR_READ_H

#include <stddef.h>

/** Reads `bytes` of memory once, in several streams, as fast as a loop does that needs nothing of them. */
void bench_read(const void *memory, size_t bytes);

#endif
