#include "lines.h"

#include <stdio.h>

/* A mesh in a communicator of `ranks` ranks. */
typedef struct situation {
    int ranks;
    const char *mesh;
} situation;

static const situation situations[] = {
    {8, "a=2,b=2,c=2"},
    {8, "a=2,b=2,c=2@[5,2,7,0,3,6,1,4]"},
    {8, "2x3@1"},
    {5, "a=2,b=2@1"},
    {4, "a=2,b=2@[3,1,0,2]"},
    {4, "a=2,b=2"},
    {3, "a=1,b=2@1"},
    {3, "3"},
    {2, "2@[1,0]"},
    {1, "a=1,b=1"},
};
#define SITUATIONS (sizeof situations / sizeof *situations)

void lines_run(tsr_rank_main *body)
{
    for (size_t i = 0; i < SITUATIONS; i++)
        suite_run(situations[i].ranks, body, (void *)situations[i].mesh);
}

tsr_status lines_find(const tsr_mesh *mesh, unsigned mask, line *out)
{
    int64_t mine[TSR_MAX_DIMS], theirs[TSR_MAX_DIMS];
    const int ndim = tsr_mesh_ndim(mesh), rank = tsr_comm_rank(tsr_mesh_comm(mesh));
    int inside, outside = 0;
    *out = (line){.count = 0};
    for (int d = 0, at = 0; d < ndim; d++)
        if (mask & 1u << d && tsr_mesh_name(mesh, d))
            at += sprintf(out->dims + at, "%s%s", at ? "," : "", tsr_mesh_name(mesh, d));
        else if (mask & 1u << d)
            at += sprintf(out->dims + at, "%s%d", at ? "," : "", d);
    TSR_TRY(tsr_mesh_coordinate(mesh, mine, &inside));
    for (int64_t i = 0; i < tsr_mesh_count(mesh) && inside; i++) {
        int64_t left = i, other;
        bool along = true;
        for (int d = ndim - 1; d >= 0; left /= tsr_mesh_size(mesh, d), d--) {
            theirs[d] = left % tsr_mesh_size(mesh, d);
            along = along && (mask & 1u << d || theirs[d] == mine[d]);
        }
        TSR_TRY(tsr_mesh_rank_at(mesh, theirs, &other));
        outside += !along;
        if (!along)
            continue;
        if (other == rank)
            out->own = out->count;
        out->ranks[out->count++] = (int)other;
    }
    CHECK(!inside || out->count + outside == (int)tsr_mesh_count(mesh));
    return TSR_OK;
}

unsigned lines_masks(const tsr_mesh *mesh)
{
    return 1u << tsr_mesh_ndim(mesh);
}

tsr_status lines_check_told(tsr_comm *comm, tsr_status status, int culprit, bool meets)
{
    char told[32];
    snprintf(told, sizeof told, "rank %d failed: tsr_", culprit);
    if (tsr_comm_rank(comm) == culprit)
        CHECK_ERROR(status, TSR_ERROR_ARGUMENT, "tsr_mesh_");
    else if (meets)
        CHECK_ERROR(status, TSR_ERROR_PEER, told);
    else
        TSR_TRY(status);
    return TSR_OK;
}
