#include "base/text/text.h"
#include "placement/layout.h"

static void print_numbers(tsr_text *text, const char *name, const int64_t *numbers, size_t count)
{
    for (size_t i = 0; i < count; i++)
        tsr_text_append(text, "%s%lld", i == 0 ? name : ",", (long long)numbers[i]);
}

int tsr_placement_said_order(const tsr_placement *placements, int count, int mesh_dim)
{
    int sorted[TSR_MAX_DIMS], place = -1;
    const int cuts = tsr_placements_order(placements, count, placements[mesh_dim].dim, sorted, NULL);
    bool ascending = true;
    for (int i = 0; i < cuts; i++) {
        ascending = ascending && (i == 0 || sorted[i - 1] < sorted[i]);
        place = sorted[i] == mesh_dim ? i : place;
    }
    return ascending ? TSR_ORDER_DEFAULT : place;
}

static void print_shard(tsr_text *text, const tsr_placement *placements, int count, int mesh_dim)
{
    const tsr_placement *p = &placements[mesh_dim];
    tsr_text_append(text, "S(%d", p->dim);
    if (p->balanced)
        tsr_text_append(text, ";balanced");
    if (p->interleave > 1)
        tsr_text_append(text, ";interleave=%lld", (long long)p->interleave);
    print_numbers(text, ";blocks=", p->blocks, p->block_count);
    print_numbers(text, ";sizes=", p->sizes, p->size_count);
    if (p->unit > 1)
        tsr_text_append(text, ";unit=%lld", (long long)p->unit);
    tsr_text_append(text, ")");
    const int order = tsr_placement_said_order(placements, count, mesh_dim);
    if (order >= 0)
        tsr_text_append(text, "[%d]", order);
}

size_t tsr_placements_print(const tsr_placement *placements, int count, char *buffer, size_t capacity)
{
    tsr_text text = {buffer, capacity, 0};
    tsr_text_append(&text, "%s", "");
    for (int i = 0; i < count; i++) {
        if (i > 0)
            tsr_text_append(&text, ",");
        if (placements[i].kind == TSR_SHARD)
            print_shard(&text, placements, count, i);
        else if (placements[i].kind == TSR_REPLICATE)
            tsr_text_append(&text, "R");
        else if (placements[i].op == TSR_SUM)
            tsr_text_append(&text, "P");
        else
            tsr_text_append(&text, "P(%s)", tsr_reduce_op_name(placements[i].op));
    }
    return text.length;
}
