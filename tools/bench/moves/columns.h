/** The table of bench redistribute: nccl-tests' columns, then how near a move is to what is possible, and how far its times spread. */
#ifndef TESSERA_TOOLS_BENCH_MOVES_COLUMNS_H
#define TESSERA_TOOLS_BENCH_MOVES_COLUMNS_H

#include "bench/moves/move_bench.h"

/** What all rows of a table share, in a line of comment; `explain` adds what holds for this row alone. Then the names of the columns. */
void columns_begin(const move_bench *b, const move_figures *f, bool explain);

/** A line of comment that says whose row comes next, where rows of a table have several shapes. */
void columns_name_shape(const move_bench *b);

void columns_print(const move_bench *b, const move_figures *f);

#endif
