/* Compiled once for each set of instructions, whose name TSR_KERNELS is. */
#include "tensor/experts/expert_kernels.h"

#include "device/host/minifloat.h"
#include "device/host/stream.h"

#define KERNELS_(kernels) tsr_expert_kernels_##kernels
#define KERNELS(kernels)  KERNELS_(kernels)

#define INLINED __attribute__((always_inline))

/* Elements that are summed at a time, so that accumulators stay in registers. */
enum { BLOCK = 64 };

/* Accumulators of a sum along a row: the same for all instruction sets, so that all give the same
 * bits. */
enum { LANES = 16 };

/* Elements of a row may begin at any byte. */
#define ELEMENT(name, native) typedef native __attribute__((may_alias, aligned(1))) name;

ELEMENT(of_f64, double)
ELEMENT(of_f32, float)
ELEMENT(of_u16, uint16_t)
ELEMENT(of_u8, uint8_t)

static inline INLINED double load_f64(double value)
{
    return value;
}

static inline INLINED float load_f32(float value)
{
    return value;
}

static inline INLINED float load_bf16(uint16_t code)
{
    return f32_of_bits((uint32_t)code << 16);
}

static inline INLINED uint16_t store_bf16(float value)
{
    const uint32_t bits = bits_of_f32(value), rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
    return (uint16_t)(value != value ? F32_NAN >> 16 : rounded);
}

/* Writes a block of accumulators, and streams it where it is whole and `stream` says so. */
#define DEFINE_WRITE(name, storage, number, store)                                                                     \
    static inline INLINED void write_##name(storage *out, const number *sums, int64_t count, bool stream)              \
    {                                                                                                                  \
        storage line[BLOCK];                                                                                           \
        storage *const to = stream ? line : out;                                                                       \
        for (int64_t i = 0; i < count; i++)                                                                            \
            to[i] = store(sums[i]);                                                                                    \
        for (size_t at = 0; stream && at < sizeof line; at += STREAM_LINE)                                             \
            stream_line((char *)out + at, (const char *)line + at);                                                    \
    }

/* The sum of a slot's parts, of `count` elements from `at` on. */
#define DEFINE_SUM_PARTS(name, storage, number, load)                                                                  \
    static inline INLINED void sum_parts_##name(number *sums, const void *const *rows, int64_t parts, int64_t at,      \
                                                int64_t count)                                                         \
    {                                                                                                                  \
        const storage *const first = (const storage *)rows[0] + at;                                                    \
        for (int64_t i = 0; i < count; i++)                                                                            \
            sums[i] = load(first[i]);                                                                                  \
        for (int64_t part = 1; part < parts; part++) {                                                                 \
            const storage *const row = (const storage *)rows[part] + at;                                               \
            for (int64_t i = 0; i < count; i++)                                                                        \
                sums[i] += load(row[i]);                                                                               \
        }                                                                                                              \
    }

/* Sums of BLOCK elements, in vectors of a line, of `lanes` numbers, that stay in registers. */
#define DEFINE_SUM(name, storage, number, lanes, load)                                                                 \
    typedef number vector_##name __attribute__((vector_size(STREAM_LINE)));                                            \
    static inline INLINED void load_vector_##name(vector_##name *out, const storage *at)                               \
    {                                                                                                                  \
        number elements[lanes];                                                                                        \
        for (int i = 0; i < lanes; i++)                                                                                \
            elements[i] = load(at[i]);                                                                                 \
        memcpy(out, elements, sizeof elements);                                                                        \
    }                                                                                                                  \
    static inline INLINED void load_slot_##name(vector_##name *out, const void *const *rows, int64_t parts,            \
                                                int64_t at)                                                            \
    {                                                                                                                  \
        load_vector_##name(out, (const storage *)rows[0] + at);                                                        \
        for (int64_t part = 1; part < parts; part++) {                                                                 \
            vector_##name more;                                                                                        \
            load_vector_##name(&more, (const storage *)rows[part] + at);                                               \
            *out += more;                                                                                              \
        }                                                                                                              \
    }                                                                                                                  \
    static inline INLINED void sum_block_##name(storage *out, const tsr_expert_terms *t, int64_t at, bool stream)      \
    {                                                                                                                  \
        vector_##name sums[BLOCK / lanes] = {{0}}, slot;                                                               \
        number elements[BLOCK];                                                                                        \
        for (int64_t s = 0; s < t->slots; s++) {                                                                       \
            const number weight = (number)t->weights[s];                                                               \
            for (int v = 0; v < BLOCK / lanes; v++) {                                                                  \
                load_slot_##name(&slot, t->rows + s * t->parts, t->parts, at + v * lanes);                             \
                sums[v] = s == 0 ? weight * slot : sums[v] + weight * slot;                                            \
            }                                                                                                          \
        }                                                                                                              \
        memcpy(elements, sums, sizeof elements);                                                                       \
        write_##name(out + at, elements, BLOCK, stream);                                                               \
    }                                                                                                                  \
    static inline INLINED void sum_rest_##name(storage *out, const tsr_expert_terms *t, int64_t at, int64_t count)     \
    {                                                                                                                  \
        number sums[BLOCK] = {0}, slot[BLOCK];                                                                         \
        for (int64_t s = 0; s < t->slots; s++) {                                                                       \
            const number weight = (number)t->weights[s];                                                               \
            sum_parts_##name(slot, t->rows + s * t->parts, t->parts, at, count);                                       \
            for (int64_t i = 0; i < count; i++)                                                                        \
                sums[i] = s == 0 ? weight * slot[i] : sums[i] + weight * slot[i];                                      \
        }                                                                                                              \
        write_##name(out + at, sums, count, false);                                                                    \
    }                                                                                                                  \
    static void sum_##name(void *out, const tsr_expert_terms *t, int64_t count, bool stream)                           \
    {                                                                                                                  \
        storage *const row = out;                                                                                      \
        const size_t head = stream_head(out);                                                                          \
        int64_t at = 0;                                                                                                \
        stream = stream && head % sizeof *row == 0 && (int64_t)(head / sizeof *row) + BLOCK <= count;                  \
        if (stream) {                                                                                                  \
            at = (int64_t)(head / sizeof *row);                                                                        \
            sum_rest_##name(row, t, 0, at);                                                                            \
            for (; at + BLOCK <= count; at += BLOCK)                                                                   \
                sum_block_##name(row, t, at, true);                                                                    \
        }                                                                                                              \
        for (; at + BLOCK <= count; at += BLOCK)                                                                       \
            sum_block_##name(row, t, at, false);                                                                       \
        if (at < count)                                                                                                \
            sum_rest_##name(row, t, at, count - at);                                                                   \
    }

