/* Times collectives of four XLA CPU devices: this library's custom calls beside XLA's own
 * in-process collectives and beside plain copies, and what a call costs beside an empty custom
 * call. Plain copies are the limit: a call in which each device fills its result by memcpy() from
 * its operand, so that it reads and writes as many bytes as a collective at least does.
 *
 * usage: bench-xla PLUGIN.so [MIB [REPETITIONS [NAME]]]
 *
 * A launch is one operation on each device, whose result gets new memory from XLA, or a chain of
 * them, whose results in between share memory. The sides take turns. Prints the median and the
 * least time of each, and the median of the processor time of all threads, which other programs on
 * the machine disturb less. */
#include "pjrt.h"

#include <tessera/xla.h>

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <xla/ffi/api/c_api.h>

enum { DEVICES = 4, MOST = 4096, CHAIN = 8 };

static void check(char *why)
{
    if (!why)
        return;
    fprintf(stderr, "bench-xla: %s\n", why);
    exit(1);
}

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

/* The processor time of all threads so far. */
static double spent(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1e-6;
}

/* The empty custom call with which calls are compared. */
static XLA_FFI_Error *do_nothing(XLA_FFI_CallFrame *frame)
{
    if (frame->extension_start && frame->extension_start->type == XLA_FFI_Extension_Metadata)
        ((XLA_FFI_Metadata_Extension *)frame->extension_start)->metadata->api_version = frame->api->api_version;
    return NULL;
}

static size_t bytes_of(const XLA_FFI_Buffer *buffer)
{
    size_t bytes = sizeof(float);
    for (int64_t d = 0; d < buffer->rank; d++)
        bytes *= (size_t)buffer->dims[d];
    return bytes;
}

/* The plain copies. */
static XLA_FFI_Error *fill_by_copies(XLA_FFI_CallFrame *frame)
{
    if (frame->extension_start && frame->extension_start->type == XLA_FFI_Extension_Metadata)
        return do_nothing(frame);
    const XLA_FFI_Buffer *const in = frame->args.args[0], *const out = frame->rets.rets[0];
    const size_t step = bytes_of(in), bytes = bytes_of(out);
    for (size_t at = 0; at < bytes; at += step)
        memcpy((char *)out->data + at, in->data, step < bytes - at ? step : bytes - at);
    return NULL;
}

/* ---- Programs ---- */

/* One side of a comparison: an operation of one operand, as MLIR, and how long its operand and
 * result are on a device. */
typedef struct side {
    const char *name, *operation;
    int64_t in, out;
    int operations; /* one after the other in a launch */
    xla_program program;
    PJRT_Buffer *arguments[DEVICES];
    double seconds[MOST], processor[MOST]; /* of each launch */
} side;

#define GROUPS                                                                                                         \
    "replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>, channel_handle = #stablehlo.channel_handle<handle = "   \
    "1, "                                                                                                              \
    "type = 1>"
#define CALL(name, attributes)                                                                                         \
    "stablehlo.custom_call @" name "(%local) {api_version = 4 : i32, backend_config = {" attributes "}}"
#define XLA_ALL_REDUCE                                                                                                 \
    "\"stablehlo.all_reduce\"(%local) ({^bb0(%a: tensor<f32>, %b: tensor<f32>): %s = stablehlo.add %a, %b : "          \
    "tensor<f32> stablehlo.return %s : tensor<f32>}) {" GROUPS ", use_global_device_ids}"
#define XLA_ALL_GATHER "\"stablehlo.all_gather\"(%local) {all_gather_dim = 0 : i64, " GROUPS ", use_global_device_ids}"
#define XLA_ALL_TO_ALL                                                                                                 \
    "\"stablehlo.all_to_all\"(%local) {split_dimension = 0 : i64, concat_dimension = 0 : i64, split_count = 4 : "      \
    "i64, " GROUPS "}"

/* A chain of operations, of which each takes what the last one gave or, if that is longer, its
 * beginning. */
