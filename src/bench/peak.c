#include "bench/peak.h"

#include "bench/memory.h"

#include <tessera/sys/device.h>
#include <tessera/sys/memory.h>

#include <sched.h>
#include <string.h>
#include <unistd.h>

/* The name of the device's own copy. */
static const char of_device[] = "device to device";

int tsr_bench_cores(void)
{
    cpu_set_t cores;
    CPU_ZERO(&cores);
    if (sched_getaffinity(0, sizeof cores, &cores) == 0)
        return CPU_COUNT(&cores);
    const long online = sysconf(_SC_NPROCESSORS_ONLN);
    return online > 0 ? (int)online : 1;
}

/* Finds the copies that this rank can run, and returns their number. Asking the processor takes
 * time, so it is asked only here. */
static int64_t find_copies(tsr_bench_peak *k)
{
    int count = 0;
    if (tsr_bench_rank_has_device(k->rank))
        return 1;
    while (count < TSR_BENCH_MOST_COPIES && (k->copy[count] = tsr_bench_copier_get(count, NULL)) != NULL)
        count++;
    return count;
}

/* Gets memory, which each rank of the host touches first. */
static void make_areas(tsr_bench_peak *k, size_t bytes, void *result, tsr_bench_outcome *o)
{
    const tsr_bench_rank *const r = k->rank;
    const size_t source = result ? bytes : tsr_bench_round_up(bytes);
    void *areas = NULL;
    tsr_bench_outcome_add(
        o, tsr_allocate(tsr_comm_context(r->comm), (size_t)tsr_comm_size(r->comm) * sizeof *k->areas, &areas));
    k->areas = areas;
    k->memory_bytes = source + (result ? 0 : bytes);
    tsr_bench_allocate(r, k->memory_bytes, &k->memory, o);
    if (k->memory && o->status == TSR_OK && !tsr_bench_rank_has_device(r))
        memset(k->memory, 0x5a, k->memory_bytes);
    k->own = (tsr_bench_area){.dst = result || !k->memory ? result : (char *)k->memory + source,
                              .src = k->memory,
                              .bytes = bytes,
                              .device = r->options.device};
}

/* Gives every rank all areas, and their places in the payload. */
static tsr_status share_areas(tsr_bench_peak *k)
{
    tsr_comm *const comm = k->rank->comm;
    int64_t count = find_copies(k);
    TSR_TRY(tsr_comm_all_reduce(comm, &count, &count, 1, TSR_I64, TSR_MIN, tsr_device_host(), NULL));
    TSR_TRY(
        tsr_comm_all_gather(comm, &k->own, k->areas, (int64_t)sizeof k->own, NULL, TSR_U8, tsr_device_host(), NULL));
    for (int i = 0; i < tsr_comm_size(comm); i++) {
        k->areas[i].begin = k->payload;
        k->payload += k->areas[i].bytes;
    }
    k->count = (int)count;
    return TSR_OK;
}

tsr_status tsr_bench_peak_enter(const tsr_bench_rank *r, size_t bytes, void *result, tsr_bench_peak *out)
{
    const int ranks = tsr_comm_size(r->comm), cores = tsr_bench_cores();
    tsr_bench_outcome o = {.status = TSR_OK};
    *out = (tsr_bench_peak){.rank = r,
                            .together = strcmp(tsr_comm_engine(r->comm), "threads") == 0,
                            .copiers = cores < ranks ? cores : ranks};
    make_areas(out, bytes, result, &o);
    TSR_TRY(tsr_bench_agree(r->comm, &o));
    return share_areas(out);
}

void tsr_bench_peak_leave(tsr_bench_peak *k)
{
    if (!k->rank)
        return;
    tsr_bench_release(k->rank, k->memory, k->memory_bytes);
    tsr_release(tsr_comm_context(k->rank->comm), k->areas);
    *k = (tsr_bench_peak){.rank = NULL};
}

const char *tsr_bench_peak_name(const tsr_bench_peak *k, int index)
{
    const char *name = of_device;
    if (!tsr_bench_rank_has_device(k->rank))
        (void)tsr_bench_copier_get(index, &name);
    return name;
}

/* Copies an equal share of the payload, which may begin and end within areas. */
static void copy_share(const tsr_bench_peak *k, int rank, int index)
{
    const size_t share = k->payload / (size_t)k->copiers;
    const size_t begin = share * (size_t)rank, end = rank + 1 == k->copiers ? k->payload : begin + share;
    for (int r = 0; r < tsr_comm_size(k->rank->comm); r++) {
        const tsr_bench_area *const area = &k->areas[r];
        const size_t from = begin > area->begin ? begin : area->begin,
                     to = end < area->begin + area->bytes ? end : area->begin + area->bytes;
        if (from < to)
            k->copy[index]((char *)area->dst + (from - area->begin), (const char *)area->src + (from - area->begin),
                           to - from);
    }
}

static tsr_status copy_area(const tsr_bench_rank *r, const tsr_bench_area *area)
{
    if (area->bytes == 0)
        return TSR_OK;
    return r->table->copy(r->self, r->options.device.index, area->dst, area->src, area->bytes, TSR_COPY_WITHIN,
                          r->options.stream);
}

/* The first rank on a device copies for all rank threads that share it. */
static tsr_status copy_on_device(const tsr_bench_peak *k, int rank)
{
    if (!k->together)
        return copy_area(k->rank, &k->own);
    for (int r = 0; r < rank; r++)
        if (tsr_device_same(k->areas[r].device, k->own.device))
            return TSR_OK;
    for (int r = rank; r < tsr_comm_size(k->rank->comm); r++)
        if (tsr_device_same(k->areas[r].device, k->own.device))
            TSR_TRY(copy_area(k->rank, &k->areas[r]));
    return TSR_OK;
}

tsr_status tsr_bench_peak_run(const tsr_bench_peak *k, int index)
{
    const int rank = tsr_comm_rank(k->rank->comm);
    if (tsr_bench_rank_has_device(k->rank))
        return copy_on_device(k, rank);
    if (!k->together)
        k->copy[index](k->own.dst, k->own.src, k->own.bytes);
    else if (rank < k->copiers)
        copy_share(k, rank, index);
    return TSR_OK;
}
