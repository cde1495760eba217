/** JSON that is read or written whole, or not at all. (When memory is short, Jansson silently drops
 * values in some places.) */
#ifndef LLAMA_JSON_H
#define LLAMA_JSON_H

#include "text.h"

#include <jansson.h>

/** json_loadb() that refuses duplicate keys. Returns NULL, and the reason in `error`, if the text
 * is bad or there is no memory. */
json_t *llama_json_load(const char *text, size_t bytes, json_error_t *error);

/** Returns the object as text on the heap, numbers with `digits` digits, and releases the object.
 * Returns NULL if there is no memory; `json` may be NULL for that reason too. */
char *llama_json_take_text(json_t *json, int digits);

/** @{ */
/** Token numbers as a list, and as text: JSON's null if tokens are not text. NULL if there is no
 * memory. */
json_t *llama_json_ids(const int64_t *ids, int64_t count);
json_t *llama_json_text(const llama_config *config, const int64_t *ids, int64_t count);
/** @} */

#endif
