/** Internals of the machine. Everything is under the lock, except the memory accesses of an
 * operation when it runs. */
#ifndef TESTS_ASYNC_MACHINE_H
#define TESTS_ASYNC_MACHINE_H

#include "async_device.h"

#include <pthread.h>

enum { ASYNC_STREAMS = 32, ASYNC_DEVICES = 8 };

#define ASYNC_BYTES ((size_t)16 << 20)

/** A vector clock: for each stream, the number of its operations that come before. */
typedef struct async_clock {
    uint32_t at[ASYNC_STREAMS];
} async_clock;

/** An operation, with its own copy of arguments; pointers in these are to the mapping that
 * operations access. */
typedef struct async_op {
    struct async_op *next;
    void (*run)(async_machine *machine, const struct async_op *op); /**< NULL: the operation only waits */
    int awaited;                                                    /**< the stream to wait for; see `until` */
    uint64_t until; /**< the number of operations of `awaited` that must be done */
    max_align_t arguments[];
} async_op;

typedef struct async_stream {
    bool live;
    int number, index;
    async_op *first, **last;
    uint64_t enqueued, completed;
    uint64_t priority, capture;
    async_clock clock;
    char trouble[512]; /**< what an op found in its data, until it is told */
} async_stream;

typedef struct async_event {
    bool recorded;
    int stream;
    uint64_t until, capture;
    async_clock clock;
} async_event;

/** An allocated block, in a list in ascending order. */
typedef struct async_block {
    size_t offset, bytes;
    int owner;
    struct async_block *next;
} async_block;

/** For each byte of memory, its last write and the reads since. */
typedef struct async_shadow {
    uint32_t *written;
    uint8_t *writer;
    async_clock *read;
} async_shadow;

struct async_machine {
    async_options options;
    const tsr_device_table *host;
    void *host_self;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    pthread_t worker;
    bool closing;
    int waiting; /**< number of threads that wait for streams */
    uint64_t random;
    async_stream streams[ASYNC_STREAMS]; /**< the first ones are the devices' default streams */
    async_clock done;                    /**< the operations that the host has waited for */
    char *shown, *real; /**< two mappings of the memory: for pointers, and for the accesses of operations */
    async_block *blocks;
    async_shadow shadow;
    int64_t counts[ASYNC_CALLS], failing[ASYNC_CALLS];
    unsigned left_out;
    const char *lacks; /**< a row without a kernel; NULL: none */
    char fault[512], told[512];
};

/** Records a fault, if it is the first. */
void async_complain(async_machine *machine, const char *format, ...) __attribute__((format(printf, 2, 3)));

uint64_t async_random(async_machine *machine);

/** Returns what an op on the stream found in its data, once: TSR_ERROR_STATE. */
tsr_status async_take_trouble(async_stream *stream);

/** Takes the lock, which the caller releases also after a failure, and counts a call; fails if
 * async_fail() says so. */
tsr_status async_enter(async_machine *machine, async_call call);

/** The stream of a handle on a device. */
async_stream *async_find(async_machine *machine, int index, tsr_stream stream);

/** Allocates an operation with `bytes` for arguments; NULL if there is no memory. */
async_op *async_op_create(size_t bytes, void (*run)(async_machine *machine, const async_op *op));

/** The arguments of an operation. */
static inline void *async_arguments(const async_op *op)
{
    return (void *)op->arguments;
}

/** Advances the stream's clock for a new operation, past everything that the host has waited
 * for. */
void async_tick(async_machine *machine, async_stream *stream);
void async_enqueue(async_machine *machine, async_stream *stream, async_op *op);

/** Waits until a stream (NULL: every stream) has done its work. */
void async_drain(async_machine *machine, async_stream *stream);

void *async_work(void *machine);

/* Memory. */
bool async_memory_create(async_machine *machine);
void async_memory_destroy(async_machine *machine);
void *async_block_create(async_machine *machine, int owner, size_t bytes);
void async_block_destroy(async_machine *machine, const void *memory);

/** A box of memory that an operation touches. */
typedef struct async_box {
    const void *base;
    int ndim;
    const int64_t *shape, *strides;
    size_t element_bytes;
    bool write;
    const char *who;
} async_box;

/** Checks the access to a box for races, and returns its address for operations; NULL, with a
 * fault, if the access is not allowed. An empty box may have any address. */
void *async_touch(async_machine *machine, async_stream *stream, const async_box *box);

/** async_touch() for contiguous bytes. */
void *async_touch_bytes(async_machine *machine, async_stream *stream, const void *memory, size_t bytes, bool write,
                        const char *who);

/** Computes a product, whose pointers are addresses for operations. */
void async_multiply(const async_machine *machine, const tsr_gemm *gemm);

#endif
