/* Executables as bytes: those of their program, and the rank. */
#include "ops/programs/executable.h"

#include "ops/programs/saved/load.h"
#include "ops/programs/saved/save.h"

#include <tessera/saved_program.h>
#include <tessera/sys/status.h>

#include <limits.h>

#define VERSION    1
#define RANK_BYTES 8

static const tsr_frame frame = {"executable", "tsr-exec", VERSION, VERSION};

tsr_status tsr_executable_save(const tsr_executable *executable, void *buffer, size_t capacity, size_t *bytes)
{
    tsr_writer writer = {.buffer = buffer, .capacity = capacity};
    if (!executable || !bytes)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "tsr_executable_save: %s is NULL",
                              executable ? "bytes" : "executable");
    if (!buffer && capacity > 0)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "tsr_executable_save: buffer is NULL, but its capacity is %zu",
                              capacity);
    *bytes = TSR_FRAME_BYTES + RANK_BYTES + executable->saved_bytes;
    tsr_write_frame(&writer, &frame, VERSION, *bytes);
    tsr_write_i64(&writer, executable->rank);
    tsr_write_bytes(&writer, executable->saved, executable->saved_bytes);
    tsr_write_frame_end(&writer);
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
    tsr_reader in;
    tsr_program *program;
    tsr_compile_options options = TSR_COMPILE_OPTIONS_INIT;
    if (!context || !bytes || !out)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: %s is NULL", caller,
                              !context ? "context"
                              : bytes  ? "out"
                                       : "bytes");
    TSR_TRY(tsr_read_frame(caller, &frame, bytes, size, NULL, &in));
    options.device = device;
    options.rank = tsr_read_i64(&in);
    if (in.ended || options.rank < 0 || options.rank > INT_MAX)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: the rank is %lld, but must be 0 to %d", caller,
                              (long long)options.rank, INT_MAX);
    TSR_TRY(tsr_program_from_bytes(caller, context, in.at, in.left, &program));
    const tsr_status status = tsr_compile(program, &options, out);
    tsr_program_destroy(program);
    return status;
}
