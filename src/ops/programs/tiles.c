/* Tiles of a group: ranges of its elements, in row-major order, that all steps compute before the
 * next one. Kernels give an element the same bits in a tile and in the whole. */
#include "ops/programs/tiles.h"

#include "ops/kernels/pointwise.h"
#include "ops/programs/executable.h"
#include "ops/programs/rooms.h"

#include <string.h>

/* All tensors of a tile together have about so many bytes, which a core's caches keep, and a tile
 * has at least LEAST elements, beside which what a call costs is small. */
#define CACHED (INT64_C(256) << 10)
#define LEAST  512
/* Tiles begin at multiples of so many elements where rows are longer than a tile. */
#define STEP 64
/* Bytes of a cache line. */
#define LINE 64

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* True if a value lies in scratch, of which a tile is all that there is. */
static bool is_scratch(const tsr_executable *x, const tsr_cursor *c)
{
    return x->values[x->values[c->value].base].place == TSR_PLACE_TILE;
}

/* True if two values lie in one memory: what is made in a state's lies where the state does. */
static bool share_memory(const tsr_executable *x, int a, int b)
{
    const tsr_held *const v = &x->values[x->values[a].base], *const w = &x->values[x->values[b].base];
    const bool bound[] = {v->place == TSR_PLACE_BOUND || v->place == TSR_PLACE_STATE,
                          w->place == TSR_PLACE_BOUND || w->place == TSR_PLACE_STATE};
    return v == w || (bound[0] && bound[1] && v->index == w->index);
}

/* True if a cursor is the first of its group with its memory. */
static bool is_new(const tsr_executable *x, const tsr_group *g, int cursor)
{
    for (int i = 0; i < cursor; i++)
        if (share_memory(x, g->cursors[i].value, g->cursors[cursor].value))
            return false;
    return true;
}

/* Bytes of the whole tensors that an element of a tile is read from or written to. */
static int64_t count_element_bytes(const tsr_executable *x, const tsr_group *g)
{
    int64_t bytes = 0;
    for (int i = 0; i < g->cursor_count; i++)
        if (!is_scratch(x, &g->cursors[i]) && is_new(x, g, i))
            bytes += (int64_t)tsr_dtype_bytes(tsr_form_of(x, g->cursors[i].value)->local.dtype);
    return bytes;
}

/* A piece of scratch, and the value that lies there until its last reader. */
typedef struct slot {
    size_t offset, bytes;
    int form, last;
} slot;

/* The most slots of a group; values beyond lie in rooms of their own. */
#define SLOTS 64

/* The scratch of a group while values get slots of it. */
typedef struct slots {
    slot all[SLOTS];
    int count;
} slots;

/* Finds scratch for a result of step `at`: where nothing lies that is read later, or over an
 * operand of its form that is read for the last time. */
static slot *find_slot(tsr_group *g, slots *scratch, int form, size_t bytes, int at)
{
    slot *const all = scratch->all;
    for (int i = 0; i < scratch->count; i++)
        if (all[i].bytes >= bytes && (all[i].last < at || (all[i].last == at && all[i].form == form)))
            return &all[i];
    if (scratch->count == SLOTS)
        return NULL;
    slot *const made = &all[scratch->count++];
    *made = (slot){.offset = g->bytes, .bytes = bytes};
    g->bytes += bytes;
    return made;
}

/* Puts a result of step `at` into scratch if the group's steps alone read it. */
static void place_value(tsr_executable *x, tsr_group *g, const int *last, slots *scratch, int value, int at)
{
    tsr_held *const v = value >= 0 ? &x->values[value] : NULL;
    if (!v || (v->place != TSR_PLACE_NOWHERE && v->place != TSR_PLACE_TILE) || last[value] > g->last)
        return;
    const tsr_form *const form = &x->forms[v->form];
    const int64_t bytes = least(g->most * (int64_t)tsr_dtype_bytes(form->local.dtype), (int64_t)form->bytes);
    slot *const s = find_slot(g, scratch, v->form, tsr_room_bytes((size_t)bytes), at);
    v->place = s ? TSR_PLACE_TILE : TSR_PLACE_NOWHERE;
    if (!s)
        return;
    s->form = v->form;
    s->last = last[value] > at ? last[value] : at + 1; /* other results of the step lie apart */
    v->index = s->offset;
}