static size_t put_chain(const side *s, char *text, size_t capacity)
{
    const long long in = (long long)s->in, out = (long long)s->out;
    size_t at = 0;
    for (int o = 0; o < s->operations; o++) {
        at += (size_t)snprintf(text + at, capacity - at, "      %%out%d = ", o);
        /* The operation's operand is called %local in its text. */
        const char *const operand = strstr(s->operation, "%local");
        at += (size_t)snprintf(text + at, capacity - at, "%.*s%%in%d%s : (tensor<%lldxf32>) -> tensor<%lldxf32>\n",
                               (int)(operand - s->operation), s->operation, o, operand + strlen("%local"), in, out);
        if (in == out)
            at +=
                (size_t)snprintf(text + at, capacity - at,
                                 "      %%in%d = stablehlo.reshape %%out%d : (tensor<%lldxf32>) -> tensor<%lldxf32>\n",
                                 o + 1, o, in, in);
        else
            at += (size_t)snprintf(
                text + at, capacity - at,
                "      %%in%d = stablehlo.slice %%out%d [0:%lld] : (tensor<%lldxf32>) -> tensor<%lldxf32>\n", o + 1, o,
                in, out, in);
    }
    return at;
}

static void compile(const xla_host *host, side *s)
{
    static char text[1 << 16], chain[1 << 15];
    const long long in = (long long)s->in, out = (long long)s->out;
    put_chain(s, chain, sizeof chain);
    snprintf(
        text, sizeof text,
        "module @bench {\n"
        "  sdy.mesh @mesh = <[\"r\"=4]>\n"
        "  func.func public @main(%%x: tensor<%lldxf32> {sdy.sharding = #sdy.sharding<@mesh, [{\"r\"}]>})"
        " -> (tensor<%lldxf32> {sdy.sharding = #sdy.sharding<@mesh, [{\"r\"}]>}) {\n"
        "    %%y = sdy.manual_computation(%%x) in_shardings=[<@mesh, [{\"r\"}]>] out_shardings=[<@mesh, [{\"r\"}]>]"
        " manual_axes={\"r\"} (%%in0: tensor<%lldxf32>) {\n%s"
        "      sdy.return %%out%d : tensor<%lldxf32>\n"
        "    } : (tensor<%lldxf32>) -> tensor<%lldxf32>\n"
        "    return %%y : tensor<%lldxf32>\n"
        "  }\n"
        "}\n",
        DEVICES * in, DEVICES * out, in, chain, s->operations - 1, out, DEVICES * in, DEVICES * out, DEVICES * out);
    check(xla_program_compile(host, text, DEVICES, NULL, &s->program));
    float *const values = malloc((size_t)in * sizeof(float));
    for (int64_t i = 0; values && i < in; i++)
        values[i] = (float)(i % 17);
    for (size_t d = 0; d < DEVICES; d++)
        check(xla_buffer_create(host, d, PJRT_Buffer_Type_F32, 1, &s->in, values, &s->arguments[d]));
    free(values);
}

/* One launch, which is repetition `r` if that is not negative. */
static void launch(side *s, int r)
{
    PJRT_Buffer *const *in[DEVICES];
    PJRT_Buffer *results[DEVICES], **out[DEVICES];
    for (int d = 0; d < DEVICES; d++) {
        in[d] = &s->arguments[d];
        out[d] = &results[d];
    }
    const double begin = now(), before = spent();
    check(xla_program_run(&s->program, NULL, in, 1, out, NULL));
    const double seconds = now() - begin, processor = spent() - before;
    if (r >= 0) {
        s->seconds[r] = seconds / s->operations;
        s->processor[r] = processor / s->operations;
    }
    for (int d = 0; d < DEVICES; d++)
        xla_buffer_destroy(s->program.host, results[d]);
}

/* ---- Comparisons ---- */

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Compares the sides, which take turns, after launches that are not counted: in
 * these the library finds out how it moves bytes fastest. */
static void measure(const xla_host *host, side *sides, int count, int repetitions)
{
    for (int s = 0; s < count; s++)
        compile(host, &sides[s]);
    for (int r = -12; r < repetitions; r++)
        for (int s = 0; s < count; s++)
            launch(&sides[s], r);
    for (int s = 0; s < count; s++) {
        side *const at = &sides[s];
        qsort(at->seconds, (size_t)repetitions, sizeof *at->seconds, compare);
        qsort(at->processor, (size_t)repetitions, sizeof *at->processor, compare);
        const double median = at->seconds[repetitions / 2], processor = at->processor[repetitions / 2];
        printf("%-42s %11.1f us, least %11.1f us, processor %11.1f us", at->name, median * 1e6, at->seconds[0] * 1e6,
               processor * 1e6);
        if (s)
            printf("; x%.2f, least x%.2f, processor x%.2f", sides[0].seconds[repetitions / 2] / median,
                   sides[0].seconds[0] / at->seconds[0], sides[0].processor[repetitions / 2] / processor);
        printf("\n");
        fflush(stdout);
        for (int d = 0; d < DEVICES; d++)
            xla_buffer_destroy(host, at->arguments[d]);
        xla_program_destroy(&at->program);
    }
}

