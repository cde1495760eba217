#include "bench/run/peak.h"

#include "bench/run/bench.h"

#include <tessera/sys/status.h>

#include <stdlib.h>
#include <string.h>

static int measure_areas(const tsr_layout *to, peak *k)
{
    const tsr_mesh *const mesh = tsr_layout_mesh(to);
    int64_t coordinate[TSR_MAX_DIMS] = {0};
    do {
        int64_t rank;
        size_t bytes;
        if (tsr_mesh_rank_at(mesh, coordinate, &rank) != TSR_OK ||
            tsr_layout_local_bytes(to, coordinate, &bytes) != TSR_OK)
            return complain_status(EXIT_REFUSED);
        k->areas[rank] = (peak_area){.bytes = bytes, .begin = k->payload};
        if (__builtin_add_overflow(k->payload, bytes, &k->payload))
            return complain(EXIT_REFUSED, "the destination shards have more than 2^64-1 bytes together");
    } while (next_coordinate(mesh, coordinate));
    return EXIT_DONE;
}

int peak_create(const place *p, const tsr_layout *to, int ranks, peak *out)
{
    *out = (peak){.place = p, .ranks = ranks, .copiers = core_count() < ranks ? core_count() : ranks};
    out->areas = calloc((size_t)ranks, sizeof *out->areas);
    if (!out->areas)
        return complain(EXIT_REFUSED, "there is no memory for %d ranks", ranks);
    return measure_areas(to, out);
}

void peak_finish(peak *k)
{
    free(k->areas);
    k->areas = NULL;
}

const char *peak_name(const peak *k, int index)
{
    if (place_enqueues(k->place))
        return index == 0 ? "device to device" : NULL;
    const plain_copy *const copy = plain_copy_get(index);
    return copy ? copy->name : NULL;
}

/* Each rank touches its own host memory first. */
tsr_status peak_enter(peak *k, tsr_comm *comm, void *dst)
{
    const int rank = tsr_comm_rank(comm);
    peak_area *const area = &k->areas[rank];
    area->dst = dst;
    TSR_TRY(place_allocate(k->place, comm, area->bytes, &area->src));
    if (area->bytes > 0 && !place_enqueues(k->place))
        memset(area->src, 0x5a, area->bytes);
    return TSR_OK;
}

void peak_leave(peak *k, tsr_comm *comm)
{
    peak_area *const area = &k->areas[tsr_comm_rank(comm)];
    place_release(k->place, comm, area->src, area->bytes);
    area->src = NULL;
}

/* Copies an equal share of the payload, which may begin and end within areas. */
static void copy_share(const peak *k, int rank, const plain_copy *how)
{
    const size_t share = k->payload / (size_t)k->copiers;
    const size_t begin = share * (size_t)rank, end = rank + 1 == k->copiers ? k->payload : begin + share;
    for (int r = 0; r < k->ranks; r++) {
        const peak_area *const area = &k->areas[r];
        const size_t from = begin > area->begin ? begin : area->begin,
                     to = end < area->begin + area->bytes ? end : area->begin + area->bytes;
        if (from < to)
            how->copy((char *)area->dst + (from - area->begin), (const char *)area->src + (from - area->begin),
                      to - from);
    }
}

/* The first rank on a GPU copies for all ranks that share it. */
static tsr_status copy_on_gpu(const peak *k, int rank)
{
    const int index = place_device(k->place, rank).index;
    for (int r = 0; r < rank; r++)
        if (place_device(k->place, r).index == index)
            return TSR_OK;
    for (int r = rank; r < k->ranks; r++)
        if (place_device(k->place, r).index == index && k->areas[r].bytes > 0)
            TSR_TRY(place_copy(k->place, rank, k->areas[r].dst, k->areas[r].src, k->areas[r].bytes));
    return TSR_OK;
}

tsr_status peak_run(const peak *k, int rank, int index)
{
    if (place_enqueues(k->place))
        return copy_on_gpu(k, rank);
    const peak_area *const own = &k->areas[rank];
    if (place_launched(k->place) > 0)
        plain_copy_get(index)->copy(own->dst, own->src, own->bytes);
    else if (rank < k->copiers)
        copy_share(k, rank, plain_copy_get(index));
    return TSR_OK;
}
