#include "ops/models/plan.h"

#include "ops/models/match.h"

#include <tessera/sys/memory.h>
#include <tessera/sys/options.h>
#include <tessera/sys/status.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CALL "tsr_parallel_plan_create"

static tsr_status check_heads(tsr_parallel_plan_options *options)
{
    if (options->heads < 0 || options->kv_heads < 0 || options->head_dim < 0 || options->rope_dim < 0)
        return tsr_status_set(TSR_ERROR_ARGUMENT, CALL ": heads, kv_heads, head_dim and rope_dim must be 0 or more");
    if (!options->heads && !options->kv_heads && !options->head_dim)
        return TSR_OK;
    if (!options->heads || !options->head_dim)
        return tsr_status_set(TSR_ERROR_ARGUMENT,
                              CALL ": heads is %lld and head_dim is %lld; give both, or neither with kv_heads",
                              (long long)options->heads, (long long)options->head_dim);
    if (!options->kv_heads)
        options->kv_heads = options->heads;
    if (options->heads % options->kv_heads)
        return tsr_status_set(TSR_ERROR_ARGUMENT,
                              CALL ": %lld heads are not a multiple of %lld kv_heads, so that heads do not form groups",
                              (long long)options->heads, (long long)options->kv_heads);
    if (options->heads > INT64_MAX / 4 / options->head_dim)
        return tsr_status_set(TSR_ERROR_ARGUMENT, CALL ": heads x head_dim overflows");
    return TSR_OK;
}

static size_t bytes_of(const char *text)
{
    return text ? strlen(text) + 1 : 0;
}

/* Copies a text to `*at`, which moves on; NULL for NULL. */
static const char *copy_text(const char *text, char **at)
{
    if (!text)
        return NULL;
    const char *const copy = strcpy(*at, text);
    *at += strlen(text) + 1;
    return copy;
}

static tsr_status check_rule(const tsr_parallel_rule *rule, size_t index, const char *prefix)
{
    if (!rule->pattern || !rule->style)
        return tsr_status_set(TSR_ERROR_ARGUMENT, CALL ": the %s of rule %zu is NULL",
                              rule->pattern ? "style" : "pattern", index);
    const size_t length = strlen(rule->pattern) + (prefix ? strlen(prefix) : 0);
    if (length <= TSR_PLAN_TEXT && strlen(rule->style) <= TSR_PLAN_TEXT)
        return TSR_OK;
    return tsr_status_set(TSR_ERROR_ARGUMENT,
                          CALL ": the %s of rule %zu, \"%.64s..\", is longer than %d characters, prefix included",
                          length > TSR_PLAN_TEXT ? "pattern" : "style", index,
                          length > TSR_PLAN_TEXT ? rule->pattern : rule->style, TSR_PLAN_TEXT);
}

/* The bytes of all texts of a plan. */
static tsr_status measure(const tsr_parallel_plan_options *options, size_t count, const tsr_parallel_rule *rules,
                          size_t *bytes)
{
    *bytes = bytes_of(options->dim) + bytes_of(options->group) + 1;
    for (size_t i = 0; i < count; i++) {
        TSR_TRY(check_rule(&rules[i], i, options->prefix));
        *bytes += bytes_of(options->prefix) + bytes_of(rules[i].pattern) + bytes_of(rules[i].style);
    }
    return TSR_OK;
}

/* Copies a rule, and reads it. */
static tsr_status read_rule(const tsr_parallel_rule *given, const char *prefix, char **at, tsr_plan_rule *out)
{
    out->text.pattern = *at;
    *at += sprintf(*at, "%s%s", prefix ? prefix : "", given->pattern) + 1;
    out->text.style = copy_text(given->style, at);
    if (tsr_pattern_check(out->text.pattern) != TSR_OK || tsr_style_read(&out->text, &out->style) != TSR_OK)
        return tsr_status_set(TSR_ERROR_ARGUMENT, CALL ": %.900s", tsr_status_message());
    return TSR_OK;
}

static int by_pattern(const void *a, const void *b)
{
    const tsr_plan_rule *const x = *(const tsr_plan_rule *const *)a, *const y = *(const tsr_plan_rule *const *)b;
    return strcmp(x->text.pattern, y->text.pattern);
}

static tsr_status refuse_twice(const tsr_parallel_plan *plan)
{
    void *room;
    tsr_status status = TSR_OK;
    TSR_TRY(tsr_allocate(plan->context, plan->count * sizeof(tsr_plan_rule *), &room));
    const tsr_plan_rule **const sorted = room;
    for (size_t i = 0; i < plan->count; i++)
        sorted[i] = &plan->rules[i];
    qsort(sorted, plan->count, sizeof sorted[0], by_pattern);
    for (size_t i = 1; i < plan->count && status == TSR_OK; i++) {
        if (strcmp(sorted[i - 1]->text.pattern, sorted[i]->text.pattern) == 0)
            status = tsr_status_set(TSR_ERROR_ARGUMENT, CALL ": pattern \"%s\" comes twice", sorted[i]->text.pattern);
    }
    tsr_release(plan->context, room);
    return status;
}

