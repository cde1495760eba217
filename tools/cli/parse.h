/**
 * From an option's text to what it means.
 *
 * Text that does not parse is EXIT_USAGE, what parses and is then refused EXIT_REFUSED; both have been complained about on return.
 */
#ifndef TESSERA_TOOLS_CLI_PARSE_H
#define TESSERA_TOOLS_CLI_PARSE_H

#include "command.h"

#include <stdint.h>
#include <tessera/layout.h>
#include <tessera/plan.h>

/** A global shape. */
typedef struct tensor_shape {
    int ndim;
    int64_t size[TSR_MAX_DIMS];
} tensor_shape;

/** Rank threads that this tool starts at most. */
#define MAX_RANK_THREADS 4096

/** An abstract mesh, in the default context or another; the caller destroys it. `option` is whose text it is, else --mesh. */
int parse_mesh(const char *text, tsr_mesh **out);
int parse_mesh_in(tsr_context *context, const char *option, const char *text, tsr_mesh **out);

/** "31x3", "scalar". */
int parse_shape(const char *text, tensor_shape *out);

/** NULL is f32. */
int parse_dtype(const char *text, tsr_dtype *out);

/** The value of another option than --dtype. */
int parse_dtype_of(const char *option, const char *text, tsr_dtype *out);

/** Whether the text is placements at all, whatever they mean for a mesh and a tensor. `option` is whose text it is: "--from". */
int check_placements(const char *option, const char *text);

/** Placements over a mesh; the caller destroys the layout. */
int parse_layout(const char *option, const char *text, const tsr_mesh *mesh, const tensor_shape *shape, tsr_dtype dtype, tsr_layout **out);

/** Digits at the front of `*at`, which moves behind them; false where there are none, or the number is beyond 2^63-1. */
bool parse_number(const char **at, int64_t *out);

/** A number from 1 up; NULL is `otherwise`. */
int parse_count(const char *option, const char *text, int64_t otherwise, int64_t *out);

/** A number from 0 up. */
int parse_index(const char *option, const char *text, int64_t *out);

/** "direct", "message"; NULL is direct. */
int parse_mode(const char *text, tsr_mode *out);
const char *mode_name(tsr_mode mode);

/** How many rank threads the mesh needs: its largest rank and one. Refused beyond MAX_RANK_THREADS. */
int count_rank_threads(const tsr_mesh *mesh, int *out);

/** Steps `coordinate` on in row-major order; false after the last, when it is all 0 again. */
bool next_coordinate(const tsr_mesh *mesh, int64_t *coordinate);

#endif
