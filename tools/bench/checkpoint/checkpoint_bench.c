/* bench checkpoint: how long saves and loads of checkpoints take, beside plain files. */
#include "bench/checkpoint/plain_files.h"
#include "bench/run/run.h"
#include "cli/report.h"
#include "place/wholes.h"

#include <tessera/checkpoint.h>
#include <tessera/sys/status.h>

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define CALL "bench checkpoint"

enum { PATH_BYTES = 4096, NAME_BYTES = 32 };

/* Bytes that are compared at a time, a multiple of every element's. */
enum { PATTERN_BYTES = 4096 };

/* What is measured, in turns, in this order. A load comes before the read beside it, and what is
 * forgotten before both is what they read. */
typedef enum subject { SAVE, WRITE, COPY, LOAD_COLD, READ_COLD, LOAD_WARM, READ_WARM, START, MEMORY, SUBJECTS } subject;

/* The lines that are printed: a subject, and what it is compared with. */
static const struct {
    const char *pass, *cache, *plain_name;
    subject subject, plain;
    bool copies; /* compared with a copy of the file, too */
} lines[] = {{"save", NULL, "write", SAVE, WRITE, true},
             {"start", NULL, "memory copy", START, MEMORY, false},
             {"load", "cold", "read", LOAD_COLD, READ_COLD, true},
             {"load", "warm", "read", LOAD_WARM, READ_WARM, true}};

enum { LINES = sizeof lines / sizeof lines[0] };

typedef struct job {
    const tool_arguments *given;
    place *place;
    bench_settings settings;
    tsr_mesh *mesh;
    tsr_layout *layout; /* of each tensor */
    tensor_shape shape;
    size_range sizes;
    const char *parent; /* of the folder in which files are */
    int ranks;
    int64_t tensors;
    int64_t bytes;             /* of the checkpoint's elements */
    double *seconds[SUBJECTS]; /* of iterations, on ranks that keep results */
    spread spreads[SUBJECTS];  /* of them */
    int64_t bytes_read, wrong; /* of all ranks, of one load */
    atomic_llong plain_runs;   /* uses of plain files that rank 0 has ended */
    bool begun;                /* a line was printed */
} job;

/* One rank's side. */
typedef struct side {
    job *j;
    tsr_comm *comm;
    int rank;
    char folder[PATH_BYTES], checkpoint[PATH_BYTES + NAME_BYTES], plain[PATH_BYTES + NAME_BYTES],
        copied[PATH_BYTES + NAME_BYTES];
    int64_t count; /* tensors that are there */
    tsr_dtensor **x;
    char (*names)[NAME_BYTES];
    tsr_safetensors_tensor *tensors;
    tsr_safetensors_target *targets;
    char *memory;                  /* room for a copy of all local tensors */
    char *piece;                   /* PLAIN_PIECE bytes */
    tsr_checkpoint_saving *saving; /* that goes on */
    int64_t bytes_read;
    long long plain_runs; /* uses of plain files so far */
} side;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Bytes of a local tensor, which is contiguous. */
static size_t local_bytes(const tsr_dtensor *x)
{
    const tsr_tensor local = tsr_dtensor_to_local(x);
    int64_t count = 0;
    return tsr_tensor_count(&local, &count) == TSR_OK ? (size_t)count * tsr_dtype_bytes(local.dtype) : 0;
}

/* What the bytes of a shard follow from: its place, so that replicas have the same. */
static uint64_t seed_of(const tsr_dtensor *x, int64_t number)
{
    int64_t offset[TSR_MAX_DIMS] = {0};
    uint64_t seed = (uint64_t)number + 1;
    if (tsr_layout_local(tsr_dtensor_layout(x), NULL, NULL, offset) != TSR_OK)
        return seed;
    for (int i = 0; i < TSR_MAX_DIMS; i++)
        seed = (seed ^ (uint64_t)offset[i]) * UINT64_C(0x9e3779b97f4a7c15) + 1;
    return seed;
}

/* Writes the next bytes; only the last time their number is not a multiple of 8. */
static void next_bytes(uint64_t *state, unsigned char *out, size_t bytes)
{
    for (size_t at = 0; at < bytes; at += sizeof *state) {
        *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        const uint64_t word = *state ^ *state >> 29;
        memcpy(out + at, &word, bytes - at < sizeof word ? bytes - at : sizeof word);
    }
}

