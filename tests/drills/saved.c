/* Damaged saved plans: loading refuses them with a sentence, or gives a plan that saves to these
 * bytes. */
#include "draw_moves.h"
#include "meter.h"

#include <tessera/tessera.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_RANKS = 8, MOST_BYTES = 16384, DAMAGES = 64, LENGTH_AT = 12, CHECKSUM_BYTES = 8, FRAME_BYTES = 28 };

/* Upper bounds of a load; drawn plans take about a millisecond and some kilobytes. */
enum { MOST_SECONDS = 10, MOST_MEMORY = 256 * MEBIBYTE };

typedef struct saved {
    unsigned char bytes[MOST_BYTES];
    size_t size;
} saved;

/* Plans to damage. */

static tsr_status make_layout(tsr_context *context, const rule_layout *layout, tsr_layout **out)
{
    tsr_mesh *mesh = NULL;
    tsr_status status =
        tsr_mesh_create_abstract(context, layout->mesh.ndim, layout->mesh.shape, NULL, layout->mesh.ranks, &mesh);
    if (status == TSR_OK)
        status = tsr_layout_create(mesh, layout->placements, layout->ndim, layout->shape, layout->dtype, out);
    tsr_mesh_destroy(mesh);
    return status;
}

static bool has_list(const rule_layout *layout)
{
    for (int d = 0; d < layout->mesh.ndim; d++)
        if (layout->placements[d].size_count || layout->placements[d].block_count)
            return true;
    return false;
}

/* Lengthens dims, so that a changed number can ask for very many pieces. */
static void lengthen(drill_draws *draws, rule_layout *src, rule_layout *dst)
{
    for (int d = 0; d < src->ndim && !has_list(src) && !has_list(dst); d++)
        src->shape[d] = dst->shape[d] = src->shape[d] << drill_below(draws, 48 / src->ndim);
}

static tsr_status save_drawn(tsr_context *context, drill_draws *draws, saved *out)
{
    drawn_moves m;
    tsr_layout *src[DRAWN_ITEMS] = {0}, *dst[DRAWN_ITEMS] = {0};
    tsr_plan *plan = NULL;
    tsr_status status = TSR_OK;
    draw_moves(draws, 1 + (int)drill_below(draws, MOST_RANKS), &m);
    m.options.rank = TSR_RANK_NONE;
    const bool lengthened = drill_one_in(draws, 2);
    for (size_t i = 0; i < m.count && status == TSR_OK; i++) {
        if (lengthened)
            lengthen(draws, &m.src[i], &m.dst[i]);
        status = make_layout(context, &m.src[i], &src[i]);
        if (status == TSR_OK)
            status = make_layout(context, &m.dst[i], &dst[i]);
    }
    if (status == TSR_OK)
        status = tsr_plan_create_batch(m.count, (const tsr_layout *const *)src, (const tsr_layout *const *)dst,
                                       &m.options, &plan);
    if (status == TSR_OK)
        status = tsr_plan_save(plan, out->bytes, sizeof out->bytes, &out->size);
    for (size_t i = 0; i < m.count; i++) {
        tsr_layout_destroy(src[i]);
        tsr_layout_destroy(dst[i]);
    }
    tsr_plan_destroy(plan);
    return status;
}

/* Damage. */

static void put_u64(unsigned char *at, uint64_t value)
{
    for (int i = 0; i < 8; i++)
        at[i] = (unsigned char)(value >> 8 * i);
}

/* Corrects length and checksum (FNV-1a), so that the loader reads on. */
static void seal(saved *s)
{
    uint64_t checksum = UINT64_C(0xcbf29ce484222325);
    if (s->size < FRAME_BYTES)
        return;
    put_u64(s->bytes + LENGTH_AT, s->size);
    for (size_t i = 0; i < s->size - CHECKSUM_BYTES; i++)
        checksum = (checksum ^ s->bytes[i]) * UINT64_C(0x100000001b3);
    put_u64(s->bytes + s->size - CHECKSUM_BYTES, checksum);
}

static uint64_t draw_number(drill_draws *draws)
{
    const uint64_t power = UINT64_C(1) << drill_below(draws, 64);
    switch (drill_below(draws, 4)) {
    case 0:
        return power - 1;
    case 1:
        return -power;
    case 2:
        return (uint64_t)drill_below(draws, 10);
    default:
        return power;
    }
}

static void flip_bits(drill_draws *draws, saved *s)
{
    for (int64_t left = 1 + drill_below(draws, 4); left > 0; left--)
        s->bytes[drill_below(draws, (int64_t)s->size)] ^= (unsigned char)(1 << drill_below(draws, 8));
}

/* Changes a field of 4 or 8 bytes. */
static void change_number(drill_draws *draws, saved *s)
{
    unsigned char number[8];
    put_u64(number, draw_number(draws));
    const size_t bytes = drill_one_in(draws, 2) ? 4 : 8;
    memcpy(s->bytes + drill_below(draws, (int64_t)(s->size - bytes + 1) / 4) * 4, number, bytes);
}

