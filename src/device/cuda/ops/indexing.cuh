/**
 * The bodies of the kernels of ops that index a table. First each id gets an entry: its place in
 * this rank's part of the table. Reads copy what lies there. Sums have a thread for each element
 * that the first id of a place adds; it adds those of all later ids of the place, in order, so that
 * results have the host's bits and nothing is atomic.
 */
#ifndef TSR_DEVICE_CUDA_OPS_INDEXING_CUH
#define TSR_DEVICE_CUDA_OPS_INDEXING_CUH

#include "device/cuda/ops/norms.cuh"

/** What the threads of a block share: whether their ids are out of range, or where the first one
 * is that is. */
struct tsr_cuda_id_memory {
    uint32_t of[TSR_CUDA_THREADS];
};

TSR_BOTH int64_t tsr_cuda_read_id(const tsr_cuda_view &view, const tsr_cuda_walk &walk, uint32_t position)
{
    return tsr_cuda_read<int64_t>(view.data + tsr_cuda_walked(walk, view.strides, position), view.storage);
}

/** The place of a position, or -1. */
TSR_BOTH int64_t tsr_cuda_place_in(const tsr_cuda_run &run, int64_t position)
{
    const int64_t apart = position - run.begin, block = apart < 0 ? run.count : apart / run.period;
    const int64_t within = apart - block * run.period;
    return block < run.count && within < run.length ? run.local + block * run.length + within : -1;
}

/** The position at a place, or -1. */
TSR_BOTH int64_t tsr_cuda_position_in(const tsr_cuda_run &run, int64_t place)
{
    const int64_t apart = place - run.local;
    if (apart < 0 || apart >= run.length * run.count)
        return -1;
    return run.begin + apart / run.length * run.period + apart % run.length;
}

TSR_BOTH uint32_t tsr_cuda_smallest(const tsr_cuda_id_memory *memory)
{
    uint32_t smallest = TSR_CUDA_NO_POSITION;
    for (uint32_t i = 0; i < TSR_CUDA_THREADS; i++)
        smallest = memory->of[i] < smallest ? memory->of[i] : smallest;
    return smallest;
}

/** Makes an entry; returns the position if its id is out of range. */
TSR_BOTH uint32_t tsr_cuda_find_id(const tsr_cuda_ids &given, uint32_t position)
{
    const int64_t id = tsr_cuda_read_id(given.view, given.walk, position);
    const bool in_range = id >= 0 && id < given.size;
    int64_t place = -1;
    for (int i = 0; in_range && place < 0 && i < given.run_count; i++)
        place = tsr_cuda_place_in(given.runs[i], id);
    if (!given.is_later)
        given.entries[position] = {place, -1, 0};
    else if (place >= 0)
        given.entries[position].place = place;
    return in_range ? TSR_CUDA_NO_POSITION : position;
}

/** The work of a block before its threads synchronise (phase 0), and after. */
TSR_BOTH void tsr_cuda_find_ids_in(const tsr_cuda_ids &given, uint32_t block, uint32_t thread, int phase,
                                   tsr_cuda_id_memory *memory)
{
    const uint32_t position = block * TSR_CUDA_THREADS + thread;
    if (phase == 0)
        memory->of[thread] = position < given.walk.count ? tsr_cuda_find_id(given, position) : TSR_CUDA_NO_POSITION;
    else if (thread == 0 && !given.is_later)
        given.firsts[block] = tsr_cuda_smallest(memory);
}

/** Shows the host what was written before. */
TSR_BOTH void tsr_cuda_set_fault(tsr_cuda_fault *fault)
{
#if defined(__CUDA_ARCH__)
    __threadfence_system();
    *(volatile int32_t *)&fault->is_set = 1;
#else
    __atomic_store_n(&fault->is_set, 1, __ATOMIC_RELEASE);
#endif
}

TSR_BOTH bool tsr_cuda_is_set(const tsr_cuda_fault *fault)
{
#if defined(__CUDA_ARCH__)
    return *(const volatile int32_t *)&fault->is_set != 0;
#else
    return __atomic_load_n(&fault->is_set, __ATOMIC_ACQUIRE) != 0;
#endif
}