static void fill(const side *s)
{
    for (int64_t i = 0; i < s->count; i++) {
        uint64_t state = seed_of(s->x[i], i);
        if (local_bytes(s->x[i]) > 0)
            next_bytes(&state, tsr_dtensor_to_local(s->x[i]).data, local_bytes(s->x[i]));
    }
}

/* Counts the elements, of `each` bytes, in which two pieces of memory differ. */
static int64_t count_different(const unsigned char *a, const unsigned char *b, size_t bytes, size_t each)
{
    int64_t count = 0;
    const bool same = memcmp(a, b, bytes) == 0;
    for (size_t at = 0; at < bytes && !same; at += each)
        count += memcmp(a + at, b + at, each) != 0;
    return count;
}

static int64_t count_wrong(const side *s)
{
    unsigned char wanted[PATTERN_BYTES];
    int64_t wrong = 0;
    for (int64_t i = 0; i < s->count; i++) {
        const tsr_tensor local = tsr_dtensor_to_local(s->x[i]);
        const size_t bytes = local_bytes(s->x[i]);
        uint64_t state = seed_of(s->x[i], i);
        for (size_t at = 0; at < bytes; at += PATTERN_BYTES) {
            const size_t some = bytes - at < PATTERN_BYTES ? bytes - at : PATTERN_BYTES;
            next_bytes(&state, wanted, some);
            wrong +=
                count_different((const unsigned char *)local.data + at, wanted, some, tsr_dtype_bytes(local.dtype));
        }
    }
    return wrong;
}

static tsr_status load(side *s)
{
    tsr_checkpoint_load_options options = TSR_CHECKPOINT_LOAD_OPTIONS_INIT;
    options.bytes_read = &s->bytes_read;
    return tsr_checkpoint_load(s->comm, s->checkpoint, (size_t)s->count, s->targets, &options);
}

static tsr_status copy_memory(const side *s)
{
    char *to = s->memory;
    for (int64_t i = 0; i < s->count; i++) {
        const size_t bytes = local_bytes(s->x[i]);
        if (bytes > 0)
            memcpy(to, tsr_dtensor_to_local(s->x[i]).data, bytes);
        to += bytes;
    }
    return TSR_OK;
}

static tsr_status use_plain_file(const side *s, subject what)
{
    if (what == WRITE)
        return plain_write(s->plain, s->piece, s->j->bytes);
    return what == COPY ? plain_copy(s->plain, s->copied, s->piece) : plain_read(s->plain, s->piece);
}

/* Rank 0 writes and reads plain files, as dd does. Threads of the other ranks wait here and not in
 * a collective call, which would tell of a long wait. */
static tsr_status run_plain(side *s, subject what)
{
    const struct timespec moment = {0, 100000};
    s->plain_runs++;
    if (s->rank == 0) {
        const tsr_status status = use_plain_file(s, what);
        s->j->plain_runs = s->plain_runs;
        return status;
    }
    while (place_launched(s->j->place) == 0 && s->j->plain_runs < s->plain_runs)
        nanosleep(&moment, NULL);
    return TSR_OK;
}

static tsr_status run_subject(side *s, subject what)
{
    switch (what) {
    case SAVE:
        return tsr_checkpoint_save(s->comm, s->checkpoint, (size_t)s->count, s->tensors, NULL);
    case START:
        return tsr_checkpoint_start(s->comm, s->checkpoint, (size_t)s->count, s->tensors, NULL, &s->saving);
    case LOAD_COLD:
    case LOAD_WARM:
        return load(s);
    case MEMORY:
        return copy_memory(s);
    default:
        return run_plain(s, what);
    }
}

/* Before a cold read the system forgets the files. */
static tsr_status prepare(const side *s, subject what)
{
    if (what == LOAD_COLD)
        return plain_forget(s->checkpoint);
    return what == READ_COLD && s->rank == 0 ? plain_forget(s->folder) : TSR_OK;
}

static tsr_status clear_up(side *s, subject what)
{
    tsr_checkpoint_saving *const saving = s->saving;
    s->saving = NULL;
    return what == START && saving ? tsr_checkpoint_finish(saving) : TSR_OK;
}

/* Collective: runs a subject once, and sets `*seconds` to the time between two meetings. */
static tsr_status time_subject(side *s, subject what, double *seconds)
{
    TSR_TRY(tsr_comm_share_status(s->comm, CALL, prepare(s, what)));
    const double begin = now();
    TSR_TRY(tsr_comm_share_status(s->comm, CALL, run_subject(s, what)));
    *seconds = now() - begin;
    return clear_up(s, what);
}

