/* Layouts as text, for messages and for round trips through the library's parser. */
#include "oracle.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static void add(char *text, size_t capacity, const char *format, ...) TSR_PRINTF(3, 4);

static void add(char *text, size_t capacity, const char *format, ...)
{
    const size_t length = strlen(text);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text + length, capacity - length, format, arguments);
    va_end(arguments);
}

static void add_numbers(char *text, size_t capacity, const char *name, const int64_t *numbers, size_t count)
{
    add(text, capacity, ";%s=", name);
    for (size_t i = 0; i < count; i++)
        add(text, capacity, "%s%lld", i > 0 ? "," : "", (long long)numbers[i]);
}

static int order_at(const tsr_placement *placements, int mesh_dim)
{
    return placements[mesh_dim].order == TSR_ORDER_DEFAULT ? mesh_dim : placements[mesh_dim].order;
}

/* The index of a cut among the cuts of its tensor dim; `*out_of_order`: the cuts are not in the
 * order of mesh dims. */
static int place_of(const tsr_placement *placements, int count, int mesh_dim, bool *out_of_order)
{
    int place = 0;
    *out_of_order = false;
    for (int a = 0; a < count; a++) {
        if (placements[a].kind != TSR_SHARD || placements[a].dim != placements[mesh_dim].dim)
            continue;
        place += order_at(placements, a) < order_at(placements, mesh_dim);
        for (int b = 0; b < a; b++)
            if (placements[b].kind == TSR_SHARD && placements[b].dim == placements[a].dim)
                *out_of_order = *out_of_order || order_at(placements, b) > order_at(placements, a);
    }
    return place;
}

static void add_shard(char *text, size_t capacity, const tsr_placement *placements, int count, int mesh_dim)
{
    const tsr_placement *p = &placements[mesh_dim];
    add(text, capacity, "S(%d", p->dim);
    if (p->balanced)
        add(text, capacity, ";balanced");
    if (p->interleave > 1)
        add(text, capacity, ";interleave=%lld", (long long)p->interleave);
    if (p->blocks)
        add_numbers(text, capacity, "blocks", p->blocks, p->block_count);
    if (p->sizes)
        add_numbers(text, capacity, "sizes", p->sizes, p->size_count);
    if (p->unit > 1)
        add(text, capacity, ";unit=%lld", (long long)p->unit);
    add(text, capacity, ")");
    bool out_of_order;
    const int place = place_of(placements, count, mesh_dim, &out_of_order);
    if (out_of_order)
        add(text, capacity, "[%d]", place);
}

const char *oracle_print_placements(const tsr_placement *placements, int count, char *text, size_t capacity)
{
    static const char *const ops[] = {
        [TSR_SUM] = "P", [TSR_AVG] = "P(avg)", [TSR_MIN] = "P(min)", [TSR_MAX] = "P(max)", [TSR_PROD] = "P(prod)"};
    text[0] = '\0';
    for (int m = 0; m < count; m++) {
        add(text, capacity, "%s", m > 0 ? "," : "");
        if (placements[m].kind == TSR_SHARD)
            add_shard(text, capacity, placements, count, m);
        else
            add(text, capacity, "%s", placements[m].kind == TSR_REPLICATE ? "R" : ops[placements[m].op]);
    }
    return text;
}

const char *oracle_print_mesh(const oracle_mesh *mesh, char *text, size_t capacity)
{
    text[0] = '\0';
    for (int m = 0; m < mesh->ndim; m++)
        add(text, capacity, "%s%lld", m > 0 ? "x" : "", (long long)mesh->shape[m]);
    const int64_t count = oracle_mesh_count(mesh);
    bool regular = true;
    for (int64_t p = 0; p < count; p++)
        regular = regular && mesh->ranks[p] == mesh->ranks[0] + p;
    if (regular && mesh->ranks[0] > 0)
        add(text, capacity, "@%lld", (long long)mesh->ranks[0]);
    for (int64_t p = 0; p < count && !regular; p++)
        add(text, capacity, "%s%lld%s", p > 0 ? "," : "@[", (long long)mesh->ranks[p], p + 1 == count ? "]" : "");
    return text;
}

const char *oracle_print_shape(int ndim, const int64_t *shape, char *text, size_t capacity)
{
    text[0] = '\0';
    if (ndim == 0)
        add(text, capacity, "scalar");
    for (int d = 0; d < ndim; d++)
        add(text, capacity, "%s%lld", d > 0 ? "x" : "", (long long)shape[d]);
    return text;
}
