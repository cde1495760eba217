/* The kernels' bodies over a grid: every thread of a block up to the barrier, then every thread
 * after it. */
#include "device/cuda/convert.cuh"
#include "device/cuda/copy.cuh"
#include "device/cuda/ops/indexing.cuh"
#include "device/cuda/ops/rows.cuh"
#include "device/cuda/ops/updates.cuh"
#include "device/cuda/reduce.cuh"
#include "emulated_gpu.h"

extern "C" {
#include "device/cuda/batch.h"
}

namespace
{
template <typename batch> void copy(unsigned blocks, void **arguments)
{
    const batch &given = *static_cast<const batch *>(arguments[0]);
    tsr_cuda_tile tile;
    for (unsigned block = 0; block < blocks; block++)
        for (int phase = TSR_CUDA_BEFORE; phase <= TSR_CUDA_AFTER; phase++)
            for (unsigned thread = 0; thread < TSR_CUDA_THREADS; thread++)
                tsr_cuda_copy_batch(given, block, thread, static_cast<tsr_cuda_phase>(phase), &tile);
}

template <typename batch> void fill(unsigned blocks, void **arguments)
{
    const batch &given = *static_cast<const batch *>(arguments[0]);
    const tsr_cuda_pattern &pattern = *static_cast<const tsr_cuda_pattern *>(arguments[1]);
    for (unsigned block = 0; block < blocks; block++)
        for (unsigned thread = 0; thread < TSR_CUDA_THREADS; thread++)
            tsr_cuda_fill_batch(given, pattern, block, thread);
}

template <typename number, int count> void reduce(unsigned blocks, void **arguments)
{
    for (unsigned i = 0; i < blocks * TSR_CUDA_THREADS; i++)
        tsr_cuda_reduce_unit<number, count>(*static_cast<const tsr_cuda_reduce *>(arguments[0]), i);
}

template <typename source> void convert(unsigned blocks, void **arguments)
{
    for (unsigned i = 0; i < blocks * TSR_CUDA_THREADS; i++)
        tsr_cuda_convert_from<source>(*static_cast<const tsr_cuda_convert *>(arguments[0]), i);
}

template <typename type> void elements(unsigned blocks, void **arguments)
{
    for (unsigned i = 0; i < blocks * TSR_CUDA_THREADS; i++)
        tsr_cuda_element<type>(*static_cast<const tsr_cuda_elements *>(arguments[0]), i);
}

template <typename type> void update(unsigned blocks, void **arguments)
{
    for (unsigned i = 0; i < blocks * TSR_CUDA_THREADS; i++)
        tsr_cuda_update_element<type>(*static_cast<const tsr_cuda_update *>(arguments[0]), i);
}

void norm_rows(unsigned blocks, void **arguments)
{
    tsr_cuda_row_memory memory;
    for (unsigned block = 0; block < blocks; block++)
        for (int phase = TSR_CUDA_MEASURE; phase < TSR_CUDA_ROW_PHASES; phase++)
            for (unsigned thread = 0; thread < TSR_CUDA_THREADS; thread++)
                tsr_cuda_norm_row(*static_cast<const tsr_cuda_norm *>(arguments[0]), block, thread, phase, &memory);
}

void norm_sums(unsigned blocks, void **arguments)
{
    tsr_cuda_sum_memory memory;
    for (unsigned block = 0; block < blocks; block++)
        for (int phase = 0; phase < 2; phase++)
            for (unsigned thread = 0; thread < TSR_CUDA_THREADS; thread++)
                tsr_cuda_sum_rows(*static_cast<const tsr_cuda_norm *>(arguments[0]), block, thread, phase, &memory);
}

void find_ids(unsigned blocks, void **arguments)
{
    tsr_cuda_id_memory memory;
    for (unsigned block = 0; block < blocks; block++)
        for (int phase = 0; phase < 2; phase++)
            for (unsigned thread = 0; thread < TSR_CUDA_THREADS; thread++)
                tsr_cuda_find_ids_in(*static_cast<const tsr_cuda_ids *>(arguments[0]), block, thread, phase, &memory);
}

void report_id(unsigned, void **arguments)
{
    tsr_cuda_id_memory memory;
    for (int phase = 0; phase < 2; phase++)
        for (unsigned thread = 0; thread < TSR_CUDA_THREADS; thread++)
            tsr_cuda_report_id_in(*static_cast<const tsr_cuda_report *>(arguments[0]), thread, phase, &memory);
}

void link_ids(unsigned blocks, void **arguments)
{
    const tsr_cuda_links &given = *static_cast<const tsr_cuda_links *>(arguments[0]);
    tsr_cuda_link_memory memory;
    for (unsigned block = 0; block < blocks; block++)
        for (unsigned chunk = tsr_cuda_chunks(given); chunk-- > 0;)
            for (int phase = 0; phase < 3; phase++)
                for (unsigned thread = 0; thread < TSR_CUDA_THREADS; thread++)
                    tsr_cuda_link_chunk(given, block, chunk, thread, phase, &memory);
}

void read_slices(unsigned blocks, void **arguments)
{
    for (unsigned i = 0; i < blocks * TSR_CUDA_THREADS; i++)
        tsr_cuda_read_slice(*static_cast<const tsr_cuda_slices *>(arguments[0]), i);
}

template <typename type> void add_slices(unsigned blocks, void **arguments)
{
    for (unsigned i = 0; i < blocks * TSR_CUDA_THREADS; i++)
        tsr_cuda_add_slice<type>(*static_cast<const tsr_cuda_slices *>(arguments[0]), i);
}

void copy_rows(unsigned blocks, void **arguments)
{
    for (unsigned i = 0; i < blocks * TSR_CUDA_THREADS; i++)
        tsr_cuda_copy_row(*static_cast<const tsr_cuda_rows *>(arguments[0]), i);
}

template <typename number> void combine_rows(unsigned blocks, void **arguments)
{
    for (unsigned i = 0; i < blocks * TSR_CUDA_THREADS; i++)
        tsr_cuda_combine_row<number>(*static_cast<const tsr_cuda_rows *>(arguments[0]), i);
}

struct row {
    const char *name;
    void (*run)(unsigned blocks, void **arguments);
    size_t bytes[2]; /* of the arguments */
};

#define CONVERT(source) {"tsr_cuda_convert_" #source, convert<tsr_cuda_##source>, {sizeof(tsr_cuda_convert), 0}},
#define REDUCE(number)                                                                                                 \
    {"tsr_cuda_reduce_" #number "_wide",                                                                               \
     reduce<tsr_cuda_##number, tsr_cuda_per_quad<tsr_cuda_##number>::count>,                                           \
     {sizeof(tsr_cuda_reduce), 0}},                                                                                    \
        {"tsr_cuda_reduce_" #number "_single", reduce<tsr_cuda_##number, 1>, {sizeof(tsr_cuda_reduce), 0}},

#define COMBINE(number) {"tsr_cuda_combine_rows_" #number, combine_rows<tsr_cuda_##number>, {sizeof(tsr_cuda_rows), 0}},

#define ELEMENTS(name, type) {"tsr_cuda_elements_" #name, elements<type>, {sizeof(tsr_cuda_elements), 0}},

#define UPDATE(name, type) {"tsr_cuda_update_" #name, update<type>, {sizeof(tsr_cuda_update), 0}},

#define SUMS(name, type) {"tsr_cuda_add_slices_" #name, add_slices<type>, {sizeof(tsr_cuda_slices), 0}},

const row rows[] = {
    {"tsr_cuda_copy_small", copy<tsr_cuda_small_batch>, {sizeof(tsr_cuda_small_batch), 0}},
    {"tsr_cuda_copy_large", copy<tsr_cuda_large_batch>, {sizeof(tsr_cuda_large_batch), 0}},
    {"tsr_cuda_fill_small", fill<tsr_cuda_small_batch>, {sizeof(tsr_cuda_small_batch), sizeof(tsr_cuda_pattern)}},
    {"tsr_cuda_fill_large", fill<tsr_cuda_large_batch>, {sizeof(tsr_cuda_large_batch), sizeof(tsr_cuda_pattern)}},
    TSR_CUDA_FLOAT_NUMBERS(CONVERT) TSR_CUDA_FLOAT_NUMBERS(REDUCE) TSR_CUDA_OTHER_NUMBERS(REDUCE)
        TSR_CUDA_ELEMENT_TYPES(ELEMENTS)
            TSR_CUDA_UPDATE_TYPES(UPDATE){"tsr_cuda_norm_rows", norm_rows, {sizeof(tsr_cuda_norm), 0}},
    {"tsr_cuda_norm_sums", norm_sums, {sizeof(tsr_cuda_norm), 0}},
    {"tsr_cuda_find_ids", find_ids, {sizeof(tsr_cuda_ids), 0}},
    {"tsr_cuda_report_id", report_id, {sizeof(tsr_cuda_report), 0}},
    {"tsr_cuda_link_ids", link_ids, {sizeof(tsr_cuda_links), 0}},
    TSR_CUDA_FLOAT_NUMBERS(COMBINE)
        TSR_CUDA_OTHER_NUMBERS(COMBINE){"tsr_cuda_copy_rows", copy_rows, {sizeof(tsr_cuda_rows), 0}},
    TSR_CUDA_SUM_TYPES(SUMS){"tsr_cuda_read_slices", read_slices, {sizeof(tsr_cuda_slices), 0}}};
} // namespace

int emulated_kernel(const char *name, unsigned blocks, void **arguments)
{
    for (const row &r : rows)
        if (strcmp(r.name, name) == 0) {
            if (arguments)
                r.run(blocks, arguments);
            return 1;
        }
    return 0;
}

size_t emulated_argument_bytes(const char *name, int number)
{
    for (const row &r : rows)
        if (strcmp(r.name, name) == 0)
            return r.bytes[number];
    return 0;
}

int emulated_division_is_exact(unsigned value, unsigned index)
{
    return tsr_cuda_divide(tsr_cuda_make_divisor(value), index) == index / value;
}