static tsr_status measure(side *s)
{
    const bench_settings *const settings = &s->j->settings;
    for (int64_t i = -settings->warm_ups; i < settings->iterations; i++) {
        for (int what = 0; what < SUBJECTS; what++) {
            double seconds;
            TSR_TRY(time_subject(s, (subject)what, &seconds));
            if (i >= 0 && bench_keeps(s->j->place, s->rank))
                s->j->seconds[what][i] = seconds;
        }
        bench_step(settings, s->j->place, s->rank);
    }
    return TSR_OK;
}

/* Loads once more into cleared memory, and adds up what ranks read, and what is wrong. */
static tsr_status check(side *s)
{
    int64_t sums[] = {0, 0};
    for (int64_t i = 0; i < s->count && s->j->settings.checks; i++)
        if (local_bytes(s->x[i]) > 0)
            memset(tsr_dtensor_to_local(s->x[i]).data, 0, local_bytes(s->x[i]));
    TSR_TRY(load(s));
    sums[0] = s->bytes_read;
    sums[1] = s->j->settings.checks ? count_wrong(s) : 0;
    TSR_TRY(tsr_comm_all_reduce(s->comm, sums, sums, 2, TSR_I64, TSR_SUM, tsr_device_host(), NULL));
    if (bench_keeps(s->j->place, s->rank)) {
        s->j->bytes_read = sums[0];
        s->j->wrong = sums[1];
    }
    bench_step(&s->j->settings, s->j->place, s->rank);
    return TSR_OK;
}

/* Rank 0 makes the folder. */
static tsr_status make_folder(side *s)
{
    snprintf(s->folder, sizeof s->folder, "%.4000s/tessera-bench-XXXXXX", s->j->parent);
    if (s->rank == 0 && !mkdtemp(s->folder))
        return tsr_status_set(TSR_ERROR_IO, "%s: making a folder in it failed: %s", s->j->parent, strerror(errno));
    return TSR_OK;
}

static tsr_status make_tensors(side *s)
{
    tsr_mesh *mesh = NULL;
    tsr_layout *layout = NULL;
    tsr_status status = wholes_mesh(s->comm, NULL, s->j->mesh, &mesh);
    if (status == TSR_OK)
        status = wholes_layout(mesh, s->j->layout, &layout);
    for (int64_t i = 0; i < s->j->tensors && status == TSR_OK; i++) {
        status = tsr_dtensor_create(layout, tsr_device_host(), &s->x[i]);
        if (status != TSR_OK)
            break;
        s->count++;
        snprintf(s->names[i], NAME_BYTES, "x.%lld", (long long)i);
        s->tensors[i] = (tsr_safetensors_tensor){s->names[i], s->x[i], TSR_DTYPE_NONE};
        s->targets[i] = (tsr_safetensors_target){s->names[i], s->x[i]};
    }
    tsr_layout_destroy(layout);
    tsr_mesh_destroy(mesh);
    return status;
}

/* Local: memory, tensors, and their elements. */
static tsr_status make_side(side *s)
{
    const size_t count = (size_t)s->j->tensors;
    s->x = calloc(count, sizeof(tsr_dtensor *));
    s->names = calloc(count, sizeof *s->names);
    s->tensors = calloc(count, sizeof *s->tensors);
    s->targets = calloc(count, sizeof *s->targets);
    s->piece = malloc(PLAIN_PIECE);
    if (!s->x || !s->names || !s->tensors || !s->targets || !s->piece)
        return tsr_status_set(TSR_ERROR_MEMORY, CALL ": there is no memory for the list of %zu tensors", count);
    TSR_TRY(make_tensors(s));
    size_t bytes = 0;
    for (int64_t i = 0; i < s->count; i++)
        bytes += local_bytes(s->x[i]);
    s->memory = malloc(bytes + 1);
    if (!s->memory)
        return tsr_status_set(TSR_ERROR_MEMORY, CALL ": there is no memory for a copy of %zu bytes", bytes);
    uint64_t state = 1;
    next_bytes(&state, (unsigned char *)s->piece, PLAIN_PIECE);
    fill(s);
    return make_folder(s);
}

