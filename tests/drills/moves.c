/* Random moves on rank threads, byte for byte against the second oracle. */
#include "draw_moves.h"
#include "sheet.h"

#include <tessera/tessera.h>

#include <stdlib.h>
#include <string.h>

enum { MOST_RANKS = 8, MOST_MOVES = 4, SAVED_BYTES = 8192 };

/* One rank's side of a case. */
typedef struct part {
    drill *d;
    tsr_comm *comm;
    int rank;
    drill_draws own; /* draws that may differ between ranks */
    drawn_moves m;
    rule_move rules[DRAWN_ITEMS];
    tsr_mesh *meshes[2];
    tsr_layout *src[DRAWN_ITEMS], *dst[DRAWN_ITEMS];
    sheet from[DRAWN_ITEMS], to[DRAWN_ITEMS];
    tsr_plan *plan;
    void *workspace;
} part;

#define TRY(call)                                                                                                      \
    do {                                                                                                               \
        const tsr_status try_status = (call);                                                                          \
        if (try_status != TSR_OK)                                                                                      \
            return try_status;                                                                                         \
    } while (0)

/* Objects. */

static tsr_status make_mesh(part *p, const rule_mesh *mesh, tsr_mesh **out)
{
    TRY(tsr_mesh_create(p->comm, mesh->ndim, mesh->shape, NULL, mesh->ranks, out));
    if (!p->m.slice)
        return TSR_OK;
    char dims[16] = "";
    for (int d = 0; d < mesh->ndim; d++)
        if (p->m.slice >> d & 1)
            strcat(strcat(dims, *dims ? "," : ""), (const char *const[]){"0", "1", "2", "3"}[d]);
    tsr_mesh *whole = *out;
    *out = NULL;
    const tsr_status status = tsr_mesh_slice(whole, dims, out);
    tsr_mesh_destroy(whole);
    return status;
}

static tsr_status make_layouts(part *p)
{
    TRY(make_mesh(p, &p->m.meshes[0], &p->meshes[0]));
    if (p->m.one_mesh)
        p->meshes[1] = tsr_mesh_retain(p->meshes[0]);
    else
        TRY(make_mesh(p, &p->m.meshes[1], &p->meshes[1]));
    for (size_t i = 0; i < p->m.count; i++) {
        rule_layout *src = &p->m.src[i], *dst = &p->m.dst[i];
        if (p->m.slice) {
            rule_mesh_slice(&p->m.meshes[0], p->m.slice, p->rank, &src->mesh);
            rule_mesh_slice(&p->m.meshes[1], p->m.slice, p->rank, &dst->mesh);
        }
        rule_move_make(src, dst, &p->rules[i]);
        TRY(tsr_layout_create(p->meshes[0], src->placements, src->ndim, src->shape, src->dtype, &p->src[i]));
        TRY(tsr_layout_create(p->meshes[1], dst->placements, dst->ndim, dst->shape, dst->dtype, &p->dst[i]));
    }
    return TSR_OK;
}

static bool make_sheets(part *p)
{
    bool made = true;
    for (size_t i = 0; i < p->m.count; i++) {
        sheet_destroy(&p->from[i]);
        sheet_destroy(&p->to[i]);
        made = made && sheet_create(&p->m.src[i], p->rank, p->m.strided, &p->own, &p->from[i]) &&
               sheet_create(&p->m.dst[i], p->rank, p->m.strided, &p->own, &p->to[i]);
        if (made)
            sheet_fill(&p->from[i], &p->rules[i], p->m.values, p->rank, rule_source_value);
    }
    return made;
}

static void destroy(part *p)
{
    for (size_t i = 0; i < p->m.count; i++) {
        sheet_destroy(&p->from[i]);
        sheet_destroy(&p->to[i]);
        tsr_layout_destroy(p->src[i]);
        tsr_layout_destroy(p->dst[i]);
    }
    free(p->workspace);
    tsr_plan_destroy(p->plan);
    tsr_mesh_destroy(p->meshes[0]);
    tsr_mesh_destroy(p->meshes[1]);
}

/* The case in words. */

static void tell(part *p, const char *what, size_t item, size_t byte)
{
    static const char *const ways[] = {"plan", "halves", "saved plan", "redistribute_into", "redistribute", "in place"};
    char from[2][200] = {"?"}, to[2][200] = {"?"};
    if (p->meshes[0] && p->meshes[1]) {
        tsr_mesh_print(p->meshes[0], from[0], sizeof from[0]);
        tsr_mesh_print(p->meshes[1], to[0], sizeof to[0]);
    }
    tsr_placements_print(p->m.src[item].placements, p->m.src[item].mesh.ndim, from[1], sizeof from[1]);
    tsr_placements_print(p->m.dst[item].placements, p->m.dst[item].mesh.ndim, to[1], sizeof to[1]);
    const rule_layout *l = &p->m.src[item];
    drill_fail(p->d,
               "%s, rank %d of %d, byte %zu: %s of item %zu of %zu, %lldx%lldx%lldx%lld (%d dims) %s, %s on %s to %s "
               "on %s; mode %d, "
               "workspace %zu, no_split %d, nodes of %lld, strided %d",
               what, p->rank, tsr_comm_size(p->comm), byte, ways[p->m.way], item, p->m.count, (long long)l->shape[0],
               (long long)l->shape[1], (long long)l->shape[2], (long long)l->shape[3], l->ndim,
               tsr_dtype_name(l->dtype), from[1], from[0], to[1], to[0], p->m.options.mode, p->m.options.max_workspace,
               p->m.options.no_split, (long long)p->m.options.nodes.ranks_per_node, p->m.strided);
}

