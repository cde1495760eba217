/** What several subcommands print alike: JSON of meshes, shapes and times. A NULL json_t stands for a lack of memory, and is passed on. */
#ifndef TESSERA_TOOLS_CLI_REPORT_H
#define TESSERA_TOOLS_CLI_REPORT_H

#include "cli/parse.h"
#include "cli/text_buffer.h"

#include <jansson.h>

/** Has Jansson ask for memory where a lack of it is noticed: it drops what it has none for in some places, and says nothing. Once, before
 * any other call of it. */
void json_begin(void);

/* Every list and object is made by these: each takes its arguments, and gives back the first, or NULL where it, or another argument, is
 * NULL or there is no memory. So what is short of memory anywhere is NULL as a whole. */
json_t *json_with_item(json_t *array, json_t *item);
json_t *json_with_field(json_t *object, const char *name, json_t *value);
json_t *json_with_fields(json_t *object, json_t *more);

/** The object, which this takes, as text; on the heap, NULL if there is no memory. */
char *json_take_text(json_t *json);

/** {"shape": [2, 2], "names": ["dp", "tp"]}, and "ranks" where they are not 0, 1, 2, .. */
json_t *mesh_to_json(const tsr_mesh *mesh);

/** [3, 1, 0, 2]: the ranks in mesh order. */
json_t *ranks_to_json(const tsr_mesh *mesh);

/** [31, 3] */
json_t *sizes_to_json(const int64_t *sizes, int count);

/** The placements of a layout, one text each. */
json_t *placements_to_json(const tsr_layout *layout);

/** "31x3", "scalar". */
#define SHAPE_TEXT_BYTES 192
void print_shape(int ndim, const int64_t *size, char text[SHAPE_TEXT_BYTES]);

/** The text that an object prints in the manner of snprintf(); the caller frees it. NULL if there is no memory. */
char *layout_text(const tsr_layout *layout);
char *mesh_text(const tsr_mesh *mesh);

/** Writes `json`, which it takes, in one line; NULL is complained about. */
int write_json(json_t *json, text_buffer *to);

/** The same without the object's last brace and the end of the line, for fields that are written one by one. */
int write_open_json(json_t *json, text_buffer *to);

/** write_json() to standard output. */
int print_json(json_t *json);

#endif
