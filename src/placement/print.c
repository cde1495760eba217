#include "placement/print.h"

#include "base/text/text.h"
#include "placement/layout.h"
#include "placement/placement.h"

const char *tsr_shape_print(int ndim, const int64_t *shape, char *buffer)
{
    tsr_text text = {buffer, TSR_SHAPE_TEXT, 0};
    if (ndim == 0)
        tsr_text_append(&text, "scalar");
    for (int i = 0; i < ndim; i++)
        tsr_text_append(&text, "%s%lld", i == 0 ? "" : "x", (long long)shape[i]);
    return buffer;
}

static void print_numbers(tsr_text *text, const char *name, const int64_t *numbers, size_t count)
{
    for (size_t i = 0; i < count; i++)
        tsr_text_append(text, "%s%lld", i == 0 ? name : ",", (long long)numbers[i]);
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

size_t tsr_layout_print(const tsr_layout *layout, char *text, size_t capacity)
{
    return tsr_placements_print(layout->placements, layout->mesh_ndim, text, capacity);
}

const char *tsr_layout_describe(const tsr_layout *layout, char *buffer, size_t capacity)
{
    char shape[TSR_SHAPE_TEXT], placements[256], mesh[128];
    tsr_layout_print(layout, placements, sizeof placements);
    tsr_mesh_print(layout->mesh, mesh, sizeof mesh);
    tsr_text text = {buffer, capacity, 0};
    tsr_text_append(&text, "%s %s %s on mesh %s", tsr_dtype_name(layout->dtype),
                    tsr_shape_print(layout->ndim, layout->shape, shape), placements, mesh);
    return buffer;
}