/* Checks the destination, the memory around it, and that the source is unchanged. */
static void check(part *p)
{
    size_t at = 0;
    for (size_t i = 0; i < p->m.count; i++) {
        if (!sheet_holds(&p->to[i], &p->rules[i], p->m.values, p->rank, rule_expected_value, &at))
            tell(p, "wrong destination", i, at);
        if (!sheet_holds(&p->from[i], &p->rules[i], p->m.values, p->rank, rule_source_value, &at))
            tell(p, "changed source", i, at);
    }
}

/* Ways. */

static tsr_status make_plan(part *p)
{
    const tsr_layout *const *src = (const tsr_layout *const *)p->src, *const *dst = (const tsr_layout *const *)p->dst;
    if (p->m.count == 1)
        TRY(tsr_plan_create(src[0], dst[0], &p->m.options, &p->plan));
    else
        TRY(tsr_plan_create_batch(p->m.count, src, dst, &p->m.options, &p->plan));
    if (p->m.way != BY_SAVED)
        return TSR_OK;
    unsigned char bytes[SAVED_BYTES];
    size_t size = 0;
    TRY(tsr_plan_save(p->plan, bytes, sizeof bytes, &size));
    tsr_plan_destroy(p->plan);
    p->plan = NULL;
    return tsr_plan_load(NULL, bytes, size, p->rank, &p->plan);
}

static tsr_status execute_plan(part *p, const tsr_tensor *src, const tsr_tensor *dst)
{
    const size_t bytes = tsr_plan_workspace_bytes(p->plan);
    if (p->m.way != BY_HALVES)
        return tsr_plan_execute(p->plan, p->comm, src, dst, bytes ? p->workspace : NULL, bytes, NULL);
    TRY(tsr_plan_start(p->plan, p->comm, src, dst, bytes ? p->workspace : NULL, bytes, NULL));
    return tsr_plan_finish(p->plan, p->comm);
}

static tsr_status move_by_plan(part *p)
{
    TRY(make_plan(p));
    const size_t bytes = tsr_plan_workspace_bytes(p->plan);
    bool in_place = true;
    for (size_t i = 0; i < p->m.count; i++)
        in_place = in_place && rule_in_place(&p->rules[i]);
    if (in_place != tsr_plan_in_place(p->plan))
        tell(p, "tsr_plan_in_place()", 0, 0);
    if (p->m.options.max_workspace && bytes > p->m.options.max_workspace)
        tell(p, "more workspace than allowed", 0, bytes);
    p->workspace = aligned_alloc(64, (bytes + 127) / 64 * 64);
    TRY(tsr_plan_prepare(p->plan, p->comm));
    for (int repeat = 0; repeat < 2; repeat++) {
        tsr_tensor src[DRAWN_ITEMS], dst[DRAWN_ITEMS];
        if (!make_sheets(p) || !p->workspace)
            return TSR_ERROR_MEMORY;
        for (size_t i = 0; i < p->m.count; i++) {
            src[i] = p->from[i].tensor;
            dst[i] = p->to[i].tensor;
        }
        memset(p->workspace, 0x5a, (bytes + 127) / 64 * 64);
        TRY(execute_plan(p, p->from[0].inside ? src : NULL, p->to[0].inside ? dst : NULL));
        check(p);
    }
    return TSR_OK;
}

static tsr_status borrow(const sheet *s, const tsr_layout *layout, tsr_dtensor **out)
{
    return s->inside ? tsr_dtensor_from_local(&s->tensor, layout, NULL, out)
                     : tsr_dtensor_create(layout, tsr_device_host(), out);
}

static tsr_status move_dtensors(part *p, tsr_dtensor **x, tsr_dtensor **y)
{
    for (size_t i = 0; i < p->m.count; i++) {
        TRY(borrow(&p->from[i], p->src[i], &x[i]));
        TRY(borrow(&p->to[i], p->dst[i], &y[i]));
    }
    if (p->m.count == 1)
        return tsr_redistribute_into(x[0], y[0], NULL);
    return tsr_redistribute_batch(p->m.count, (const tsr_dtensor *const *)x, y, NULL);
}

