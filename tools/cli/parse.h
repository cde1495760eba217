/**
 * Parses the values of options.
 *
 * Functions that return int return EXIT_USAGE for text that does not parse and EXIT_REFUSED for a
 * value that parses but is refused, having complained of either.
 */
#ifndef TESSERA_TOOLS_CLI_PARSE_H
#define TESSERA_TOOLS_CLI_PARSE_H

#include "command.h"

#include <tessera/context.h>
#include <tessera/layout.h>
#include <tessera/plan.h>

#include <stdint.h>

/** A global shape. */
typedef struct tensor_shape {
    int ndim;
    int64_t size[TSR_MAX_DIMS];
} tensor_shape;

/** Upper bound of the rank threads that this tool starts. */
#define MAX_RANK_THREADS 4096

/** An abstract mesh, in `context` or (parse_mesh(), or NULL) the default one; the caller destroys
 * it. `option` is the name that errors give; parse_mesh() gives --mesh. */
int parse_mesh(const char *text, tsr_mesh **out);
int parse_mesh_in(tsr_context *context, const char *option, const char *text, tsr_mesh **out);

/** "31x3", "scalar". */
int parse_shape(const char *text, tensor_shape *out);

/** The value of --dtype; NULL is f32. */
int parse_dtype(const char *text, tsr_dtype *out);

/** A dtype, the value of `option`. */
int parse_dtype_of(const char *option, const char *text, tsr_dtype *out);

/** Checks the syntax of placements alone, not whether they suit a mesh and a tensor. `option` is
 * the name that errors give: "--from". */
int check_placements(const char *option, const char *text);

/** The layout of a tensor by the placements in `text`; the caller destroys it. */
int parse_layout(const char *option, const char *text, const tsr_mesh *mesh, const tensor_shape *shape, tsr_dtype dtype,
                 tsr_layout **out);

/** Reads the digits at `*at` and moves `*at` behind them; false if there are none, or the number is
 * beyond 2^63-1. */
bool parse_number(const char **at, int64_t *out);

/** A whole number from 1 up; NULL is `otherwise`. */
int parse_count(const char *option, const char *text, int64_t otherwise, int64_t *out);

/** A whole number from 0 up. */
int parse_index(const char *option, const char *text, int64_t *out);

/** "direct", "message"; NULL is direct. */
int parse_mode(const char *text, tsr_mode *out);
const char *mode_name(tsr_mode mode);

/** "forbid", "partials", "warn", "allow"; NULL is forbid. */
int parse_policy(const char *text, tsr_policy *out);

/** The number of rank threads that the mesh needs: its largest rank plus one. Refused beyond
 * MAX_RANK_THREADS. */
int count_rank_threads(const tsr_mesh *mesh, int *out);

/** Advances `coordinate` by one in row-major order; false after the last, when it is all 0
 * again. */
bool next_coordinate(const tsr_mesh *mesh, int64_t *coordinate);

#endif
