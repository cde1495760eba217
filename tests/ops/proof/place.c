#include "place.h"

#include "elements.h"

#include <tessera/sys/status.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

/* How one mesh dim may cut: equal for all operands, so that they often fit. */
typedef struct cut {
    tsr_reduce_op op;
    int common;   /* the dim that is cut, from the last on */
    int together; /* 0, 1: all operands; 2: some; 3: others are Partial */
    int split;    /* which modifier */
    uint64_t seed;
} cut;

/* Parts of `length`, some of them empty, equal for operands of equal length. */
static void draw_parts(uint64_t seed, int64_t length, int64_t *parts, int count)
{
    draw d = {seed + (uint64_t)length, 0};
    for (int i = 0; i < count; i++) {
        parts[i] = i + 1 == count ? length : draw_below(&d, (int)length + 1);
        length -= parts[i];
    }
}

/* Sets the modifiers of a Shard of a dim of that length over `size` ranks. */
static void modify(const cut *c, int64_t length, int64_t size, int64_t *numbers, tsr_placement *at)
{
    at->balanced = c->split < 2;
    at->unit = c->split == 2 ? 2 : at->unit;
    at->interleave = c->split == 3 ? 2 : at->interleave;
    if (c->split == 4) {
        draw_parts(c->seed, length, numbers, (int)size);
        at->sizes = numbers;
        at->size_count = (size_t)size;
    } else if (c->split == 5 && length >= 2) {
        draw_parts(c->seed, length - 2, numbers, 2);
        numbers[0]++;
        numbers[1]++;
        at->blocks = numbers;
        at->block_count = 2;
    }
}

static void draw_placement(draw *d, proof *p, int i, int k, const cut *c)
{
    const whole *const w = &p->operands[i];
    const bool number = w->dtype != TSR_BOOL && w->dtype != TSR_DTYPE_NONE;
    tsr_placement *const at = &p->placements[i][k];
    const int dim = c->together < 2 ? w->ndim - c->common : w->ndim ? draw_below(d, w->ndim) : 0;
    const bool repeated = dim >= 0 && dim < w->ndim && w->shape[dim] == 1;
    *at = tsr_replicate();
    if (c->together == 3 && draw_below(d, 2) && number)
        *at = tsr_partial(proof_is_integer(p, i) && c->op == TSR_AVG ? TSR_SUM : c->op);
    else if (c->together < 3 && dim >= 0 && dim < w->ndim && !(repeated && draw_below(d, 4)) &&
             (c->together < 2 || draw_below(d, 2))) {
        *at = tsr_shard(dim);
        modify(c, w->shape[dim], tsr_mesh_size(p->mesh, k), p->drawn[i][k], at);
    }
}

void draw_placements(draw *d, proof *p)
{
    static const tsr_reduce_op ops[] = {TSR_SUM, TSR_AVG, TSR_SUM, TSR_MAX, TSR_MIN, TSR_PROD};
    const int ndim = tsr_mesh_ndim(p->mesh);
    const bool nested = draw_below(d, 4) == 0, reversed = draw_below(d, 3) == 0;
    cut c = {0};
    for (int k = 0; k < ndim; k++) {
        const int common = 1 + draw_below(d, 3);
        c = (cut){.op = ops[draw_below(d, 6)],
                  .common = nested && k ? c.common : common,
                  .together = nested ? draw_below(d, 2) : draw_below(d, 4),
                  .split = draw_below(d, 8),
                  .seed = draw_next(d)};
        for (int i = 0; i < p->operand_count; i++) {
            draw_placement(d, p, i, k, &c);
            if (reversed && p->placements[i][k].kind == TSR_SHARD)
                p->placements[i][k].order = ndim - 1 - k;
        }
    }
}

/* A random value of an element, the same on all ranks that ask for it. */
static double noise(uint64_t seed, int64_t coordinate, int64_t i)
{
    draw d = {seed ^ (uint64_t)(coordinate * 7919 + i * 104729), 0};
    draw_next(&d);
    return draw_below(&d, 5) - 2;
}

/* The term of a coordinate of those of a value. Of max, min and prod a random one has the value,
 * and of prod two are now and then negated. */