/* Puts values into scratch for tiles of `g->most` elements. */
static void place_values(tsr_executable *x, tsr_group *g, const int *last)
{
    slots scratch = {.count = 0};
    g->bytes = 0;
    for (int at = g->first; at <= g->last; at++)
        for (int i = 0; i < x->steps[at].result_count && x->steps[at].kind == TSR_DOES_KERNEL; i++)
            place_value(x, g, last, &scratch, x->steps[at].results[i], at);
}

void tsr_group_place_values(tsr_executable *x, tsr_group *g, const int *last)
{
    g->most = TSR_TILE;
    place_values(x, g, last);
    const int64_t bytes = count_element_bytes(x, g);
    while (g->most > LEAST && g->most * bytes + (int64_t)g->bytes > CACHED) {
        g->most /= 2;
        place_values(x, g, last);
    }
}

/* Elements between neighbours along each of the group's dims; 0: a tensor repeats along it. */
static void find_strides(const tsr_tensor *t, const tsr_tensor *whole, int64_t *strides)
{
    for (int dim = 0; dim < whole->ndim; dim++) {
        const int own = dim - (whole->ndim - t->ndim);
        strides[dim] = own < 0 || t->shape[own] != whole->shape[dim] ? 0 : t->strides[own];
    }
}

/* True if in all tensors dim `dim` goes on where the next one ends. Scratch has no gaps. */
static bool is_one_dim(const tsr_executable *x, const tsr_group *g, int dim)
{
    for (int i = 0; i < g->cursor_count; i++) {
        const tsr_cursor *const c = &g->cursors[i];
        if (!is_scratch(x, c) && c->strides[dim] != c->strides[dim + 1] * g->shape[dim + 1])
            return false;
    }
    return true;
}

static void remove_dim(tsr_group *g, int dim)
{
    for (int next = dim; next + 1 < g->ndim; next++) {
        g->shape[next] = g->shape[next + 1];
        for (int i = 0; i < g->cursor_count; i++)
            g->cursors[i].strides[next] = g->cursors[i].strides[next + 1];
    }
    g->ndim--;
}

/* Drops dims of one element, and joins those that are one in all tensors. */
static void join_dims(const tsr_executable *x, tsr_group *g)
{
    for (int dim = g->ndim - 1; dim >= 0; dim--)
        if (g->shape[dim] == 1)
            remove_dim(g, dim);
    for (int dim = g->ndim - 2; dim >= 0; dim--) {
        if (!is_one_dim(x, g, dim))
            continue;
        g->shape[dim + 1] *= g->shape[dim];
        remove_dim(g, dim);
    }
}

/* Cuts the last dims that a tile has whole off the group's; `inner` gets their sizes. */
static int cut_dims(tsr_group *g, int64_t *inner)
{
    int64_t count = 1;
    int whole = 0;
    while (whole + 1 < g->ndim && count * g->shape[g->ndim - 1 - whole] <= g->most)
        count *= g->shape[g->ndim - 1 - whole++];
    g->ndim -= whole;
    memcpy(inner, g->shape + g->ndim, (size_t)whole * sizeof *inner);
    const int64_t size = g->shape[g->ndim - 1], tiles = (size - 1) / (g->most / count) + 1;
    g->length = (size - 1) / tiles + 1;
    if (!whole)
        g->length = (g->length + STEP - 1) / STEP * STEP;
    return whole;
}

/* Makes a step's tensor that of a tile, the dims of which are the group's last and `inner`. */
static void make_tile(const tsr_executable *x, const tsr_group *g, tsr_cursor *c, int whole, const int64_t *inner)
{
    tsr_tensor *const t = c->tensor;
    const int64_t bytes = (int64_t)tsr_dtype_bytes(t->dtype);
    const bool scratch = is_scratch(x, c);
    int64_t dense = 1;
    t->ndim = 1 + whole;
    for (int dim = whole; dim > 0; dim--) {
        t->shape[dim] = inner[dim - 1];
        t->strides[dim] = scratch ? dense : c->strides[g->ndim + dim - 1];
        dense *= inner[dim - 1];
    }
    t->shape[0] = g->length;
    t->strides[0] = scratch ? dense : c->strides[g->ndim - 1];
    c->data = t->data;
    c->ahead = c->is_first && !scratch && !whole && t->strides[0] == 1 ? g->length * bytes : 0;
    for (int dim = 0; dim < g->ndim; dim++)
        c->strides[dim] = scratch ? 0 : c->strides[dim] * bytes;
}

