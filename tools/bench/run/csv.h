/** How benchmarks print rows for programs: JSON, an object a line, or comma-separated values quoted as RFC 4180 has it, under a line of
 * names. */
#ifndef TESSERA_TOOLS_BENCH_RUN_CSV_H
#define TESSERA_TOOLS_BENCH_RUN_CSV_H

#include "command.h"

#include <jansson.h>

typedef enum row_format { ROWS_TEXT = 0, ROWS_JSON, ROWS_CSV } row_format;

/** --json, --csv or neither. Returns the tool's exit status. */
int row_format_read(const tool_arguments *given, row_format *out);

/** Prints a row as JSON or CSV and gives it back; `first` says that the names are needed. Fields of objects are columns of their own, as
 * "seconds.median" and "links_error.inside.median"; lists of numbers are "64x64", null is empty. NULL is complained about. */
int print_row(row_format format, json_t *row, bool first);

#endif