static double make_term(tsr_reduce_op op, tsr_dtype dtype, double value, int64_t size, int64_t own, uint64_t seed,
                        int64_t i)
{
    const double mine = noise(seed, own, i);
    draw d = {seed ^ (uint64_t)(i * 15485863), 0};
    draw_next(&d);
    const int64_t owner = draw_below(&d, (int)size);
    if (op == TSR_SUM || op == TSR_AVG) {
        double sum = 0;
        for (int64_t c = 1; c < size; c++)
            sum += noise(seed, c, i);
        const double term = own ? mine : -sum;
        return op == TSR_AVG ? value + term : own ? term : value + term;
    }
    if (op == TSR_PROD) {
        const bool minus = draw_below(&d, 2) && (own == owner || own == (owner + 1) % size);
        return (own == owner ? value : 1) * (minus ? -1 : 1);
    }
    if (own == owner)
        return value;
    if (dtype == TSR_BOOL)
        return op == TSR_MAX ? value && mine > 0 : value || mine > 0;
    return value + (op == TSR_MAX ? -fabs(mine) : fabs(mine));
}

/* This rank's terms of a whole tensor: along each Partial mesh dim they combine to its values. */
static void make_terms(const proof *p, const tsr_placement *placements, const whole *w, uint64_t seed, double *terms)
{
    int64_t coordinate[TSR_MAX_DIMS] = {0};
    int inside;
    memcpy(terms, w->values, sizeof w->values);
    tsr_mesh_coordinate(p->mesh, coordinate, &inside);
    for (int k = 0; k < tsr_mesh_ndim(p->mesh); k++) {
        const int64_t size = tsr_mesh_size(p->mesh, k), own = coordinate[k];
        const tsr_reduce_op op = placements[k].op;
        if (placements[k].kind != TSR_PARTIAL || size == 1)
            continue;
        for (int64_t i = 0; i < w->count; i++)
            terms[i] = make_term(op, w->dtype, terms[i], size, own, seed + (uint64_t)k, i);
    }
}

tsr_status place_whole(const proof *p, const tsr_mesh *mesh, const tsr_placement *placements, const whole *w,
                       uint64_t seed, tsr_dtensor **memory, tsr_dtensor **out)
{
    double terms[ELEMENTS], data[ELEMENTS];
    tsr_placement cuts[TSR_MAX_DIMS];
    tsr_layout *layout;
    if (mesh == p->mesh)
        make_terms(p, placements, w, seed, terms);
    else
        memcpy(terms, w->values, sizeof terms);
    for (int64_t i = 0; i < w->count; i++)
        element_set(data, w->dtype, i, terms[i]);
    for (int k = 0; k < tsr_mesh_ndim(mesh); k++)
        cuts[k] = placements[k].kind == TSR_PARTIAL ? tsr_replicate() : placements[k];
    const tsr_tensor global = tsr_tensor_contiguous(data, w->dtype, w->ndim, w->shape);
    TSR_TRY(tsr_distribute_tensor(&global, mesh, cuts, NULL, memory));
    TSR_TRY(tsr_layout_create(mesh, placements, w->ndim, w->shape, w->dtype, &layout));
    const tsr_tensor local = tsr_dtensor_to_local(*memory);
    const tsr_status status = tsr_dtensor_from_local(&local, layout, NULL, out);
    tsr_layout_destroy(layout);
    return status;
}

const tsr_attribute *attributes_on(const proof *p, const tsr_mesh *mesh, tsr_attribute *out)
{
    memcpy(out, p->attributes, sizeof p->attributes);
    for (int i = 0; i < p->attribute_count && mesh == p->alone; i++) {
        if (strcmp(out[i].name, "placements") == 0)
            out[i].words = "R";
    }
    return out;
}

void draw_case(proof *p, uint64_t salt)
{
    draw d = p->before;
    d.salt = salt;
    memset(p->operands, 0, sizeof p->operands);
    memcpy(p->attributes, p->info.attributes, sizeof p->attributes);
    for (p->attribute_count = 0; p->info.attributes[p->attribute_count].name;)
        p->attribute_count++;
    p->line->draw(&d, p);
    /* A sixth of the draws in f32 are in f16 or bf16. */
    const int narrow = (int)(p->seed % 12);
    for (int i = 0; i < p->operand_count && narrow < 2; i++) {
        if (p->operands[i].dtype == TSR_F32)
            p->operands[i].dtype = narrow ? TSR_F16 : TSR_BF16;
    }
}

void print_placements(const proof *p, char *text, size_t capacity)
{
    char layout[160];
    size_t length = 0;
    text[0] = 0;
    for (int i = 0; i < p->operand_count; i++) {
        tsr_placements_print(p->placements[i], tsr_mesh_ndim(p->mesh), layout, sizeof layout);
        length += (size_t)snprintf(text + length, capacity - length, " %s:%s", p->info.operands[i], layout);
        if (length >= capacity)
            return;
    }
}
