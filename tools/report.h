/** What several subcommands print alike: JSON of meshes, shapes and times. A NULL json_t stands for a lack of memory, and is passed on. */
#ifndef TESSERA_TOOLS_REPORT_H
#define TESSERA_TOOLS_REPORT_H

#include "parse.h"

#include <jansson.h>

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

/** Writes `json` in one line and gives it back; NULL is complained about. */
int write_json(json_t *json, FILE *stream);

/** The same without the object's last brace and the end of the line, for fields that are written one by one. */
int write_open_json(json_t *json, FILE *stream);

/** write_json() to standard output. */
int print_json(json_t *json);

#endif
