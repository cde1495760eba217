/** JSON that is read and written whole, or not at all: Jansson drops what it has no memory for in
 * some places, and does not say so. */
#ifndef LLAMA_JSON_H
#define LLAMA_JSON_H

#include <jansson.h>

/** json_loadb() that refuses duplicates. NULL with what is wrong in `error`, which may be a lack of
 * memory. */
json_t *llama_json_load(const char *text, size_t bytes, json_error_t *error);

/** The object, which this takes, as text on the heap; NULL if there is no memory, also where `json`
 * is NULL for that reason. */
char *llama_json_take_text(json_t *json);

#endif