/* True if the group's steps read a result, or what lies in the same memory. */
static bool is_read(const tsr_group *g, const tsr_cursor *result)
{
    for (int i = 0; i < g->cursor_count; i++)
        if (&g->cursors[i] != result && g->cursors[i].tensor->data == result->tensor->data)
            return true;
    return false;
}

/* Finds whether a step's result goes past the caches: where it would if the step ran by itself, and
 * no step of the group has it in caches. */
static void choose_stream(const tsr_executable *x, const tsr_group *g, const tsr_cursor *c, int64_t count)
{
    const tsr_tensor *const t = c->tensor;
    const int64_t bytes = (int64_t)tsr_dtype_bytes(t->dtype), row = t->ndim ? t->shape[t->ndim - 1] : 1;
    const int64_t run = tsr_tensor_is_contiguous(t) ? count : row;
    if (c->step >= 0)
        x->steps[c->step].is_streamed =
            !is_scratch(x, c) && !is_read(g, c) && tsr_pointwise_is_streamed(NULL, run * bytes, count * bytes);
}

void tsr_group_link(tsr_executable *x, tsr_group *g)
{
    int64_t inner[TSR_MAX_DIMS], count = 1;
    const tsr_tensor *const whole = &tsr_form_of(x, x->steps[g->first].results[0])->local;
    g->dirty = false;
    g->ndim = whole->ndim;
    for (int dim = 0; dim < whole->ndim; dim++)
        count *= g->shape[dim] = whole->shape[dim];
    const bool tiled = count > g->most;
    for (int i = g->first; i <= g->last; i++)
        x->steps[i].is_tiled = x->steps[i].is_apart = tiled && x->steps[i].group >= 0;
    for (int i = 0; i < g->cursor_count; i++)
        *g->cursors[i].tensor = x->values[g->cursors[i].value].tensor;
    if (!tiled)
        return;
    for (int i = 0; i < g->cursor_count; i++)
        choose_stream(x, g, &g->cursors[i], count);
    for (int i = 0; i < g->cursor_count; i++)
        find_strides(g->cursors[i].tensor, whole, g->cursors[i].strides);
    join_dims(x, g);
    const int inside = cut_dims(g, inner);
    for (int i = 0; i < g->cursor_count; i++)
        make_tile(x, g, &g->cursors[i], inside, inner);
}

/* Gives steps their tensors of the tile at `index`. */
static void go_to(const tsr_group *g, const int64_t *index)
{
    const int last = g->ndim - 1;
    const int64_t length = least(g->length, g->shape[last] - index[last]);
    for (int i = 0; i < g->cursor_count; i++) {
        const tsr_cursor *const c = &g->cursors[i];
        int64_t offset = 0;
        for (int dim = 0; dim <= last; dim++)
            offset += index[dim] * c->strides[dim];
        c->tensor->data = c->data + offset;
        c->tensor->shape[0] = length;
    }
}

/* Fetches what the next tile reads first. There may be none: a prefetch does not fault. */
static void fetch_next(const tsr_group *g)
{
    for (int i = 0; i < g->cursor_count; i++) {
        const tsr_cursor *const c = &g->cursors[i];
        for (int64_t at = 0; at < c->ahead; at += LINE)
            __builtin_prefetch((const void *)((uintptr_t)c->tensor->data + (uintptr_t)(c->ahead + at)), 0, 2);
    }
}

/* Goes on to the next tile; false: that was the last. */
static bool advance(const tsr_group *g, int64_t *index)
{
    for (int dim = g->ndim - 1; dim >= 0; dim--) {
        index[dim] += dim == g->ndim - 1 ? g->length : 1;
        if (index[dim] < g->shape[dim])
            return true;
        index[dim] = 0;
    }
    return false;
}

static tsr_status run_step(const tsr_step *step)
{
    if (step->is_there)
        return TSR_OK;
    if (step->is_streamed)
        tsr_pointwise_stream(step->c.op->host, &step->call);
    else if (step->is_tiled)
        return step->c.op->host(&step->call);
    return TSR_OK;
}

tsr_status tsr_group_run(tsr_executable *x, const tsr_group *g)
{
    int64_t index[TSR_MAX_DIMS] = {0};
    do {
        go_to(g, index);
        fetch_next(g);
        for (int i = g->first; i <= g->last; i++)
            TSR_TRY(run_step(&x->steps[i]));
    } while (advance(g, index));
    return TSR_OK;
}