static tsr_status run_side(side *s)
{
    TSR_TRY(tsr_comm_share_status(s->comm, CALL, make_side(s)));
    TSR_TRY(tsr_comm_broadcast(s->comm, s->folder, sizeof s->folder, TSR_U8, 0, tsr_device_host(), NULL));
    snprintf(s->checkpoint, sizeof s->checkpoint, "%s/checkpoint", s->folder);
    snprintf(s->plain, sizeof s->plain, "%s/plain", s->folder);
    snprintf(s->copied, sizeof s->copied, "%s/copied", s->folder);
    bench_step(&s->j->settings, s->j->place, s->rank);
    TSR_TRY(measure(s));
    return check(s);
}

static tsr_status run_rank(tsr_comm *comm, void *arg)
{
    job *const j = arg;
    side s = {.j = j, .comm = comm, .rank = tsr_comm_rank(comm)};
    /* All ranks are done with the files before they go. */
    const tsr_status status = tsr_comm_share_status(comm, CALL, run_side(&s));
    if (s.rank == 0 && s.checkpoint[0] != '\0')
        plain_remove(s.checkpoint);
    if (s.rank == 0 && s.folder[0] != '\0')
        plain_remove(s.folder);
    for (int64_t i = 0; i < s.count; i++)
        tsr_dtensor_destroy(s.x[i]);
    free(s.x);
    free(s.names);
    free(s.tensors);
    free(s.targets);
    free(s.memory);
    free(s.piece);
    return status;
}

/* The median time of what a line is compared with, over that of its subject. */
static double share_of(const job *j, subject of, subject what)
{
    return j->spreads[what].median > 0 ? j->spreads[of].median / j->spreads[what].median : 0;
}

static json_t *spread_or_null(const job *j, bool there, subject what)
{
    return there ? spread_to_json(j->spreads[what]) : json_null();
}

static json_t *line_to_json(const job *j, int line)
{
    const subject what = lines[line].subject, plain = lines[line].plain;
    const bool copies = lines[line].copies, loads = lines[line].cache != NULL;
    json_t *row = json_pack("{ss ss ss? ss sI}", "bench", "checkpoint", "pass", lines[line].pass, "cache",
                            lines[line].cache, "engine", place_engine(j->place), "ranks", (json_int_t)j->ranks);
    char *const mesh = mesh_text(j->mesh), *const placements = layout_text(j->layout);
    row = json_with_field(row, "mesh", mesh ? json_string(mesh) : NULL);
    row = json_with_field(row, "shape", sizes_to_json(j->shape.size, j->shape.ndim));
    row = json_with_field(row, "dtype", json_string(tsr_dtype_name(tsr_layout_dtype(j->layout))));
    row = json_with_field(row, "placements", placements ? json_string(placements) : NULL);
    row = json_with_field(row, "tensors", json_integer(j->tensors));
    row = json_with_field(row, "payload_bytes", json_integer(j->bytes));
    row = json_with_field(row, "seconds", spread_to_json(j->spreads[what]));
    row = json_with_field(row, "bandwidth", json_real((double)j->bytes / j->spreads[what].median));
    row = json_with_field(row, "plain", json_string(lines[line].plain_name));
    row = json_with_field(row, "plain_seconds", spread_to_json(j->spreads[plain]));
    row = json_with_field(row, "of_plain", json_real(share_of(j, plain, what)));
    row = json_with_field(row, "copy_seconds", spread_or_null(j, copies, COPY));
    row = json_with_field(row, "of_copy", copies ? json_real(share_of(j, COPY, what)) : json_null());
    row = json_with_field(row, "bytes_read", loads ? json_integer(j->bytes_read) : json_null());
    free(mesh);
    free(placements);
    return json_with_field(row, "wrong", j->settings.checks ? json_integer(j->wrong) : json_null());
}

static void say_names(void)
{
    static const char format[] = "#%-7s %5s %6s %-24s %14s %12s %10s %-11s %12s %9s %9s %7s %7s\n";
    say(format, " pass", "cache", "ranks", "layout", "size", "time", "rate", "plain", "time", "of_plain", "of_copy",
        "#wrong", "noise");
    say(format, "", "", "", "", "(B)", "(ms)", "(GB/s)", "", "(ms)", "", "", "", "(%)");
}

