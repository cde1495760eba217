#include "ops/models/styles.h"

#include <tessera/sys/status.h>

#include <stdio.h>
#include <string.h>

/* The styles of transformers. */
static const tsr_style styles[] = {
    {.name = "colwise", .cut = TSR_STYLE_OUT, .input = TSR_PARALLEL_INPUT_WHOLE},
    {.name = "colwise_gather_output",
     .cut = TSR_STYLE_OUT,
     .input = TSR_PARALLEL_INPUT_WHOLE,
     .output = TSR_PARALLEL_OUTPUT_GATHER},
    {.name = "colwise_rep",
     .cut = TSR_STYLE_OUT,
     .input = TSR_PARALLEL_INPUT_WHOLE,
     .output = TSR_PARALLEL_OUTPUT_GATHER},
    {.name = "rowwise", .cut = TSR_STYLE_IN, .output = TSR_PARALLEL_OUTPUT_REDUCE},
    {.name = "rowwise_split_input",
     .cut = TSR_STYLE_IN,
     .input = TSR_PARALLEL_INPUT_SPLIT,
     .output = TSR_PARALLEL_OUTPUT_REDUCE},
    {.name = "rowwise_rep",
     .cut = TSR_STYLE_IN,
     .input = TSR_PARALLEL_INPUT_SPLIT,
     .output = TSR_PARALLEL_OUTPUT_REDUCE},
    {.name = "packed_colwise", .cut = TSR_STYLE_OUT, .modifiers = ";interleave=2", .input = TSR_PARALLEL_INPUT_WHOLE},
    {.name = "packed_rowwise", .cut = TSR_STYLE_IN, .modifiers = ";interleave=2", .output = TSR_PARALLEL_OUTPUT_REDUCE},
    {.name = "embedding_rowwise", .cut = TSR_STYLE_FIRST, .output = TSR_PARALLEL_OUTPUT_REDUCE},
    {.name = "embedding_colwise", .cut = TSR_STYLE_SECOND, .output = TSR_PARALLEL_OUTPUT_GATHER},
    {.name = "sequence_parallel", .input = TSR_PARALLEL_INPUT_SEQUENCE, .varies = true},
    {.name = "replicate"},
    {.name = "replicated_with_grad_allreduce", .varies = true},
    {.name = "all_reduce", .output = TSR_PARALLEL_OUTPUT_REDUCE},
    {.name = "mla_kv_a_proj", .output = TSR_PARALLEL_OUTPUT_LAST},
    {.name = "local_params"},
    {.name = "moe_tp_experts", .input = TSR_PARALLEL_INPUT_WHOLE, .output = TSR_PARALLEL_OUTPUT_REDUCE},
    {.name = "moe_identity_expert", .input = TSR_PARALLEL_INPUT_TERM},
    {.name = "grouped_gemm", .cut = TSR_STYLE_FIRST, .modifiers = ";balanced"},
    {.name = "ep_dispatch_experts", .input = TSR_PARALLEL_INPUT_WHOLE, .output = TSR_PARALLEL_OUTPUT_REDUCE},
};

#define STYLES (sizeof styles / sizeof styles[0])

static tsr_status refuse_style(const tsr_parallel_rule *rule)
{
    char names[512] = "";
    size_t length = 0;
    for (size_t i = 0; i < STYLES && length < sizeof names; i++)
        length += (size_t)snprintf(names + length, sizeof names - length, "%s%s", i ? ", " : "", styles[i].name);
    return tsr_status_set(TSR_ERROR_ARGUMENT,
                          "rule \"%.80s\": style \"%.80s\" is not known; there are %s, and placements such as \"S(0)\" "
                          "and \"R\"",
                          rule->pattern, rule->style, names);
}

static tsr_status refuse_text(const tsr_parallel_rule *rule, const char *why)
{
    return tsr_status_set(TSR_ERROR_ARGUMENT, "rule \"%.80s\": style \"%.80s\": %.300s", rule->pattern, rule->style,
                          why);
}

/* Checks placements of a parameter, as text. */
static tsr_status check_placements(const tsr_parallel_rule *rule, const char *text, int most)
{
    tsr_placement placements[TSR_MAX_DIMS];
    int64_t numbers[2 * TSR_PLAN_TEXT];
    int count;
    if (tsr_placements_parse(text, placements, TSR_MAX_DIMS, &count, numbers, 2 * (size_t)TSR_PLAN_TEXT, NULL) !=
        TSR_OK)
        return refuse_text(rule, tsr_status_message());
    if (count > most)
        return refuse_text(rule, "there is text behind the modifiers");
    for (int k = 0; k < count; k++) {
        if (placements[k].kind == TSR_PARTIAL)
            return refuse_text(rule, "a parameter is Replicate or Shard, not Partial");
    }
    return TSR_OK;
}

static tsr_status check_modifiers(const tsr_parallel_rule *rule, const tsr_style_text *read)
{
    char text[2 * TSR_PLAN_TEXT];
    const tsr_style *const style = read->style;
    if (!read->modifiers[0])
        return TSR_OK;
    if (style->cut == TSR_STYLE_WHOLE)
        return refuse_text(rule, "this style cuts nothing, and takes no modifiers");
    snprintf(text, sizeof text, "S(0%s%s)", style->modifiers ? style->modifiers : "", read->modifiers);
    return check_placements(rule, text, 1);
}

tsr_status tsr_style_read(const tsr_parallel_rule *rule, tsr_style_text *out)
{
    const size_t length = strcspn(rule->style, ";");
    if (rule->style[0] == 'S' || rule->style[0] == 'R' || rule->style[0] == 'P') {
        *out = (tsr_style_text){NULL, ""};
        return check_placements(rule, rule->style, TSR_MAX_DIMS);
    }
    for (size_t i = 0; i < STYLES; i++) {
        if (strncmp(styles[i].name, rule->style, length) == 0 && !styles[i].name[length]) {
            *out = (tsr_style_text){&styles[i], rule->style + length};
            return check_modifiers(rule, out);
        }
    }
    return refuse_style(rule);
}
