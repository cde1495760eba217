/** The table of bench redistribute: the columns of nccl-tests, then the shares of what is possible,
 * and the noise. */
#ifndef TESSERA_TOOLS_BENCH_MOVES_COLUMNS_H
#define TESSERA_TOOLS_BENCH_MOVES_COLUMNS_H

#include "bench/moves/move_bench.h"

/** Prints what all rows of a table share, as a comment; with `explain` also facts of this row
 * alone; then the names of the columns. */
void columns_begin(const move_bench *b, const move_figures *f, bool explain);

/** Prints the shape of the next row as a comment, for tables whose rows have several shapes. */
void columns_name_shape(const move_bench *b);

/** Prints a row. */
void columns_print(const move_bench *b, const move_figures *f);

#endif