static void compare_sides(const xla_host *host, const char *name, const char *theirs, const char *ours, int64_t in,
                          int64_t out, int operations, int repetitions)
{
    enum { SIDES = 3 };
    static side sides[SIDES];
    const char *const whose[SIDES] = {"XLA", "Tessera", "copies"}, *const what[SIDES] = {theirs, ours,
                                                                                         CALL("copies", "")};
    char names[SIDES][64];
    for (int s = 0; s < SIDES; s++) {
        snprintf(names[s], sizeof names[s], "%s, %s", name, whose[s]);
        sides[s] = (side){.name = names[s], .operation = what[s], .in = in, .out = out, .operations = operations};
    }
    measure(host, sides, SIDES, repetitions);
}

int main(int argc, char **argv)
{
    xla_host host;
    XLA_FFI_Handler *const empty = do_nothing, *const copies = fill_by_copies, *const registers = tsr_xla_register;
    const int64_t mib = argc > 2 ? atoll(argv[2]) : 64;
    const int repetitions = argc > 3 && atoi(argv[3]) <= MOST ? atoi(argv[3]) : 7;
    const char *const only = argc > 4 ? argv[4] : "";
    const int64_t many = mib << 18, few = 256;
    if (argc < 2) {
        fprintf(stderr, "usage: bench-xla PLUGIN.so [MIB [REPETITIONS [NAME]]]\n");
        return 2;
    }
    check(xla_host_open(argv[1], DEVICES, &host));
    check(xla_host_register(&host, "tsr_xla_register", *(void **)&registers));
    check(xla_host_register(&host, "empty", *(void **)&empty));
    check(xla_host_register(&host, "copies", *(void **)&copies));
    const struct row {
        const char *name, *theirs, *ours;
        int64_t in, out;
        int operations, repetitions;
    } rows[] = {
        {"all-reduce", XLA_ALL_REDUCE, CALL("tsr_xla_all_reduce", "mesh = \"4\""), many, many, 1, repetitions},
        {"all-gather", XLA_ALL_GATHER, CALL("tsr_xla_all_gather", "mesh = \"4\""), many / 4, many, 1, repetitions},
        {"all-to-all", XLA_ALL_TO_ALL, CALL("tsr_xla_all_to_all", "mesh = \"4\""), many, many, 1, repetitions},
        {"chain of all-reduces", XLA_ALL_REDUCE, CALL("tsr_xla_all_reduce", "mesh = \"4\""), many, many, CHAIN,
         repetitions},
        {"chain of all-gathers", XLA_ALL_GATHER, CALL("tsr_xla_all_gather", "mesh = \"4\""), many / 4, many, CHAIN,
         repetitions},
        {"chain of all-to-alls", XLA_ALL_TO_ALL, CALL("tsr_xla_all_to_all", "mesh = \"4\""), many, many, CHAIN,
         repetitions},
        {"call that moves nothing, 1 KiB", CALL("empty", ""),
         CALL("tsr_xla_redistribute", "mesh = \"4\", from = \"S(0)\", to = \"S(0)\""), few, few, 1, 2000},
        {"small all-to-all, 1 KiB", XLA_ALL_TO_ALL, CALL("tsr_xla_all_to_all", "mesh = \"4\""), few, few, 1, 2000},
        {"small all-reduce, 1 KiB", XLA_ALL_REDUCE, CALL("tsr_xla_all_reduce", "mesh = \"4\""), few, few, 1, 2000},
    };
    for (size_t r = 0; r < sizeof rows / sizeof rows[0]; r++)
        if (strstr(rows[r].name, only))
            compare_sides(&host, rows[r].name, rows[r].theirs, rows[r].ours, rows[r].in, rows[r].out,
                          rows[r].operations, rows[r].repetitions);
    xla_host_close(&host);
    return 0;
}
