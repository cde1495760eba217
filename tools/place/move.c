#include "place/move.h"

#include <tessera/sys/status.h>

#include <time.h>

static tsr_status make_layouts(const move_request *request, move *m)
{
    TSR_TRY(tsr_mesh_parse(m->comm, NULL, request->mesh, &m->mesh));
    if (request->to_mesh)
        TSR_TRY(tsr_mesh_parse(m->comm, NULL, request->to_mesh, &m->to_mesh));
    else
        m->to_mesh = tsr_mesh_retain(m->mesh);
    TSR_TRY(
        tsr_layout_parse(m->mesh, request->from, request->shape.ndim, request->shape.size, request->dtype, &m->from));
    return tsr_layout_parse(m->to_mesh, request->to, request->shape.ndim, request->shape.size, request->dtype, &m->to);
}

static tsr_status make_move(const move_request *request, move *m)
{
    const tsr_plan_options options = {
        .size = sizeof options, .rank = TSR_RANK_DEFAULT, .mode = request->mode, .measured = request->profile};
    TSR_TRY(make_layouts(request, m));
    TSR_TRY(tsr_plan_create(m->from, m->to, &options, &m->plan));
    TSR_TRY(place_allocate(m->place, m->comm, tsr_plan_workspace_bytes(m->plan), &m->workspace));
    return tsr_plan_prepare(m->plan, m->comm);
}

tsr_status move_create(const place *p, tsr_comm *comm, const move_request *request, move *out)
{
    move m = {.place = p, .comm = comm};
    const tsr_status status = make_move(request, &m);
    if (status == TSR_OK)
        *out = m;
    else
        move_finish(&m);
    return status;
}

tsr_status move_execute(const move *m, const tsr_tensor *src, const tsr_tensor *dst)
{
    const tsr_stream stream = place_stream(m->place, tsr_comm_rank(m->comm));
    return tsr_plan_execute(m->plan, m->comm, src, dst, m->workspace, tsr_plan_workspace_bytes(m->plan), stream);
}

void move_finish(move *m)
{
    if (m->workspace)
        place_release(m->place, m->comm, m->workspace, tsr_plan_workspace_bytes(m->plan));
    tsr_plan_destroy(m->plan);
    tsr_layout_destroy(m->from);
    tsr_layout_destroy(m->to);
    tsr_mesh_destroy(m->mesh);
    tsr_mesh_destroy(m->to_mesh);
    *m = (move){0};
}

int move_has_rank(const tsr_mesh *mesh)
{
    int64_t coordinate[TSR_MAX_DIMS];
    int inside = 0;
    return tsr_mesh_coordinate(mesh, coordinate, &inside) == TSR_OK && inside;
}

double clock_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}
