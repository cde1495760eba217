#include "bench/moves/move_data.h"

#include "bench/check/move_check.h"

#include <tessera/sys/status.h>

static tsr_status fill(const tsr_layout *from, const local *source)
{
    int64_t coordinate[TSR_MAX_DIMS];
    int inside;
    void *staged;
    TSR_TRY(tsr_mesh_coordinate(tsr_layout_mesh(from), coordinate, &inside));
    if (!inside)
        return TSR_OK;
    TSR_TRY(local_stage(source, &staged));
    tsr_status status = check_fill(from, coordinate, staged, source->bytes);
    if (status == TSR_OK)
        status = local_push(source, staged);
    local_unstage(source, staged);
    return status;
}

/* The byte of a destination before a move: rare in results, and not what fresh memory holds. */
#define SPOILT 0xa5

/* The byte of a source that is only timed; an f32 of such bytes is about 0.01. */
#define PLAIN 0x3c

static tsr_status allocate(const place *p, tsr_comm *comm, const tsr_layout *from, const tsr_layout *to, move_data *out)
{
    *out = (move_data){.from = from, .to = to};
    TSR_TRY(local_create(p, comm, from, &out->source));
    return local_create(p, comm, to, &out->destination);
}

tsr_status move_data_create_plain(const place *p, tsr_comm *comm, const tsr_layout *from, const tsr_layout *to,
                                  move_data *out)
{
    TSR_TRY(allocate(p, comm, from, to, out));
    TSR_TRY(local_set(&out->source, PLAIN));
    return local_set(&out->destination, SPOILT);
}

tsr_status move_data_create(const place *p, tsr_comm *comm, const tsr_layout *from, const tsr_layout *to,
                            move_data *out)
{
    TSR_TRY(allocate(p, comm, from, to, out));
    TSR_TRY(fill(from, &out->source));
    return local_set(&out->destination, SPOILT);
}

void move_data_free(move_data *d)
{
    local_free(&d->destination);
    local_free(&d->source);
}

tsr_status move_data_count_wrong(const move_data *d, int64_t *wrong)
{
    int64_t coordinate[TSR_MAX_DIMS];
    int inside;
    void *staged;
    *wrong = 0;
    TSR_TRY(tsr_mesh_coordinate(tsr_layout_mesh(d->to), coordinate, &inside));
    if (!inside)
        return TSR_OK;
    TSR_TRY(local_stage(&d->destination, &staged));
    tsr_status status = local_pull(&d->destination, staged);
    if (status == TSR_OK)
        status = check_count_wrong(d->from, d->to, coordinate, staged, d->destination.bytes, wrong);
    local_unstage(&d->destination, staged);
    return status;
}
