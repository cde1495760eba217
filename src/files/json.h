/** JSON that is read whole, or not at all. */
#ifndef TSR_FILES_JSON_H
#define TSR_FILES_JSON_H

#include <jansson.h>

/**
 * json_loadb() that refuses duplicate keys. Returns NULL, and the reason in `error`, if the text is
 * bad or there is no memory. Where memory is short, Jansson drops characters of strings and numbers
 * without a word; such a result is found here, and refused. Changes nothing of Jansson's own, which
 * the program may use too.
 */
json_t *tsr_json_load(const char *text, size_t bytes, json_error_t *error);

#endif