#define DEFINE_DOT(name, storage, number, load)                                                                        \
    static inline INLINED void dot_block_##name(number *sums, const storage *a, const void *const *rows,               \
                                                int64_t parts, int64_t at, int64_t count)                              \
    {                                                                                                                  \
        number slot[LANES];                                                                                            \
        sum_parts_##name(slot, rows, parts, at, count);                                                                \
        for (int64_t i = 0; i < count; i++)                                                                            \
            sums[i] += load(a[at + i]) * slot[i];                                                                      \
    }                                                                                                                  \
    static double dot_##name(const void *a, const void *const *rows, int64_t parts, int64_t count)                     \
    {                                                                                                                  \
        number sums[LANES] = {0};                                                                                      \
        int64_t at = 0;                                                                                                \
        for (; at + LANES <= count; at += LANES)                                                                       \
            dot_block_##name(sums, a, rows, parts, at, LANES);                                                         \
        dot_block_##name(sums, a, rows, parts, at, count - at);                                                        \
        for (int half = LANES / 2; half > 0; half /= 2)                                                                \
            for (int i = 0; i < half; i++)                                                                             \
                sums[i] += sums[half + i];                                                                             \
        return sums[0];                                                                                                \
    }

#define DEFINE(name, storage, number, lanes, load, store)                                                              \
    DEFINE_WRITE(name, storage, number, store)                                                                         \
    DEFINE_SUM_PARTS(name, storage, number, load)                                                                      \
    DEFINE_SUM(name, storage, number, lanes, load)                                                                     \
    DEFINE_DOT(name, storage, number, load)                                                                            \
    static double load_one_##name(const void *element)                                                                 \
    {                                                                                                                  \
        return load(*(const storage *)element);                                                                        \
    }                                                                                                                  \
    static void store_one_##name(void *element, double value)                                                          \
    {                                                                                                                  \
        *(storage *)element = (storage)store((number)value);                                                           \
    }

DEFINE(f64, of_f64, double, 8, load_f64, canonical_f64)
DEFINE(f32, of_f32, float, 16, load_f32, canonical_f32)
DEFINE(bf16, of_u16, float, 16, load_bf16, store_bf16)
DEFINE(f16, of_u16, float, 16, f16_widen, (uint16_t)f16_narrow)
DEFINE(f8e4m3, of_u8, float, 16, f8e4m3_widen, (uint8_t)f8e4m3_narrow)
DEFINE(f8e5m2, of_u8, float, 16, f8e5m2_widen, (uint8_t)f8e5m2_narrow)

static void copy(void *to, const void *from, size_t bytes, bool stream)
{
    if (stream && bytes >= STREAM_LINE)
        stream_copy(to, from, bytes);
    else
        memcpy(to, from, bytes);
}

static void fence(void)
{
    stream_fence();
}

#define LOOPS(name)                                                                                                    \
    {                                                                                                                  \
        sum_##name, dot_##name, load_one_##name, store_one_##name                                                      \
    }

const tsr_expert_kernels KERNELS(TSR_KERNELS) = {.loops = {[TSR_F64] = LOOPS(f64),
                                                           [TSR_F32] = LOOPS(f32),
                                                           [TSR_BF16] = LOOPS(bf16),
                                                           [TSR_F16] = LOOPS(f16),
                                                           [TSR_F8E4M3] = LOOPS(f8e4m3),
                                                           [TSR_F8E5M2] = LOOPS(f8e5m2)},
                                                 .copy = copy,
                                                 .fence = fence};
