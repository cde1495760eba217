#include "json.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

/* True once an allocation of Jansson's failed, in this process: the library's calls on other ranks'
 * threads use it too. */
static atomic_bool lacked;

static void *allocate(size_t bytes)
{
    void *const memory = malloc(bytes);
    if (!memory)
        lacked = true;
    return memory;
}

json_t *llama_json_load(const char *text, size_t bytes, json_error_t *error)
{
    json_set_alloc_funcs(allocate, free);
    json_t *const json = json_loadb(text ? text : "", bytes, JSON_REJECT_DUPLICATES, error);
    if (!lacked)
        return json;
    json_decref(json);
    snprintf(error->text, sizeof error->text, "there is no memory for it");
    return NULL;
}

char *llama_json_take_text(json_t *json, int digits)
{
    char *text = json_dumps(json, JSON_REAL_PRECISION((unsigned)digits));
    json_decref(json);
    if (lacked) {
        free(text);
        text = NULL;
    }
    return text;
}

json_t *llama_json_ids(const int64_t *ids, int64_t count)
{
    json_t *const list = json_array();
    for (int64_t i = 0; i < count; i++)
        if (json_array_append_new(list, json_integer(ids[i])) != 0) {
            json_decref(list);
            return NULL;
        }
    return list;
}

json_t *llama_json_text(const llama_config *config, const int64_t *ids, int64_t count)
{
    if (!llama_is_text(config))
        return json_null();
    char *const text = malloc((size_t)count * 3 + 1);
    if (!text)
        return NULL;
    json_t *const value = json_stringn(text, llama_tokens_to_utf8(ids, count, text));
    free(text);
    return value;
}