static void say_line(const job *j, int line)
{
    const subject what = lines[line].subject, plain = lines[line].plain;
    char wrong[24] = "N/A", of_copy[24] = "", *const placements = layout_text(j->layout);
    if (j->settings.checks)
        snprintf(wrong, sizeof wrong, "%lld", (long long)j->wrong);
    if (lines[line].copies)
        snprintf(of_copy, sizeof of_copy, "%.3f", share_of(j, COPY, what));
    say(" %-7s %5s %6d %-24s %14lld %12.2f %10.2f %-11s %12.2f %9.3f %9s %7s %7.1f\n", lines[line].pass,
        lines[line].cache ? lines[line].cache : "", j->ranks, placements ? placements : "", (long long)j->bytes,
        1e3 * j->spreads[what].median, (double)j->bytes / j->spreads[what].median / 1e9, lines[line].plain_name,
        1e3 * j->spreads[plain].median, share_of(j, plain, what), of_copy, wrong, 100 * spread_noise(j->spreads[what]));
    if (!placements)
        say_memory_is_short();
    free(placements);
}

static int print_lines(job *j)
{
    int status = EXIT_DONE;
    for (int what = 0; what < SUBJECTS; what++)
        if (tsr_bench_sum_up(j->seconds[what], j->settings.iterations, &j->spreads[what]) != TSR_OK)
            return complain_status(EXIT_REFUSED);
    if (!j->given->value[OPT_JSON] && !j->begun)
        say_names();
    for (int line = 0; line < LINES && status == EXIT_DONE; line++)
        if (j->given->value[OPT_JSON])
            status = print_json(line_to_json(j, line));
        else
            say_line(j, line);
    fflush(stdout);
    j->begun = true;
    if (status == EXIT_DONE && j->wrong > 0)
        return complain(EXIT_REFUSED, "%lld elements are wrong", (long long)j->wrong);
    return status;
}

/* The number of bytes of a tensor. */
static int64_t tensor_bytes(const job *j)
{
    int64_t bytes = (int64_t)tsr_dtype_bytes(tsr_layout_dtype(j->layout));
    for (int i = 0; i < j->shape.ndim; i++)
        bytes *= j->shape.size[i];
    return bytes;
}

static int measure_size(job *j, int64_t bytes)
{
    const int64_t each = tensor_bytes(j);
    if (each == 0)
        return complain(EXIT_REFUSED, "--shape has no elements, so that there is nothing to save");
    j->tensors = bytes > each ? bytes / each : 1;
    j->bytes = j->tensors * each;
    j->plain_runs = 0;
    const int status = bench_on_ranks(&j->settings, EXIT_DONE, j->place, j->ranks, run_rank, j);
    return status == EXIT_DONE && place_speaks(j->place) ? print_lines(j) : status;
}

/* Measures all sizes of a layout. */
static int measure_layout(job *j, const char *placements)
{
    tsr_dtype dtype;
    int status = parse_dtype(j->given->value[OPT_DTYPE], &dtype);
    if (status == EXIT_DONE)
        status = parse_layout("--placements", placements, j->mesh, &j->shape, dtype, &j->layout);
    for (int64_t bytes = j->sizes.begin; bytes > 0 && status == EXIT_DONE; bytes = size_range_next(&j->sizes, bytes))
        status = measure_size(j, bytes);
    tsr_layout_destroy(j->layout);
    j->layout = NULL;
    return status;
}

/* One placement for each mesh dim, the same for all. */
static int measure_usual(job *j, const char *placement)
{
    text_buffer text = {0};
    for (int i = 0; i < tsr_mesh_ndim(j->mesh); i++)
        text_buffer_print(&text, i > 0 ? ",%s" : "%s", placement);
    char *const placements = text_buffer_take(&text, NULL);
    const int status =
        placements ? measure_layout(j, placements) : complain(EXIT_REFUSED, "there is no memory for the placements");
    free(placements);
    return status;
}

static int measure_all(job *j)
{
    static const char *const usual[] = {"S(0)", "S(1)", "S(1;interleave=8)"};
    int status = EXIT_DONE;
    for (int i = 0; i < j->given->given_count && status == EXIT_DONE; i++)
        if (j->given->given[i].option == OPT_PLACEMENTS)
            status = measure_layout(j, j->given->given[i].value);
    for (size_t i = 0; i < sizeof usual / sizeof *usual && status == EXIT_DONE && !j->given->value[OPT_PLACEMENTS]; i++)
        status = measure_usual(j, usual[i]);
    return status;
}