/** Tells the host of the id at a position, unless an earlier one was not reported yet. */
TSR_BOTH void tsr_cuda_tell_id(const tsr_cuda_report &given, uint32_t position)
{
    tsr_cuda_fault *const fault = given.fault;
    if (position == TSR_CUDA_NO_POSITION || tsr_cuda_is_set(fault))
        return;
    fault->code = given.code;
    fault->rank = given.rank;
    fault->ndim = given.walk.ndim;
    fault->is_whole = given.is_whole;
    fault->id = tsr_cuda_read_id(given.view, given.walk, position);
    fault->size = given.size;
    for (int d = 0; d < given.walk.ndim; d++) {
        const uint32_t rest = tsr_cuda_divide(given.walk.by[d], position);
        const int64_t place = position - rest * given.walk.by[d].value;
        int64_t at = given.is_whole ? tsr_cuda_position_in(given.runs[d][0], place) : place;
        for (int i = 1; at < 0 && i < TSR_CUDA_INDEX_RUNS; i++)
            at = tsr_cuda_position_in(given.runs[d][i], place);
        fault->index[given.walk.ndim - 1 - d] = at;
        position = rest;
    }
    tsr_cuda_set_fault(fault);
}

/** The only block finds the first id that is out of range. */
TSR_BOTH void tsr_cuda_report_id_in(const tsr_cuda_report &given, uint32_t thread, int phase,
                                    tsr_cuda_id_memory *memory)
{
    if (phase == 1) {
        if (thread == 0)
            tsr_cuda_tell_id(given, tsr_cuda_smallest(memory));
        return;
    }
    uint32_t first = TSR_CUDA_NO_POSITION;
    for (uint32_t block = thread; block < given.blocks; block += TSR_CUDA_THREADS)
        first = given.firsts[block] < first ? given.firsts[block] : first;
    memory->of[thread] = first;
}

/** What the threads of a block share while they link entries: places, and whether an entry of the
 * same place comes before. */
struct tsr_cuda_link_memory {
    int64_t place[TSR_CUDA_THREADS];
    bool is_later[TSR_CUDA_THREADS];
};

/** Chunks of a line, each of an entry for every thread. */
TSR_BOTH uint32_t tsr_cuda_chunks(const tsr_cuda_links &given)
{
    return (given.length + TSR_CUDA_THREADS - 1) / TSR_CUDA_THREADS;
}

TSR_BOTH int64_t tsr_cuda_entry_at(const tsr_cuda_links &given, uint32_t line, uint32_t at)
{
    const uint32_t outer = line / given.inner;
    return ((int64_t)outer * given.length + at) * given.inner + (line - outer * given.inner);
}

/** Finds the next entry of the same place: in the chunk, else in those behind. Each entry is linked
 * to by one thread alone. */
TSR_BOTH void tsr_cuda_link_entry(const tsr_cuda_links &given, uint32_t line, uint32_t at, uint32_t thread,
                                  tsr_cuda_link_memory *memory)
{
    const int64_t place = memory->place[thread];
    uint32_t other = thread + 1;
    while (other < TSR_CUDA_THREADS && memory->place[other] != place)
        other++;
    int64_t next = -1;
    if (other < TSR_CUDA_THREADS) {
        memory->is_later[other] = true;
        next = tsr_cuda_entry_at(given, line, at + other - thread);
    } else if (given.last) {
        next = given.last[line * given.places + place];
    }
    given.entries[tsr_cuda_entry_at(given, line, at)].next = (int32_t)next;
    if (next >= 0)
        given.entries[next].is_later = 1;
}

/** Links the entries of a chunk. Chunks come from the last to the first; a block's threads
 * synchronise between the phases, 0 to 2, and between chunks. */
