#include "tensor/sync/sync_pairs.h"

#include "base/hash.h"
#include "base/memory/memory.h"
#include "base/sort.h"
#include "placement/layout.h"
#include "placement/ownership.h"
#include "placement/print.h"
#include "tensor/runs.h"
#include "tensor/sync/sync_names.h"

#include <tessera/sys/status.h>

#include <string.h>

/* Numbers of tensors, sorted by name. */
static int by_name(const void *a, const void *b, const void *arg)
{
    const tsr_sync_tensor *const tensors = arg;
    return strcmp(tensors[*(const size_t *)a].name, tensors[*(const size_t *)b].name);
}

static tsr_status check_list(const char *what, size_t count, const tsr_sync_tensor *tensors, size_t *sorted)
{
    if (count > 0 && !tensors)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "the list of %zu %ss is NULL", count, what);
    for (size_t i = 0; i < count; i++) {
        TSR_TRY(tsr_sync_check_name(what, i, tensors[i].name));
        if (!tensors[i].layout)
            return tsr_status_set(TSR_ERROR_ARGUMENT, "%s \"%s\": its layout is NULL", what, tensors[i].name);
        sorted[i] = i;
    }
    tsr_sort_array(sorted, count, sizeof *sorted, by_name, tensors);
    for (size_t i = 1; i < count; i++)
        if (strcmp(tensors[sorted[i - 1]].name, tensors[sorted[i]].name) == 0)
            return tsr_status_set(TSR_ERROR_ARGUMENT, "%s \"%s\" comes twice: each needs a name of its own", what,
                                  tensors[sorted[i]].name);
    return TSR_OK;
}

static tsr_status refuse_missing(const tsr_sync_lists *lists, const char *name, const char *wanted,
                                 const tsr_sync_rule *rule)
{
    if (!rule)
        return tsr_status_set(TSR_ERROR_ARGUMENT,
                              "destination \"%s\" has no source: none of the %zu sources has its name, and none of the "
                              "%zu rules fits it",
                              name, lists->source_count, lists->rule_count);
    return tsr_status_set(TSR_ERROR_ARGUMENT,
                          "destination \"%s\" has no source: by rule \"%s\" to \"%s\" it would be \"%s\", which is not "
                          "among the %zu sources",
                          name, rule->from, rule->to, wanted, lists->source_count);
}

static tsr_status find_source(const tsr_sync_lists *lists, const size_t *sorted, const char *name, size_t *out)
{
    char wanted[TSR_SYNC_TEXT];
    const tsr_sync_rule *rule;
    TSR_TRY(tsr_sync_name_source(lists->rule_count, lists->rules, name, wanted, &rule));
    size_t low = 0, high = lists->source_count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        const int order = strcmp(lists->sources[sorted[middle]].name, wanted);
        if (order == 0) {
            *out = sorted[middle];
            return TSR_OK;
        }
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return refuse_missing(lists, name, wanted, rule);
}

static bool has_partial(const tsr_layout *layout)
{
    for (int i = 0; i < layout->mesh_ndim; i++)
        if (tsr_layout_kind(layout, i) == TSR_PARTIAL)
            return true;
    return false;
}

static bool same_shape(const tsr_layout *a, const tsr_layout *b)
{
    return a->ndim == b->ndim && (a->ndim == 0 || memcmp(a->shape, b->shape, (size_t)a->ndim * sizeof *a->shape) == 0);
}

static tsr_status pair_layouts(const tsr_sync_tensor *source, const tsr_sync_tensor *destination, tsr_sync_pair *pair)
{
    const tsr_layout *const from = source->layout, *const to = destination->layout;
    char have[256], want[256];
    if (!same_shape(from, to))
        return tsr_status_set(TSR_ERROR_ARGUMENT,
                              "destination \"%.128s\" is %s, source \"%.128s\" is %s: both must have the same shape",
                              destination->name, tsr_layout_describe(to, want, sizeof want), source->name,
                              tsr_layout_describe(from, have, sizeof have));
    if (!tsr_file_converts(from->dtype, to->dtype))
        return tsr_status_set(
            TSR_ERROR_UNSUPPORTED,
            "destination \"%.128s\" is %s, source \"%.128s\" is %s: only floating types are converted to one another",
            destination->name, tsr_dtype_name(to->dtype), source->name, tsr_dtype_name(from->dtype));
    const bool early = to->element_bytes <= from->element_bytes && !has_partial(from);
    pair->from = from;
    pair->to = to;
    pair->wire = early ? to->dtype : from->dtype;
    return TSR_OK;
}

static tsr_status pair_sorted(const tsr_sync_lists *lists, size_t *sorted, tsr_sync_pair *pairs)
{
    /* The order of the destinations is needed to find equal names alone. */
    TSR_TRY(check_list("destination", lists->destination_count, lists->destinations, sorted));
    TSR_TRY(check_list("source", lists->source_count, lists->sources, sorted));
    for (size_t i = 0; i < lists->destination_count; i++) {
        const tsr_sync_tensor *const destination = &lists->destinations[i];
        TSR_TRY(find_source(lists, sorted, destination->name, &pairs[i].source));
        TSR_TRY(pair_layouts(&lists->sources[pairs[i].source], destination, &pairs[i]));
    }
    return TSR_OK;
}

tsr_status tsr_sync_pair_up(tsr_context *context, const tsr_sync_lists *lists, tsr_sync_pair *pairs)
{
    const size_t most = lists->source_count > lists->destination_count ? lists->source_count : lists->destination_count;
    void *sorted;
    TSR_TRY(tsr_sync_check_rules(lists->rule_count, lists->rules));
    TSR_TRY(tsr_allocate_array(context, most, sizeof(size_t), &sorted));
    const tsr_status status = pair_sorted(lists, sorted, pairs);
    tsr_release(context, sorted);
    return status;
}

uint64_t tsr_sync_fingerprint(const tsr_sync_lists *lists, const tsr_sync_pair *pairs)
{
    uint64_t hash = tsr_hash_text(TSR_HASH_SEED, "sync");
    for (size_t i = 0; i < lists->destination_count; i++) {
        const tsr_layout *const to = pairs[i].to;
        hash = tsr_hash_text(hash, lists->destinations[i].name);
        hash = tsr_hash_text(hash, lists->sources[pairs[i].source].name);
        hash = tsr_hash_word(tsr_hash_word(hash, pairs[i].source), (uint64_t)pairs[i].from->dtype);
        hash = tsr_hash_word(tsr_hash_word(hash, (uint64_t)to->dtype), (uint64_t)pairs[i].wire);
        for (int dim = 0; dim < to->ndim; dim++)
            hash = tsr_hash_word(hash, (uint64_t)to->shape[dim]);
    }
    return tsr_hash_word(hash, lists->source_count);
}