static void cut_short(drill_draws *draws, saved *s)
{
    s->size = (size_t)drill_below(draws, (int64_t)s->size);
}

static void add_bytes(drill_draws *draws, saved *s)
{
    for (int64_t left = 1 + drill_below(draws, 64); left > 0 && s->size < MOST_BYTES; left--)
        s->bytes[s->size++] = (unsigned char)drill_draw(draws);
}

/* Joins the begin of one plan and the end of another. */
static void splice(drill_draws *draws, saved *s, const saved *other)
{
    const size_t at = (size_t)drill_below(draws, (int64_t)s->size),
                 from = (size_t)drill_below(draws, (int64_t)other->size);
    size_t bytes = other->size - from;
    bytes = bytes < MOST_BYTES - at ? bytes : MOST_BYTES - at;
    memcpy(s->bytes + at, other->bytes + from, bytes);
    s->size = at + bytes;
}

static void damage(drill_draws *draws, saved *s, const saved *other)
{
    switch (drill_below(draws, 8)) {
    case 0:
        cut_short(draws, s);
        break;
    case 1:
        add_bytes(draws, s);
        break;
    case 2:
        splice(draws, s, other);
        break;
    case 3:
    case 4:
        flip_bits(draws, s);
        break;
    default:
        change_number(draws, s);
    }
    if (!drill_one_in(draws, 8))
        seal(s);
}

/* Loading. */

static void check_loaded(drill *d, const tsr_plan *plan, const saved *s)
{
    unsigned char again[MOST_BYTES];
    size_t size = 0;
    tsr_plan_figures figures;
    if (tsr_plan_save(plan, again, sizeof again, &size) != TSR_OK || size != s->size ||
        memcmp(again, s->bytes, size) != 0)
        drill_fail(d, "a plan was loaded from %zu bytes that are not what it is saved as", s->size);
    if (tsr_plan_figures_of(plan, &figures) != TSR_OK || figures.bytes_received < 0 || figures.bytes_sent < 0)
        drill_fail(d, "a plan was loaded whose figures are wrong");
}

static void print_bytes(const saved *s)
{
    fputs("  the bytes: ", stderr);
    for (size_t i = 0; i < s->size; i++)
        fprintf(stderr, "%02x", s->bytes[i]);
    fputc('\n', stderr);
}

static void load(drill *d, tsr_context *context, meter *m, drill_draws *draws, const saved *s)
{
    unsigned char *bytes = malloc(s->size + 1); /* exactly their size, so that sanitizers find reads beyond it */
    tsr_plan *plan = NULL;
    if (!bytes)
        return;
    memcpy(bytes, s->bytes, s->size);
    meter_begin(m);
    const tsr_status status = tsr_plan_load(context, bytes, s->size, drill_below(draws, MOST_RANKS + 1) - 1, &plan);
    const double seconds = meter_seconds(m);
    if (status == TSR_OK)
        check_loaded(d, plan, s);
    else if (plan || !*tsr_status_message() || (status != TSR_ERROR_ARGUMENT && status != TSR_ERROR_UNSUPPORTED))
        drill_fail(d, "%s: \"%s\"", tsr_status_name(status), tsr_status_message());
    if (seconds > MOST_SECONDS || status == TSR_ERROR_MEMORY) {
        drill_fail(d, "%.1f s and %zu MiB to load %zu bytes", seconds, meter_memory(m) / MEBIBYTE, s->size);
        print_bytes(s);
    }
    tsr_plan_destroy(plan);
    if (meter_left(m))
        drill_fail(d, "%zu bytes are left after %s", meter_left(m), tsr_status_name(status));
    free(bytes);
}

int main(int argc, char **argv)
{
    const drill_about about = {
        "saved", "a damaged plan is refused with a sentence, or is a plan: no crash, bounded time and memory", 800,
        120};
    drill *d = drill_begin(argc, argv, &about);
    meter m = {.bound = MOST_MEMORY};
    tsr_context *context = NULL;
    if (meter_context(&m, &context) != TSR_OK)
        return 1;
    int64_t index;
    static saved whole, other, spoiled;
    while (drill_next(d, &index)) {
        drill_draws draws = drill_draws_of(drill_seed(d), (uint64_t)index);
        drill_weigh(d, DAMAGES);
        if (save_drawn(context, &draws, &whole) != TSR_OK || save_drawn(context, &draws, &other) != TSR_OK) {
            drill_fail(d, "nothing to damage: %s", tsr_status_message());
            continue;
        }
        for (int i = 0; i < DAMAGES; i++) {
            spoiled = whole;
            damage(&draws, &spoiled, &other);
            load(d, context, &m, &draws, &spoiled);
        }
    }
    tsr_context_destroy(context);
    return drill_end(d);
}
