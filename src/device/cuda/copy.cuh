/** The bodies of the copy and fill kernels, for one thread of a block. */
#ifndef TSR_DEVICE_CUDA_COPY_CUH
#define TSR_DEVICE_CUDA_COPY_CUH

#include "device/cuda/index.cuh"

/** Room for one tile of the widest units. The extra column keeps the threads of a warp in different
 * banks when they read a column. */
struct tsr_cuda_tile {
    alignas(16) unsigned char bytes[TSR_CUDA_TILE * (TSR_CUDA_TILE + 1) * 16];
};

#define TSR_CUDA_UNITS_PER_BLOCK (TSR_CUDA_THREADS * TSR_CUDA_UNROLL)
#define TSR_CUDA_ROWS_AT_ONCE    (TSR_CUDA_THREADS / TSR_CUDA_TILE)
#define TSR_CUDA_ROWS_OF_THREAD  (TSR_CUDA_TILE / TSR_CUDA_ROWS_AT_ONCE)

template <typename unit>
TSR_BOTH void tsr_cuda_copy_units(const tsr_cuda_box &box, const tsr_cuda_dim *dims, uint32_t block, uint32_t thread)
{
    const uint32_t first = block * TSR_CUDA_UNITS_PER_BLOCK + thread;
    unit value[TSR_CUDA_UNROLL];
    unsigned char *to[TSR_CUDA_UNROLL];
#pragma unroll
    for (int k = 0; k < TSR_CUDA_UNROLL; k++) {
        const uint32_t index = first + (uint32_t)k * TSR_CUDA_THREADS;
        if (index < box.units) {
            const tsr_cuda_place place = tsr_cuda_locate(dims, box.ndim, index);
            to[k] = box.dst + place.dst;
            value[k] = *tsr_cuda_at<unit>(box.src + place.src);
        }
    }
#pragma unroll
    for (int k = 0; k < TSR_CUDA_UNROLL; k++)
        if (first + (uint32_t)k * TSR_CUDA_THREADS < box.units)
            *tsr_cuda_at<unit>(to[k]) = value[k];
}

/** The place of a tile: its first coordinates in its plane, and the plane's byte offsets. */
struct tsr_cuda_tile_place {
    uint32_t inner, outer;
    tsr_cuda_place plane;
};

TSR_BOTH tsr_cuda_tile_place tsr_cuda_locate_tile(const tsr_cuda_box &box, const tsr_cuda_dim *dims, uint32_t tile)
{
    const uint32_t row = tsr_cuda_divide(dims[0].by, tile), plane = tsr_cuda_divide(dims[1].by, row);
    return {(tile - row * dims[0].by.value) * TSR_CUDA_TILE, (row - plane * dims[1].by.value) * TSR_CUDA_TILE,
            tsr_cuda_locate(dims + 2, box.ndim - 2, plane)};
}

/** Reads a tile along the source's contiguous dim, so that neighbouring threads read neighbouring
 * units. A thread issues all its reads before it stores the first value. */
template <typename unit>
TSR_BOTH void tsr_cuda_load_tile(const tsr_cuda_box &box, const tsr_cuda_dim *dims, uint32_t block, uint32_t thread,
                                 tsr_cuda_tile *tile)
{
    const tsr_cuda_tile_place place = tsr_cuda_locate_tile(box, dims, block);
    const uint32_t first = thread / TSR_CUDA_TILE, column = thread % TSR_CUDA_TILE, outer = place.outer + column;
    unit *const kept = reinterpret_cast<unit *>(tile->bytes);
    unit value[TSR_CUDA_ROWS_OF_THREAD];
    if (outer >= dims[1].size)
        return;
#pragma unroll
    for (int k = 0; k < TSR_CUDA_ROWS_OF_THREAD; k++) {
        const uint32_t inner = place.inner + first + (uint32_t)k * TSR_CUDA_ROWS_AT_ONCE;
        if (inner < dims[0].size)
            value[k] = *tsr_cuda_at<unit>(box.src + place.plane.src + (int64_t)inner * dims[0].src +
                                          (int64_t)outer * dims[1].src);
    }
#pragma unroll
    for (int k = 0; k < TSR_CUDA_ROWS_OF_THREAD; k++) {
        const uint32_t row = first + (uint32_t)k * TSR_CUDA_ROWS_AT_ONCE;
        if (place.inner + row < dims[0].size)
            kept[row * (TSR_CUDA_TILE + 1) + column] = value[k];
    }
}

