#include "files/beginning.h"
#include "files/json.h"

#include <tessera/parallel_rules.h>
#include <tessera/sys/status.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_BYTES ((size_t)16 << 20)
#define BASE_PLAN  "base_model_tp_plan"

struct tsr_parallel_rules {
    size_t count, room;
    tsr_parallel_rule *all; /* texts are their own */
};

static tsr_status lack(const char *name)
{
    return tsr_status_set(TSR_ERROR_MEMORY, "%s: no memory for its rules", name);
}

/* Adds the rule of `prefix`, `first` and, where not NULL, `.second`. */
static tsr_status add_rule(tsr_parallel_rules *rules, const char *name, const char *prefix, const char *first,
                           const char *second, const char *style)
{
    char *pattern;
    if (rules->count == rules->room) {
        const size_t room = rules->room ? 2 * rules->room : 16;
        tsr_parallel_rule *const grown = realloc(rules->all, room * sizeof *grown);
        if (!grown)
            return lack(name);
        rules->all = grown;
        rules->room = room;
    }
    if (asprintf(&pattern, "%s%s%s%s", prefix, first, second ? "." : "", second ? second : "") < 0)
        return lack(name);
    char *const copy = strdup(style);
    if (!copy) {
        free(pattern);
        return lack(name);
    }
    rules->all[rules->count++] = (tsr_parallel_rule){pattern, copy};
    return TSR_OK;
}

static tsr_status refuse_value(const char *name, const char *key, const char *form)
{
    return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: the value of \"%.128s\" must be %s", name, key, form);
}

/* Adds the rules of a module's parameters. */
static tsr_status add_parameters(tsr_parallel_rules *rules, const char *name, const char *prefix, const char *module,
                                 json_t *object)
{
    const char *key;
    json_t *value;
    json_object_foreach(object, key, value)
    {
        if (!json_is_string(value))
            return refuse_value(name, key, "a style or a placement, such as \"S(0)\"");
        TSR_TRY(add_rule(rules, name, prefix, module, key, json_string_value(value)));
    }
    return TSR_OK;
}

static tsr_status add_object(tsr_parallel_rules *rules, const char *name, const char *prefix, json_t *object)
{
    const char *key;
    json_t *value;
    json_object_foreach(object, key, value)
    {
        if (json_is_object(value))
            TSR_TRY(add_parameters(rules, name, prefix, key, value));
        else if (json_is_string(value))
            TSR_TRY(add_rule(rules, name, prefix, key, NULL, json_string_value(value)));
        else
            return refuse_value(name, key,
                                "a style such as \"colwise\", a placement such as \"S(0)\", or an object of these "
                                "by parameters");
    }
    return TSR_OK;
}

/* Adds the rules of a plan, or of a config.json. */
static tsr_status add_document(tsr_parallel_rules *rules, const char *name, json_t *json)
{
    if (!json_is_object(json))
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: a plan must be a JSON object from patterns to styles", name);
    json_t *const base = json_object_get(json, BASE_PLAN);
    if (json_is_object(base))
        return add_object(rules, name, "model.", base);
    if (base || json_object_get(json, "model_type") || json_object_get(json, "architectures"))
        return tsr_status_set(TSR_ERROR_ARGUMENT,
                              "%s: this config.json has no object \"" BASE_PLAN
                              "\"; transformers keeps most models' plans in its own code, from which they are copied",
                              name);
    return add_object(rules, name, "", json);
}

static tsr_status read_document(const char *name, json_t *json, tsr_parallel_rules **out)
{
    tsr_parallel_rules *const rules = calloc(1, sizeof *rules);
    if (!rules)
        return lack(name);
    const tsr_status status = add_document(rules, name, json);
    if (status == TSR_OK)
        *out = rules;
    else
        tsr_parallel_rules_destroy(rules);
    return status;
}

tsr_status tsr_parallel_rules_parse(const char *name, const char *text, size_t bytes, tsr_parallel_rules **out)
{
    json_error_t error;
    const char *const missing = !name ? "name" : !text && bytes ? "text" : !out ? "out" : NULL;
    if (missing)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "tsr_parallel_rules_parse: %s is NULL", missing);
    json_t *const json = tsr_json_load(text, bytes, &error);
    if (!json)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s, line %d: %s", name, error.line, error.text);
    const tsr_status status = read_document(name, json, out);
    json_decref(json);
    return status;
}

tsr_status tsr_parallel_rules_open(const char *path, tsr_parallel_rules **out)
{
    tsr_beginning file;
    if (!path || !out)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "tsr_parallel_rules_open: %s is NULL", path ? "out" : "path");
    TSR_TRY(tsr_beginning_read(path, MOST_BYTES, &file));
    const tsr_status status = file.size > MOST_BYTES
                                  ? tsr_status_set(TSR_ERROR_ARGUMENT, "%s has %zu bytes, more than a plan's %zu", path,
                                                   file.size, MOST_BYTES)
                                  : tsr_parallel_rules_parse(path, file.data, file.bytes, out);
    tsr_beginning_free(&file);
    return status;
}

void tsr_parallel_rules_destroy(tsr_parallel_rules *rules)
{
    if (!rules)
        return;
    for (size_t i = 0; i < rules->count; i++) {
        free((char *)(uintptr_t)rules->all[i].pattern);
        free((char *)(uintptr_t)rules->all[i].style);
    }
    free(rules->all);
    free(rules);
}

const tsr_parallel_rule *tsr_parallel_rules_all(const tsr_parallel_rules *rules, size_t *count)
{
    if (count)
        *count = rules ? rules->count : 0;
    return rules ? rules->all : NULL;
}
