/* Two mappings of one file: pointers are to the first, which cannot be read or written; operations
 * access the second. */
#include "async_machine.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { ALIGNMENT = 64, FRESH = 0xCB, FREED = 0xDB };

static void *reserve(size_t bytes)
{
    void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return at == MAP_FAILED ? NULL : at;
}

bool async_memory_create(async_machine *machine)
{
    const int file = memfd_create("async", MFD_CLOEXEC);
    if (file < 0 || ftruncate(file, (off_t)ASYNC_BYTES) != 0)
        return false;
    machine->shown = mmap(NULL, ASYNC_BYTES, PROT_NONE, MAP_SHARED, file, 0);
    machine->real = mmap(NULL, ASYNC_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    machine->shadow.written = reserve(ASYNC_BYTES * sizeof *machine->shadow.written);
    machine->shadow.writer = reserve(ASYNC_BYTES);
    machine->shadow.read = reserve(ASYNC_BYTES * sizeof *machine->shadow.read);
    return machine->shown != MAP_FAILED && machine->real != MAP_FAILED && machine->shadow.written &&
           machine->shadow.writer && machine->shadow.read;
}

void async_memory_destroy(async_machine *machine)
{
    while (machine->blocks) {
        async_block *block = machine->blocks;
        machine->blocks = block->next;
        free(block);
    }
    munmap(machine->shown, ASYNC_BYTES);
    munmap(machine->real, ASYNC_BYTES);
    munmap(machine->shadow.written, ASYNC_BYTES * sizeof *machine->shadow.written);
    munmap(machine->shadow.writer, ASYNC_BYTES);
    munmap(machine->shadow.read, ASYNC_BYTES * sizeof *machine->shadow.read);
}

void *async_block_create(async_machine *machine, int owner, size_t bytes)
{
    const size_t wanted = bytes + ALIGNMENT; /* a gap behind every block, so that overruns are found */
    async_block **at = &machine->blocks, *made = malloc(sizeof *made);
    size_t offset = 0;
    for (; *at && (*at)->offset - offset < wanted; at = &(*at)->next)
        offset = ((*at)->offset + (*at)->bytes + 2 * ALIGNMENT - 1) & ~(size_t)(ALIGNMENT - 1);
    if (!made || offset + wanted > ASYNC_BYTES) {
        free(made);
        return NULL;
    }
    *made = (async_block){offset, bytes, owner, *at};
    *at = made;
    memset(machine->real + offset, FRESH, bytes);
    memset(machine->shadow.written + offset, 0, bytes * sizeof *machine->shadow.written);
    memset(machine->shadow.read + offset, 0, bytes * sizeof *machine->shadow.read);
    return machine->shown + offset;
}

void async_block_destroy(async_machine *machine, const void *memory)
{
    for (async_block **at = &machine->blocks; *at; at = &(*at)->next) {
        async_block *block = *at;
        if (machine->shown + block->offset != memory)
            continue;
        *at = block->next;
        memset(machine->real + block->offset, FREED, block->bytes);
        free(block);
        return;
    }
    async_complain(machine, "free of %p, which is not allocated", memory);
}

/* The block that contains [begin, begin + bytes); NULL if none does. */
static const async_block *find_block(const async_machine *machine, uintptr_t begin, size_t bytes)
{
    const uintptr_t base = (uintptr_t)machine->shown;
    for (const async_block *block = machine->blocks; block; block = block->next)
        if (begin >= base + block->offset && begin + bytes <= base + block->offset + block->bytes)
            return block;
    return NULL;
}

static bool is_ordered(const async_stream *stream, int other, uint32_t clock)
{
    return other == stream->number || clock <= stream->clock.at[other];
}

static int find_reader(const async_stream *stream, const async_clock *read)
{
    for (int s = 0; s < ASYNC_STREAMS; s++)
        if (!is_ordered(stream, s, read->at[s]))
            return s;
    return -1;
}

static void touch_run(async_machine *machine, const async_stream *stream, const async_box *box, size_t offset,
                      size_t bytes)
{
    const async_shadow *shadow = &machine->shadow;
    const uint32_t now = stream->clock.at[stream->number];
    for (size_t at = offset; at < offset + bytes; at++) {
        const int writer = shadow->writer[at], reader = box->write ? find_reader(stream, &shadow->read[at]) : -1;
        const bool after_write = is_ordered(stream, writer, shadow->written[at]);
        if (!after_write || reader >= 0)
            async_complain(machine, "race: %s on stream %d %s byte %zu, which stream %d %s", box->who, stream->number,
                           box->write ? "writes" : "reads", at, after_write ? reader : writer,
                           after_write ? "reads" : "writes");
        if (!after_write || reader >= 0)
            return;
        if (box->write) {
            shadow->written[at] = now;
            shadow->writer[at] = (uint8_t)stream->number;
        } else {
            shadow->read[at].at[stream->number] = now;
        }
    }
}

static void touch_dim(async_machine *machine, const async_stream *stream, const async_box *box, int dim, size_t offset)
{
    if (dim == box->ndim) {
        touch_run(machine, stream, box, offset, box->element_bytes);
    } else if (dim == box->ndim - 1 && box->strides[dim] == 1) {
        touch_run(machine, stream, box, offset, (size_t)box->shape[dim] * box->element_bytes);
    } else {
        for (int64_t i = 0; i < box->shape[dim]; i++)
            touch_dim(machine, stream, box, dim + 1, offset + (size_t)(i * box->strides[dim]) * box->element_bytes);
    }
}

void *async_touch(async_machine *machine, async_stream *stream, const async_box *box)
{
    size_t last = 0;
    for (int dim = 0; dim < box->ndim; dim++) {
        if (box->shape[dim] == 0)
            return machine->real;
        last += (size_t)((box->shape[dim] - 1) * box->strides[dim]);
    }
    const uintptr_t begin = (uintptr_t)box->base;
    const async_block *block = find_block(machine, begin, (last + 1) * box->element_bytes);
    if (!block) {
        async_complain(machine, "%s on stream %d touches %zu bytes at %p, which is no memory of a device", box->who,
                       stream->number, (last + 1) * box->element_bytes, box->base);
        return NULL;
    }
    if (block->owner != stream->index && machine->options.reaches &&
        !machine->options.reaches(stream->index, block->owner)) {
        async_complain(machine, "%s on device %d touches memory of device %d, which is out of reach", box->who,
                       stream->index, block->owner);
        return NULL;
    }
    const size_t offset = (size_t)(begin - (uintptr_t)machine->shown);
    touch_dim(machine, stream, box, 0, offset);
    return machine->real + offset;
}

void *async_touch_bytes(async_machine *machine, async_stream *stream, const void *memory, size_t bytes, bool write,
                        const char *who)
{
    const int64_t shape = (int64_t)bytes, stride = 1;
    const async_box box = {memory, 1, &shape, &stride, 1, write, who};
    return async_touch(machine, stream, &box);
}
