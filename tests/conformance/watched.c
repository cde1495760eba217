#include "watched.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* The entries, with their arguments as they are declared and as they are passed on. */
#define FALLIBLE(X)                                                                                                    \
    X(count, (void *self, int *count, const char **reason), (watched.self, count, reason))                             \
    X(alloc, (void *self, int index, size_t bytes, tsr_stream stream, void **out),                                     \
      (watched.self, index, bytes, stream, out))                                                                       \
    X(copy, (void *self, int index, void *dst, const void *src, size_t bytes, tsr_copy_kind kind, tsr_stream stream),  \
      (watched.self, index, dst, src, bytes, kind, stream))                                                            \
    X(copy_boxes, (void *self, int index, const tsr_box_copy *boxes, size_t count, tsr_stream stream),                 \
      (watched.self, index, boxes, count, stream))                                                                     \
    X(fill, (void *self, int index, const tsr_box_fill *box, tsr_stream stream), (watched.self, index, box, stream))   \
    X(reduce, (void *self, int index, const tsr_box_reduce *box, tsr_stream stream),                                   \
      (watched.self, index, box, stream))                                                                              \
    X(convert,                                                                                                         \
      (void *self, int index, void *dst, tsr_dtype dst_dtype, const void *src, tsr_dtype src_dtype, int64_t count,     \
       tsr_stream stream),                                                                                             \
      (watched.self, index, dst, dst_dtype, src, src_dtype, count, stream))                                            \
    X(gemm, (void *self, int index, const tsr_gemm *gemm, tsr_stream stream), (watched.self, index, gemm, stream))     \
    X(stream_create, (void *self, int index, tsr_stream *out), (watched.self, index, out))                             \
    X(stream_synchronize, (void *self, int index, tsr_stream stream), (watched.self, index, stream))                   \
    X(event_create, (void *self, int index, void **out), (watched.self, index, out))                                   \
    X(event_record, (void *self, int index, void *event, tsr_stream stream), (watched.self, index, event, stream))     \
    X(event_wait, (void *self, int index, void *event, tsr_stream stream), (watched.self, index, event, stream))       \
    X(gemm_workspace, (void *self, int index, const tsr_gemm *gemm, size_t *bytes),                                    \
      (watched.self, index, gemm, bytes))                                                                              \
    X(reaches, (void *self, int index, int owner, int *out), (watched.self, index, owner, out))                        \
    X(capture, (void *self, int index, tsr_stream stream, uint64_t *id), (watched.self, index, stream, id))            \
    X(launch, (void *self, int index, const struct tsr_kernel_call *call, tsr_stream stream),                          \
      (watched.self, index, call, stream))

#define SILENT(X)                                                                                                      \
    X(free, (void *self, int index, void *memory, size_t bytes, tsr_stream stream),                                    \
      (watched.self, index, memory, bytes, stream))                                                                    \
    X(stream_destroy, (void *self, int index, tsr_stream stream), (watched.self, index, stream))                       \
    X(event_destroy, (void *self, int index, void *event), (watched.self, index, event))

#define NUMBER(entry, declared, passed) NUMBER_##entry,
enum { FALLIBLE(NUMBER) SILENT(NUMBER) ENTRIES };

#define NAME(entry, declared, passed) #entry,
static const char *const names[] = {FALLIBLE(NAME) SILENT(NAME)};

static struct {
    const tsr_device_table *under;
    void *self;
    unsigned seconds;
    atomic_int inside[ENTRIES];
} watched;

static void say(const char *text)
{
    if (write(STDERR_FILENO, text, strlen(text)) < 0)
        _exit(1);
}

static int any_inside(void)
{
    int calls = 0;
    for (int e = 0; e < ENTRIES; e++)
        calls += atomic_load(&watched.inside[e]);
    return calls > 0;
}

/* Between calls it is the suite that takes its time. */
static void end_program(int number)
{
    (void)number;
    if (!any_inside()) {
        alarm(watched.seconds);
        return;
    }
    say("\ntessera-conformance: device \"");
    say(watched.under->name);
    say("\" hangs; calls that have not returned:");
    for (int e = 0; e < ENTRIES; e++)
        if (atomic_load(&watched.inside[e]) > 0) {
            say(" ");
            say(names[e]);
        }
    say("\n");
    _exit(1);
}

static void begin(int entry)
{
    atomic_fetch_add(&watched.inside[entry], 1);
    alarm(watched.seconds);
}

static void end(int entry)
{
    atomic_fetch_sub(&watched.inside[entry], 1);
    alarm(watched.seconds);
}

#define PASS_ON(entry, declared, passed)                                                                               \
    static tsr_status watched_##entry declared                                                                         \
    {                                                                                                                  \
        (void)self;                                                                                                    \
        begin(NUMBER_##entry);                                                                                         \
        const tsr_status status = watched.under->entry passed;                                                         \
        end(NUMBER_##entry);                                                                                           \
        return status;                                                                                                 \
    }
FALLIBLE(PASS_ON)

#define PASS_ON_SILENT(entry, declared, passed)                                                                        \
    static void watched_##entry declared                                                                               \
    {                                                                                                                  \
        (void)self;                                                                                                    \
        begin(NUMBER_##entry);                                                                                         \
        watched.under->entry passed;                                                                                   \
        end(NUMBER_##entry);                                                                                           \
    }
SILENT(PASS_ON_SILENT)

tsr_status watched_create(const tsr_device_driver *under, unsigned seconds, tsr_device_driver **out)
{
    watched.under = tsr_device_driver_table(under, &watched.self);
    watched.seconds = seconds;
    signal(SIGALRM, end_program);
    alarm(seconds);
    tsr_device_table table = *watched.under;
    table.size = sizeof table;
#define REPLACE(entry, declared, passed) table.entry = table.entry ? watched_##entry : NULL;
    FALLIBLE(REPLACE)
    SILENT(REPLACE)
    table.destroy = NULL;
    return tsr_device_driver_create(&table, NULL, out);
}