/* Moves twice: the second call finds the plan that the first kept. */
static tsr_status move_by_dtensors(part *p)
{
    tsr_status status = TSR_OK;
    for (int repeat = 0; repeat < 2 && status == TSR_OK; repeat++) {
        tsr_dtensor *x[DRAWN_ITEMS] = {0}, *y[DRAWN_ITEMS] = {0};
        if (!make_sheets(p))
            return TSR_ERROR_MEMORY;
        status = move_dtensors(p, x, y);
        for (size_t i = 0; i < p->m.count; i++) {
            tsr_dtensor_destroy(x[i]);
            tsr_dtensor_destroy(y[i]);
        }
        if (status == TSR_OK)
            check(p);
    }
    return status;
}

/* Copies the library's own tensor, which has no gaps, to a sheet. */
static void take_local(const tsr_dtensor *y, sheet *to)
{
    const tsr_tensor local = tsr_dtensor_to_local(y);
    int64_t count = 0;
    if (to->inside && tsr_tensor_count(&local, &count) == TSR_OK && count)
        memcpy(to->tensor.data, local.data, (size_t)count * rule_bytes(local.dtype));
}

static tsr_status move_to_new(part *p)
{
    tsr_dtensor *x = NULL, *y = NULL;
    if (!make_sheets(p))
        return TSR_ERROR_MEMORY;
    sheet_destroy(&p->to[0]);
    if (!sheet_create(&p->m.dst[0], p->rank, false, &p->own, &p->to[0]))
        return TSR_ERROR_MEMORY;
    tsr_status status = borrow(&p->from[0], p->src[0], &x);
    if (status == TSR_OK)
        status = tsr_redistribute(x, p->m.dst[0].placements, &y);
    if (status == TSR_OK) {
        take_local(y, &p->to[0]);
        check(p);
    }
    tsr_dtensor_destroy(x);
    tsr_dtensor_destroy(y);
    return status;
}

/* Moves in place; if the rules do not allow it the tensor must stay as it is. */
static tsr_status move_in_place(part *p)
{
    tsr_dtensor *x = NULL;
    if (!make_sheets(p))
        return TSR_ERROR_MEMORY;
    tsr_status status = borrow(&p->from[0], p->src[0], &x);
    if (status == TSR_OK)
        status = tsr_redistribute_in_place(x, p->m.dst[0].placements, NULL);
    tsr_dtensor_destroy(x);
    size_t at = 0;
    const bool allowed = rule_in_place(&p->rules[0]);
    if ((status == TSR_OK) != allowed)
        tell(p, "refused or not", 0, 0);
    else if (!sheet_holds(&p->from[0], &p->rules[0], p->m.values, p->rank,
                          allowed ? rule_expected_value : rule_source_value, &at))
        tell(p, "wrong in place", 0, at);
    return status == TSR_ERROR_UNSUPPORTED ? TSR_OK : status;
}

static tsr_status move(part *p)
{
    TRY(make_layouts(p));
    switch (p->m.way) {
    case BY_DTENSORS:
        return move_by_dtensors(p);
    case BY_NEW:
        return move_to_new(p);
    case IN_PLACE:
        return move_in_place(p);
    default:
        return move_by_plan(p);
    }
}

/* Cases. */

typedef struct job {
    drill *d;
    int64_t index;
} job;

static tsr_status run_rank(tsr_comm *comm, void *arg)
{
    const job *j = arg;
    drill_draws draws = drill_draws_of(drill_seed(j->d), (uint64_t)j->index);
    drill_below(&draws, MOST_RANKS);
    const int64_t moves = 1 + drill_below(&draws, MOST_MOVES);
    tsr_status status = TSR_OK;
    for (int64_t i = 0; i < moves && status == TSR_OK; i++) {
        part p = {.d = j->d, .comm = comm, .rank = tsr_comm_rank(comm), .own = draws};
        p.own.state += (uint64_t)p.rank;
        draw_moves(&draws, tsr_comm_size(comm), &p.m);
        status = move(&p);
        if (status != TSR_OK && p.rank == 0)
            tell(&p, tsr_status_message(), 0, 0);
        destroy(&p);
    }
    return status;
}

int main(int argc, char **argv)
{
    const drill_about about = {"moves", "every move gives the bytes that the rules say, and writes nothing else", 2000,
                               60};
    drill *d = drill_begin(argc, argv, &about);
    job j = {.d = d};
    while (drill_next(d, &j.index)) {
        drill_draws draws = drill_draws_of(drill_seed(d), (uint64_t)j.index);
        const int ranks = 1 + (int)drill_below(&draws, MOST_RANKS);
        drill_weigh(d, 1 + drill_below(&draws, MOST_MOVES));
        const tsr_status status = tsr_threads_run(ranks, run_rank, &j, NULL);
        if (status != TSR_OK)
            drill_fail(d, "%d ranks: %s: %s", ranks, tsr_status_name(status), tsr_status_message());
    }
    return drill_end(d);
}