static int read_job(job *j)
{
    const tool_arguments *const given = j->given;
    const char *const *const value = given->value;
    int status = bench_settings_read(given, &j->settings);
    if (status == EXIT_DONE)
        status = size_range_read(given, &j->sizes);
    if (status == EXIT_DONE && j->sizes.begin == 0)
        j->sizes.begin = j->sizes.end = INT64_C(1) << 28;
    if (status == EXIT_DONE)
        status = parse_shape(value[OPT_SHAPE] ? value[OPT_SHAPE] : "512x4096", &j->shape);
    if (status == EXIT_DONE)
        status = parse_mesh(value[OPT_MESH] ? value[OPT_MESH] : "2", &j->mesh);
    if (status == EXIT_DONE)
        status = place_open(given, &j->place);
    if (status == EXIT_DONE)
        status = place_count_ranks(j->place, j->mesh, NULL, &j->ranks);
    for (int what = 0; what < SUBJECTS && status == EXIT_DONE; what++) {
        j->seconds[what] = calloc((size_t)j->settings.iterations, sizeof(double));
        if (!j->seconds[what])
            status = complain(EXIT_REFUSED, "there is no memory for %lld times", (long long)j->settings.iterations);
    }
    return status;
}

static int run_bench(const tool_arguments *given)
{
    job j = {.given = given,
             .settings = {.iterations = 5, .warm_ups = 1, .checks = true},
             .parent = given->value[OPT_OUTPUT] ? given->value[OPT_OUTPUT] : "."};
    int status = read_job(&j);
    if (status == EXIT_DONE)
        status = measure_all(&j);
    for (int what = 0; what < SUBJECTS; what++)
        free(j.seconds[what]);
    place_close(j.place);
    tsr_mesh_destroy(j.mesh);
    return status == EXIT_DONE ? finish_stdout() : status;
}

const tool_command bench_checkpoint_command = {
    .name = "bench checkpoint",
    .summary = "how long saves and loads of checkpoints take, next to plain writes and reads",
    .details =
        "Saves and loads a checkpoint of tensors of --shape, --begin bytes together, in a new folder in --output, "
        "which "
        "is removed. Without --placements it measures S(0), S(1) and S(1;interleave=8) on each mesh dim.\n\n"
        "All is measured in turns. save is tsr_checkpoint_save(): all bytes are on the disk at its end, and the "
        "checkpoint before is removed; plain is a file of as many bytes that one process writes, brings to the disk "
        "and renames over the one before, as dd conv=fsync does. start is tsr_checkpoint_start(), for which training "
        "waits; plain is a copy of all shards in memory. load is tsr_checkpoint_load(), warm, with the files in the "
        "system's memory, and cold, after it was asked to forget them (posix_fadvise); plain is one process that "
        "reads as large a file through 256 KiB of memory. copy is such a file copied to a new one that is brought to "
        "the "
        "disk, as cp does.\n\n"
        "Times are those of the slowest rank, medians; of_plain and of_copy are the other time over this one. "
        "bytes_read is what all ranks together read of elements in one load. A last load into cleared memory is "
        "checked.",
    .examples = "  tessera bench checkpoint --begin 1G\n"
                "  tessera bench checkpoint --mesh fsdp=2,tp=2 --placements 'S(0),S(1)' --placements 'R,S(0)' --json\n"
                "  mpirun -n 2 tessera bench checkpoint --output /scratch\n",
    .takes = TAKES(MESH) | TAKES(SHAPE) | TAKES(PLACEMENTS) | TAKES(DTYPE) | TAKES(BEGIN) | TAKES(END) | TAKES(FACTOR) |
             TAKES(OUTPUT) | TAKES(ITERATIONS) | TAKES(WARM_UP) | TAKES(CHECK) | TAKES(ENGINE) | TAKES(JSON),
    .repeats = TAKES(PLACEMENTS),
    .defaults = {{OPT_MESH, "2"},
                 {OPT_SHAPE, "512x4096"},
                 {OPT_PLACEMENTS, "S(0), then S(1), then S(1;interleave=8), on each mesh dim"},
                 {OPT_BEGIN, "256M"},
                 {OPT_ITERATIONS, "5"},
                 {OPT_WARM_UP, "1"},
                 {OPT_OUTPUT, "this folder"}},
    .output = "the folder in which files are written, in a new folder that is removed",
    .run = run_bench,
};
