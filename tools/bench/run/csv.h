/** Rows of benchmarks for programs: JSON, an object on each line, or comma-separated values, quoted
 * by RFC 4180, under a line of names. */
#ifndef TESSERA_TOOLS_BENCH_RUN_CSV_H
#define TESSERA_TOOLS_BENCH_RUN_CSV_H

#include "command.h"

#include <jansson.h>

typedef enum row_format { ROWS_TEXT = 0, ROWS_JSON, ROWS_CSV } row_format;

/** Reads --json and --csv; ROWS_TEXT without either. Returns the tool's exit status. */
int row_format_read(const tool_arguments *given, row_format *out);

/** Prints a row as JSON or CSV and takes its reference; with `first`, CSV has the line of names
 * before it. In CSV the fields of objects are columns, as "seconds.median" and
 * "links_error.inside.median"; lists of numbers are "64x64", null is empty. Complains of a NULL
 * row. Returns the tool's exit status. */
int print_row(row_format format, json_t *row, bool first);

#endif
