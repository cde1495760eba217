/* Executables as bytes: those of their program, and the rank. */
#include "ops/programs/executable.h"

#include "ops/programs/saved/bytes.h"
#include "ops/programs/saved/load.h"
#include "ops/programs/saved/save.h"

#include <tessera/saved_program.h>
#include <tessera/sys/memory.h>

#include <limits.h>
#include <string.h>

#define FRAME_BYTES (TSR_PACKED_HEAD_BYTES + TSR_PACKED_CHECKSUM_BYTES)
#define RANK_BYTES  8

static void write_executable(const tsr_executable *x, tsr_packer *out, size_t bytes)
{
    tsr_pack_begin(out, TSR_SAVED_EXECUTABLE, TSR_SAVED_EXECUTABLE_VERSION, bytes);
    tsr_pack_i64(out, x->rank);
    tsr_pack(out, x->saved, x->saved_bytes);
    tsr_pack_end(out);
}

tsr_status tsr_executable_save(const tsr_executable *executable, void *buffer, size_t capacity, size_t *bytes)
{
    void *memory;
    if (!executable || !bytes)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "tsr_executable_save: %s is NULL",
                              executable ? "bytes" : "executable");
    if (!buffer && capacity > 0)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "tsr_executable_save: buffer is NULL, but its capacity is %zu",
                              capacity);
    const size_t size = FRAME_BYTES + RANK_BYTES + executable->saved_bytes;
    if (capacity) {
        TSR_TRY(tsr_allocate(executable->context, size, &memory));
        tsr_packer out = {.buffer = memory};
        write_executable(executable, &out, size);
        memcpy(buffer, memory, size < capacity ? size : capacity);
        tsr_release(executable->context, memory);
    }
    *bytes = size;
    return TSR_OK;
}

tsr_status tsr_executable_load(tsr_context *context, const void *bytes, size_t size, tsr_executable **out)
{
    return tsr_executable_load_on(context, bytes, size, tsr_device_host(), out);
}

tsr_status tsr_executable_load_on(tsr_context *context, const void *bytes, size_t size, tsr_device device,
                                  tsr_executable **out)
{
    static const char caller[] = "tsr_executable_load";
    tsr_unpacker in;
    tsr_program *program;
    tsr_compile_options options = TSR_COMPILE_OPTIONS_INIT;
    if (!context || !bytes || !out)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: %s is NULL", caller,
                              !context ? "context"
                              : bytes  ? "out"
                                       : "bytes");
    TSR_TRY(
        tsr_unpack_open(caller, "executable", TSR_SAVED_EXECUTABLE, TSR_SAVED_EXECUTABLE_VERSION, bytes, size, &in));
    options.device = device;
    options.rank = tsr_unpack_i64(&in);
    if (in.ended || options.rank < 0 || options.rank > INT_MAX)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: the rank is %lld, but must be 0 to %d", caller,
                              (long long)options.rank, INT_MAX);
    TSR_TRY(tsr_program_from_bytes(caller, context, in.at, in.left, &program));
    const tsr_status status = tsr_compile(program, &options, out);
    tsr_program_destroy(program);
    return status;
}