static tsr_status fill(tsr_parallel_plan *plan, size_t count, const tsr_parallel_rule *rules)
{
    size_t bytes;
    void *room;
    tsr_parallel_plan_options *const options = &plan->options;
    TSR_TRY(check_heads(options));
    TSR_TRY(measure(options, count, rules, &bytes));
    TSR_TRY(tsr_allocate(plan->context, count * sizeof *plan->rules, &room));
    plan->rules = room;
    TSR_TRY(tsr_allocate(plan->context, bytes, &room));
    char *at = plan->texts = room;
    options->dim = copy_text(options->dim, &at);
    options->group = copy_text(options->group, &at);
    for (; plan->count < count; plan->count++)
        TSR_TRY(read_rule(&rules[plan->count], options->prefix, &at, &plan->rules[plan->count]));
    options->prefix = NULL;
    return count > 1 ? refuse_twice(plan) : TSR_OK;
}

tsr_status tsr_parallel_plan_create(tsr_context *context, size_t count, const tsr_parallel_rule *rules,
                                    const tsr_parallel_plan_options *options, tsr_parallel_plan **out)
{
    void *room;
    tsr_parallel_plan_options known = TSR_PARALLEL_PLAN_OPTIONS_INIT;
    const char *const missing = !context ? "context" : !out ? "out" : count && !rules ? "rules" : NULL;
    if (missing)
        return tsr_status_set(TSR_ERROR_ARGUMENT, CALL ": %s is NULL", missing);
    if (count > TSR_PARALLEL_MOST_RULES)
        return tsr_status_set(TSR_ERROR_ARGUMENT, CALL ": %zu rules are more than %d", count, TSR_PARALLEL_MOST_RULES);
    TSR_TRY(tsr_options_read(CALL, options, &known, sizeof known));
    TSR_TRY(tsr_allocate(context, sizeof(tsr_parallel_plan), &room));
    tsr_parallel_plan *const plan = room;
    *plan = (tsr_parallel_plan){.context = tsr_context_retain(context), .options = known};
    const tsr_status status = fill(plan, count, rules);
    if (status == TSR_OK)
        *out = plan;
    else
        tsr_parallel_plan_destroy(plan);
    return status;
}

void tsr_parallel_plan_destroy(tsr_parallel_plan *plan)
{
    if (!plan)
        return;
    tsr_context *const context = plan->context;
    tsr_release(context, plan->rules);
    tsr_release(context, plan->texts);
    tsr_release(context, plan);
    tsr_context_destroy(context);
}

size_t tsr_parallel_plan_count(const tsr_parallel_plan *plan)
{
    return plan ? plan->count : 0;
}

const tsr_parallel_rule *tsr_parallel_plan_get(const tsr_parallel_plan *plan, size_t index)
{
    return plan && index < plan->count ? &plan->rules[index].text : NULL;
}

const tsr_plan_rule *tsr_plan_rule_of(const tsr_parallel_plan *plan, const char *name, size_t length)
{
    const tsr_plan_rule *found = NULL;
    for (size_t i = 0; i < plan->count; i++) {
        const tsr_plan_rule *const rule = &plan->rules[i];
        if (tsr_pattern_matches(rule->text.pattern, name, length) &&
            (!found || tsr_pattern_precedes(rule->text.pattern, found->text.pattern)))
            found = rule;
    }
    return found;
}

const tsr_plan_rule *tsr_plan_rule_for(const tsr_parallel_plan *plan, const char *name)
{
    const char *const dot = strrchr(name, '.');
    const tsr_plan_rule *const own = tsr_plan_rule_of(plan, name, strlen(name));
    return own || !dot ? own : tsr_plan_rule_of(plan, name, (size_t)(dot - name));
}

const tsr_parallel_rule *tsr_parallel_plan_find(const tsr_parallel_plan *plan, const char *name)
{
    const tsr_plan_rule *const rule = plan && name ? tsr_plan_rule_for(plan, name) : NULL;
    return rule ? &rule->text : NULL;
}

tsr_status tsr_parallel_plan_module(const tsr_parallel_plan *plan, const char *name, tsr_parallel_module *out)
{
    if (!plan || !name || !out)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "tsr_parallel_plan_module: %s is NULL",
                              !plan  ? "plan"
                              : name ? "out"
                                     : "name");
    const tsr_plan_rule *const rule = tsr_plan_rule_of(plan, name, strlen(name));
    const tsr_style *const style = rule ? rule->style.style : NULL;
    *out = (tsr_parallel_module){.rule = rule ? &rule->text : NULL};
    if (style) {
        out->input = style->input;
        out->output = style->output;
        out->varies = style->varies;
    }
    return TSR_OK;
}
