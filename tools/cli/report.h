/** JSON and text that several subcommands print: meshes, shapes, placements. A NULL json_t stands
 * for a lack of memory, and is passed on. */
#ifndef TESSERA_TOOLS_CLI_REPORT_H
#define TESSERA_TOOLS_CLI_REPORT_H

#include "cli/parse.h"
#include "cli/text_buffer.h"

#include <jansson.h>

/** Gives Jansson an allocator that records a lack of memory, since Jansson drops values in silence
 * in some places. Call once, before any other call of Jansson. */
void json_begin(void);

/* Every list and object is built by these functions. Each takes the references of its json_t
 * arguments and returns the first, or NULL if an argument is NULL or memory is short: a value that
 * lacks memory for any part is NULL as a whole. */
json_t *json_with_item(json_t *array, json_t *item);
json_t *json_with_field(json_t *object, const char *name, json_t *value);
json_t *json_with_fields(json_t *object, json_t *more);

/** The value as text on the heap, which the caller frees; NULL if there is no memory. Takes the
 * reference. */
char *json_take_text(json_t *json);

/** {"shape": [2, 2], "names": ["dp", "tp"]}, and "ranks" unless they are 0, 1, 2, .. */
json_t *mesh_to_json(const tsr_mesh *mesh);

/** The ranks in mesh order: [3, 1, 0, 2]. */
json_t *ranks_to_json(const tsr_mesh *mesh);

/** A list of sizes: [31, 3]. */
json_t *sizes_to_json(const int64_t *sizes, int count);

/** The placements of a layout: a list with one text for each mesh dim. */
json_t *placements_to_json(const tsr_layout *layout);

/** Writes a shape: "31x3", "scalar". */
#define SHAPE_TEXT_BYTES 192
void print_shape(int ndim, const int64_t *size, char text[SHAPE_TEXT_BYTES]);

/** The text of tsr_layout_print() and tsr_mesh_print(), which the caller frees; NULL if there is no
 * memory. */
char *layout_text(const tsr_layout *layout);
char *mesh_text(const tsr_mesh *mesh);

/** Writes `json` in one line and takes its reference; complains of NULL. */
int write_json(json_t *json, text_buffer *to);

/** Writes an object as write_json() does, but without its last brace and the end of the line, so
 * that the caller can add fields. */
int write_open_json(json_t *json, text_buffer *to);

/** write_json() to standard output. */
int print_json(json_t *json);

#endif