TSR_BOTH void tsr_cuda_link_chunk(const tsr_cuda_links &given, uint32_t line, uint32_t chunk, uint32_t thread,
                                  int phase, tsr_cuda_link_memory *memory)
{
    const uint32_t at = chunk * TSR_CUDA_THREADS + thread;
    if (phase == 0) {
        memory->place[thread] = at < given.length ? given.entries[tsr_cuda_entry_at(given, line, at)].place : -1;
        memory->is_later[thread] = false;
    } else if (memory->place[thread] >= 0 && phase == 1) {
        tsr_cuda_link_entry(given, line, at, thread, memory);
    } else if (memory->place[thread] >= 0 && given.last && !memory->is_later[thread]) {
        given.last[line * given.places + memory->place[thread]] = (int32_t)tsr_cuda_entry_at(given, line, at);
    }
}

/** Where an element of a walk lies: bytes in the table, with its place, and in the other tensor. */
struct tsr_cuda_slice_place {
    int64_t entry, table, other;
};

TSR_BOTH tsr_cuda_slice_place tsr_cuda_locate_slice(const tsr_cuda_slices &given, uint32_t index)
{
    tsr_cuda_slice_place at = {given.first, 0, 0};
    for (int d = 0; d < given.walk.ndim; d++) {
        const uint32_t rest = d + 1 < given.walk.ndim ? tsr_cuda_divide(given.walk.by[d], index) : 0;
        const int64_t coordinate = index - rest * given.walk.by[d].value;
        at.entry += coordinate * given.entry_strides[d];
        at.table += coordinate * given.table_strides[d];
        at.other += coordinate * given.other_strides[d];
        index = rest;
    }
    at.table += given.entries[at.entry].place * given.step;
    return at;
}

template <typename unit>
TSR_BOTH void tsr_cuda_read_unit(const tsr_cuda_slices &given, const tsr_cuda_slice_place &at, bool is_here)
{
    unit value;
    if (is_here)
        value = *tsr_cuda_at<unit>(given.table + at.table);
    else
        memcpy(&value, given.nothing.bytes, sizeof value);
    *tsr_cuda_at<unit>(given.other + at.other) = value;
}

/** Reads one unit. */
TSR_BOTH void tsr_cuda_read_slice(const tsr_cuda_slices &given, uint32_t index)
{
    if (index >= given.walk.count)
        return;
    const tsr_cuda_slice_place at = tsr_cuda_locate_slice(given, index);
    const bool is_here = given.entries[at.entry].place >= 0;
    switch (given.log_width) {
    case 0:
        return tsr_cuda_read_unit<uint8_t>(given, at, is_here);
    case 1:
        return tsr_cuda_read_unit<uint16_t>(given, at, is_here);
    case 2:
        return tsr_cuda_read_unit<uint32_t>(given, at, is_here);
    case 3:
        return tsr_cuda_read_unit<uint64_t>(given, at, is_here);
    default:
        return tsr_cuda_read_unit<tsr_cuda_quad>(given, at, is_here);
    }
}

/** Adds, to an element of the table, those that belong to all ids of its place, if this one is of
 * the first of them. */
template <typename T> TSR_BOTH void tsr_cuda_add_slice(const tsr_cuda_slices &given, uint32_t index)
{
    if (index >= given.walk.count)
        return;
    const tsr_cuda_slice_place at = tsr_cuda_locate_slice(given, index);
    if (given.entries[at.entry].place < 0 || given.entries[at.entry].is_later)
        return;
    const unsigned char *const from =
        given.other + at.other - tsr_cuda_walked(given.chain, given.chain_strides, (uint32_t)at.entry);
    T sum = tsr_cuda_read<T>(given.table + at.table, given.storage);
    for (int64_t entry = at.entry; entry >= 0; entry = given.entries[entry].next) {
        const int64_t apart = tsr_cuda_walked(given.chain, given.chain_strides, (uint32_t)entry);
        const T term = tsr_cuda_read<T>(from + apart, given.storage);
        sum = tsr_cuda_arithmetic<T>::value(TSR_CUDA_ADD, sum, term, 0, 0, 0);
    }
    tsr_cuda_write<T>(given.table + at.table, given.storage, sum);
}

/** X(name, type) for each type in which slices are added. */
#define TSR_CUDA_SUM_TYPES(X) X(f64, double) X(f32, float) X(i64, int64_t) X(i32, int32_t)

#endif
