/** The machine as its files see it. All of it is under the lock, but for what an operation does to memory when it runs. */
#ifndef TESTS_ASYNC_MACHINE_H
#define TESTS_ASYNC_MACHINE_H

#include "async_device.h"
#include <pthread.h>

enum { ASYNC_STREAMS = 32, ASYNC_DEVICES = 8 };

#define ASYNC_BYTES ((size_t)16 << 20)

/** For each stream, how many of its operations have come before. */
typedef struct async_clock {
    uint32_t at[ASYNC_STREAMS];
} async_clock;

/** An operation does its work with arguments of its own, whose pointers are to the memory that operations reach. */
typedef struct async_op {
    struct async_op *next;
    void (*run)(async_machine *machine, const struct async_op *op); /**< NULL: it only waits */
    int awaited;                                                    /**< a stream, */
    uint64_t until;                                                 /**< and how many operations of it have to be done */
    max_align_t arguments[];
} async_op;

typedef struct async_stream {
    bool live;
    int number, index;
    async_op *first, **last;
    uint64_t enqueued, completed;
    uint64_t priority, capture;
    async_clock clock;
} async_stream;

typedef struct async_event {
    bool recorded;
    int stream;
    uint64_t until, capture;
    async_clock clock;
} async_event;

/** Memory that is allocated, ascending. */
typedef struct async_block {
    size_t offset, bytes;
    int owner;
    struct async_block *next;
} async_block;

/** For each byte of memory who wrote it last and who has read it since when. */
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
    int waiting; /**< threads that wait for streams */
    uint64_t random;
    async_stream streams[ASYNC_STREAMS]; /**< the first are the devices' own */
    async_clock done;                    /**< what the host has waited for */
    char *shown, *real;                  /**< the same memory: as pointers name it, and as operations reach it */
    async_block *blocks;
    async_shadow shadow;
    int64_t counts[ASYNC_CALLS], failing[ASYNC_CALLS];
    unsigned left_out;
    char fault[512], told[512];
};

/** Keeps the first sentence. */
void async_complain(async_machine *machine, const char *format, ...) __attribute__((format(printf, 2, 3)));

uint64_t async_random(async_machine *machine);

/** Counts a call, and fails it if it is to fail. Takes the lock, and keeps it in any case. */
tsr_status async_enter(async_machine *machine, async_call call);

/** The stream that a handle names, on that device. */
async_stream *async_find(async_machine *machine, int index, tsr_stream stream);

/** An operation with room for arguments; NULL where there is no memory. */
async_op *async_op_create(size_t bytes, void (*run)(async_machine *machine, const async_op *op));

/** What it is given. */
static inline void *async_arguments(const async_op *op)
{
    return (void *)op->arguments;
}

/** A new operation is about to be enqueued: the stream's clock moves on, past all that the host has waited for. */
void async_tick(async_machine *machine, async_stream *stream);
void async_enqueue(async_machine *machine, async_stream *stream, async_op *op);

/** Waits until a stream has done what it holds; NULL: all streams. */
void async_drain(async_machine *machine, async_stream *stream);

void *async_work(void *machine);

/* Memory. */
bool async_memory_create(async_machine *machine);
void async_memory_destroy(async_machine *machine);
void *async_block_create(async_machine *machine, int owner, size_t bytes);
void async_block_destroy(async_machine *machine, const void *memory);

/** A box that an operation on a stream touches. */
typedef struct async_box {
    const void *base;
    int ndim;
    const int64_t *shape, *strides;
    size_t element_bytes;
    bool write;
    const char *who;
} async_box;

/** Looks for races, and returns where the operation reaches the box; NULL, with a fault, where it may not. Empty boxes are anywhere. */
void *async_touch(async_machine *machine, async_stream *stream, const async_box *box);

/** Likewise for bytes without gaps. */
void *async_touch_bytes(async_machine *machine, async_stream *stream, const void *memory, size_t bytes, bool write, const char *who);

/** The arithmetic of a product whose pointers can be followed. */
void async_multiply(const async_machine *machine, const tsr_gemm *gemm);

#endif