/** Writes a tile along the destination's contiguous dim. */
template <typename unit>
TSR_BOTH void tsr_cuda_store_tile(const tsr_cuda_box &box, const tsr_cuda_dim *dims, uint32_t block, uint32_t thread,
                                  const tsr_cuda_tile *tile)
{
    const tsr_cuda_tile_place place = tsr_cuda_locate_tile(box, dims, block);
    const uint32_t column = thread % TSR_CUDA_TILE, inner = place.inner + column;
    const unit *const kept = reinterpret_cast<const unit *>(tile->bytes);
    for (uint32_t row = thread / TSR_CUDA_TILE; row < TSR_CUDA_TILE; row += TSR_CUDA_ROWS_AT_ONCE) {
        const uint32_t outer = place.outer + row;
        if (inner < dims[0].size && outer < dims[1].size)
            *tsr_cuda_at<unit>(box.dst + place.plane.dst + (int64_t)inner * dims[0].dst +
                               (int64_t)outer * dims[1].dst) = kept[column * (TSR_CUDA_TILE + 1) + row];
    }
}

/** The work of a block before its threads synchronise, and after. */
enum tsr_cuda_phase { TSR_CUDA_BEFORE, TSR_CUDA_AFTER };

template <typename unit>
TSR_BOTH void tsr_cuda_copy_box(const tsr_cuda_box &box, const tsr_cuda_dim *dims, uint32_t block, uint32_t thread,
                                tsr_cuda_phase phase, tsr_cuda_tile *tile)
{
    if (!box.tiled && phase == TSR_CUDA_BEFORE)
        tsr_cuda_copy_units<unit>(box, dims, block, thread);
    else if (box.tiled && phase == TSR_CUDA_BEFORE)
        tsr_cuda_load_tile<unit>(box, dims, block, thread, tile);
    else if (box.tiled)
        tsr_cuda_store_tile<unit>(box, dims, block, thread, tile);
}

/** Copies one block's part of a batch; a block works on one box. */
template <typename batch>
TSR_BOTH void tsr_cuda_copy_batch(const batch &given, uint32_t block, uint32_t thread, tsr_cuda_phase phase,
                                  tsr_cuda_tile *tile)
{
    const tsr_cuda_box &box = given.box[tsr_cuda_find_box(given, block)];
    const tsr_cuda_dim *const dims = given.dim + box.first_dim;
    block -= box.first_block;
    switch (box.log_width) {
    case 0:
        return tsr_cuda_copy_box<uint8_t>(box, dims, block, thread, phase, tile);
    case 1:
        return tsr_cuda_copy_box<uint16_t>(box, dims, block, thread, phase, tile);
    case 2:
        return tsr_cuda_copy_box<uint32_t>(box, dims, block, thread, phase, tile);
    case 3:
        return tsr_cuda_copy_box<uint64_t>(box, dims, block, thread, phase, tile);
    default:
        return tsr_cuda_copy_box<tsr_cuda_quad>(box, dims, block, thread, phase, tile);
    }
}

/** Fills one thread's units. Dim 0 is the run, which starts with the pattern's first byte;
 * sizeof(unit) divides the pattern's 16 bytes. */
template <typename unit>
TSR_BOTH void tsr_cuda_fill_units(const tsr_cuda_box &box, const tsr_cuda_dim *dims, const tsr_cuda_pattern &pattern,
                                  uint32_t block, uint32_t thread)
{
    for (uint32_t k = 0; k < TSR_CUDA_UNROLL; k++) {
        const uint32_t index = block * TSR_CUDA_UNITS_PER_BLOCK + k * TSR_CUDA_THREADS + thread;
        if (index >= box.units)
            return;
        const uint32_t in_run = index - tsr_cuda_divide(dims[0].by, index) * dims[0].by.value;
        unit value;
        memcpy(&value, pattern.bytes + in_run * sizeof value % sizeof pattern.bytes, sizeof value);
        *tsr_cuda_at<unit>(box.dst + tsr_cuda_locate(dims, box.ndim, index).dst) = value;
    }
}

template <typename batch>
TSR_BOTH void tsr_cuda_fill_batch(const batch &given, const tsr_cuda_pattern &pattern, uint32_t block, uint32_t thread)
{
    const tsr_cuda_box &box = given.box[tsr_cuda_find_box(given, block)];
    const tsr_cuda_dim *const dims = given.dim + box.first_dim;
    block -= box.first_block;
    switch (box.log_width) {
    case 0:
        return tsr_cuda_fill_units<uint8_t>(box, dims, pattern, block, thread);
    case 1:
        return tsr_cuda_fill_units<uint16_t>(box, dims, pattern, block, thread);
    case 2:
        return tsr_cuda_fill_units<uint32_t>(box, dims, pattern, block, thread);
    case 3:
        return tsr_cuda_fill_units<uint64_t>(box, dims, pattern, block, thread);
    default:
        return tsr_cuda_fill_units<tsr_cuda_quad>(box, dims, pattern, block, thread);
    }
}

#endif
