#include "cli/report.h"
#include "files/npy.h"
#include "files/output.h"
#include "place/local.h"
#include "place/move.h"
#include "shards/shards.h"

#include <tessera/sys/status.h>

#include <stdlib.h>

/* What the ranks share. Each rank writes only its own row and result. */
typedef struct job {
    place *place;
    move_request request;
    tsr_mesh *mesh;        /* abstract: used before ranks run */
    tsr_layout *from, *to; /* on `mesh` */
    npy_file global;       /* --input */
    shards shards;         /* --input-shards: a file for each rank of the mesh */
    int ranks;
    struct row {
        int64_t bytes_received;
        double seconds;
        bool inside; /* the rank is in the mesh, so it has a file */
    } * rows;
    tsr_tensor *results; /* local results on the heap; data is NULL for a rank outside the mesh or of another process */
} job;

/* Makes this rank's source: its part of the global tensor, or the tensor in its file, which is
 * borrowed. */
static tsr_status make_source(const job *j, const move *m, int rank, tsr_dtensor **out)
{
    const npy_file *const global = &j->global;
    if (global->memory)
        return tsr_distribute_tensor(&global->tensor, m->mesh, tsr_layout_placements(m->from), NULL, out);
    if (global->path)
        return tsr_distribute_file(global->path, (int64_t)global->header.data, global->tensor.dtype, m->from, NULL,
                                   out);
    tsr_tensor outside = {.dtype = j->request.dtype, .ndim = 1};
    npy_file *const file = shards_find(&j->shards, rank);
    if (file)
        TSR_TRY(npy_load(file));
    return tsr_dtensor_from_local(file ? &file->tensor : &outside, m->from, NULL, out);
}

/* Allocates host memory for the result, which outlives the rank. */
static tsr_status make_result(const move *m, tsr_tensor *out)
{
    size_t bytes;
    int64_t shape[TSR_MAX_DIMS];
    void *data;
    TSR_TRY(tsr_layout_local_bytes(m->to, NULL, &bytes));
    TSR_TRY(tsr_layout_local(m->to, NULL, shape, NULL));
    if (posix_memalign(&data, 64, bytes > 0 ? bytes : 1) != 0)
        return tsr_status_set(TSR_ERROR_MEMORY, "there is no memory for %zu bytes of result", bytes);
    *out = tsr_tensor_contiguous(data, tsr_layout_dtype(m->to), tsr_layout_ndim(m->to), shape);
    return TSR_OK;
}

static tsr_status time_move(const move *m, const tsr_tensor *src, const tsr_tensor *dst, double *seconds)
{
    TSR_TRY(tsr_comm_barrier(m->comm));
    const double start = clock_seconds();
    TSR_TRY(move_execute(m, src, dst));
    TSR_TRY(place_settle(m->place, tsr_comm_rank(m->comm)));
    TSR_TRY(tsr_comm_barrier(m->comm));
    *seconds = clock_seconds() - start;
    return TSR_OK;
}

/* Moves on a device with its own memory: copies the source there, and the result back. */
static tsr_status move_on_device(const move *m, const tsr_tensor *source, const tsr_tensor *result, double *seconds)
{
    local src = {.place = NULL}, dst = {.place = NULL};
    tsr_status status = local_create(m->place, m->comm, m->from, &src);
    if (status == TSR_OK)
        status = local_create(m->place, m->comm, m->to, &dst);
    if (status == TSR_OK)
        status = local_write(&src, source);
    if (status == TSR_OK)
        status = time_move(m, &src.tensor, &dst.tensor, seconds);
    if (status == TSR_OK)
        status = local_pull(&dst, result->data);
    local_free(&dst);
    local_free(&src);
    return status;
}

static tsr_status run_move(job *j, const move *m, int rank)
{
    struct row *const row = &j->rows[rank];
    tsr_tensor *const result = &j->results[rank];
    tsr_dtensor *source;
    row->inside = move_has_rank(m);
    row->bytes_received = tsr_plan_bytes_received(m->plan);
    TSR_TRY(make_source(j, m, rank, &source));
    const tsr_tensor given = tsr_dtensor_to_local(source);
    tsr_status status = row->inside ? make_result(m, result) : TSR_OK;
    if (status == TSR_OK)
        status = (place_enqueues(m->place) ? move_on_device : time_move)(m, &given, result, &row->seconds);
    tsr_dtensor_destroy(source);
    return status;
}

static tsr_status run_rank(tsr_comm *comm, void *arg)
{
    job *const j = arg;
    move m;
    TSR_TRY(move_create(j->place, comm, &j->request, &m));
    tsr_status status = run_move(j, &m, tsr_comm_rank(comm));
    if (status == TSR_OK)
        status = place_share(j->place, comm, j->rows, sizeof *j->rows);
    move_finish(&m);
    return status;
}

/* Opens --input, which gives the shape and, without --dtype, the dtype. Rank threads share its
 * elements in memory. Processes would each hold all elements, so each reads only its part, if the
 * file is plain (npy_is_plain()). */
static int open_global(const tool_arguments *given, job *j, bool dtype_given)
{
    npy_file *const global = &j->global;
    if (npy_open(given->value[OPT_INPUT], global) != TSR_OK)
        return complain_status(EXIT_REFUSED);
    if (dtype_given && npy_retype(global, j->request.dtype) != TSR_OK)
        return complain_status(EXIT_REFUSED);
    const bool in_parts = place_launched(j->place) > 0 && npy_is_plain(global);
    if (!in_parts && npy_load(global) != TSR_OK)
        return complain_status(EXIT_REFUSED);
    j->request.dtype = j->global.tensor.dtype;
    return EXIT_DONE;
}

/* Takes the shape from the file; refuses a --shape that differs. */
static int settle_global_shape(const tensor_shape *wanted, const char *text, job *j)
{
    const tsr_tensor *const tensor = &j->global.tensor;
    bool same = !wanted || wanted->ndim == tensor->ndim;
    j->request.shape.ndim = tensor->ndim;
    for (int d = 0; d < tensor->ndim; d++) {
        j->request.shape.size[d] = tensor->shape[d];
        same = same && (!wanted || wanted->size[d] == tensor->shape[d]);
    }
    if (same)
        return EXIT_DONE;
    char has[SHAPE_TEXT_BYTES];
    print_shape(tensor->ndim, tensor->shape, has);
    return complain(EXIT_REFUSED, "--shape is %s, but the tensor in --input is %s", text, has);
}

static int open_shards(const tool_arguments *given, const tensor_shape *wanted, job *j, bool dtype_given)
{
    int status = shards_open(given->value[OPT_INPUT_SHARDS], j->mesh, dtype_given ? j->request.dtype : TSR_DTYPE_NONE,
                             &j->shards);
    if (status != EXIT_DONE)
        return status;
    j->request.dtype = j->shards.dtype;
    if (!wanted)
        return shards_global_shape(&j->shards, j->mesh, given->value[OPT_FROM], &j->request.shape);
    j->request.shape = *wanted;
    return EXIT_DONE;
}

static int open_input(const tool_arguments *given, job *j)
{
    const char *const shape_text = given->value[OPT_SHAPE];
    const bool dtype_given = given->value[OPT_DTYPE] != NULL;
    tensor_shape shape;
    int status = shape_text ? parse_shape(shape_text, &shape) : EXIT_DONE;
    if (status == EXIT_DONE)
        status = parse_dtype(given->value[OPT_DTYPE], &j->request.dtype);
    if (status != EXIT_DONE)
        return status;
    const tensor_shape *const wanted = shape_text ? &shape : NULL;
    if (!given->value[OPT_INPUT])
        return open_shards(given, wanted, j, dtype_given);
    status = open_global(given, j, dtype_given);
    return status == EXIT_DONE ? settle_global_shape(wanted, shape_text, j) : status;
}

/* Reads all options and opens the input; runs and writes nothing. */
static int prepare_job(const tool_arguments *given, job *j)
{
    int status = place_open(given, &j->place);
    if (status == EXIT_DONE)
        status = place_parse_mode(j->place, given->value[OPT_MODE], &j->request.mode);
    if (status == EXIT_DONE)
        status = parse_mesh(j->request.mesh, &j->mesh);
    if (status == EXIT_DONE)
        status = check_placements("--from", j->request.from);
    if (status == EXIT_DONE)
        status = check_placements("--to", j->request.to);
    if (status == EXIT_DONE)
        status = place_count_ranks(j->place, j->mesh, &j->ranks);
    if (status == EXIT_DONE)
        status = output_check(given->value[OPT_OUTPUT]);
    if (status == EXIT_DONE)
        status = shards_refuse_others(given->value[OPT_OUTPUT], j->mesh);
    if (status == EXIT_DONE)
        status = open_input(given, j);
    if (status == EXIT_DONE)
        status = parse_layout("--from", j->request.from, j->mesh, &j->request.shape, j->request.dtype, &j->from);
    if (status == EXIT_DONE)
        status = parse_layout("--to", j->request.to, j->mesh, &j->request.shape, j->request.dtype, &j->to);
    return status;
}

/* Writes the results of this process's ranks, and renames the files to their names. */
static int write_results(output *files, const job *j)
{
    int status = EXIT_DONE;
    for (int r = 0; r < j->ranks && status == EXIT_DONE; r++) {
        char name[32];
        snprintf(name, sizeof name, "rank-%d.npy", r);
        if (j->results[r].data)
            status = output_add(files, name, &j->results[r]);
    }
    return status == EXIT_DONE ? output_publish(files) : status;
}

static int report_job(const tool_arguments *given, const job *j)
{
    int64_t max = 0, total = 0, files = 0;
    double seconds = 0;
    json_t *names = json_array();
    for (int r = 0; r < j->ranks; r++) {
        const struct row *const row = &j->rows[r];
        max = row->bytes_received > max ? row->bytes_received : max;
        total += row->bytes_received;
        seconds = row->seconds > seconds ? row->seconds : seconds;
        if (!row->inside)
            continue;
        files++;
        names = json_with_item(names, json_sprintf("rank-%d.npy", r));
    }
    if (given->value[OPT_JSON])
        return print_json(json_pack("{sI s{sI sI} sf so}", "ranks", (json_int_t)files, "bytes_received", "max",
                                    (json_int_t)max, "total", (json_int_t)total, "seconds", seconds, "files", names));
    json_decref(names);
    say("%lld files in %s; %lld bytes received (at most %lld by one rank) in %.6f s\n", (long long)files,
        given->value[OPT_OUTPUT], (long long)total, (long long)max, seconds);
    return EXIT_DONE;
}

static int print_report(const tool_arguments *given, const job *j)
{
    const int status = report_job(given, j);
    return status == EXIT_DONE ? finish_stdout() : status;
}

/* Writes the files and prints the report; removes the files again if any process fails in
 * either. */
static int deliver_job(const tool_arguments *given, const job *j)
{
    output files;
    int status = output_begin(given->value[OPT_OUTPUT], &files);
    const bool begun = status == EXIT_DONE;
    if (begun)
        status = write_results(&files, j);
    status = place_agree(j->place, status);
    if (status == EXIT_DONE)
        status = place_agree(j->place, print_report(given, j));
    if (status == EXIT_DONE)
        output_finish(&files);
    else if (begun)
        output_cancel(&files);
    return status;
}

static int run_job(const tool_arguments *given, job *j)
{
    j->rows = calloc((size_t)j->ranks, sizeof *j->rows);
    j->results = calloc((size_t)j->ranks, sizeof *j->results);
    if (!j->rows || !j->results)
        return complain(EXIT_REFUSED, "there is no memory for %d ranks", j->ranks);
    if (place_run(j->place, j->ranks, run_rank, j) != TSR_OK)
        return complain_status(EXIT_REFUSED);
    return deliver_job(given, j);
}

static void finish_job(job *j)
{
    for (int r = 0; j->results && r < j->ranks; r++)
        free(j->results[r].data);
    free(j->results);
    free(j->rows);
    npy_close(&j->global);
    shards_close(&j->shards);
    tsr_layout_destroy(j->from);
    tsr_layout_destroy(j->to);
    tsr_mesh_destroy(j->mesh);
    place_close(j->place);
}

static int run_redistribute(const tool_arguments *given)
{
    if ((!given->value[OPT_INPUT]) == (!given->value[OPT_INPUT_SHARDS]))
        return complain(EXIT_USAGE, "redistribute needs either --input X.npy or --input-shards DIR");
    job j = {.request = {.mesh = given->value[OPT_MESH], .from = given->value[OPT_FROM], .to = given->value[OPT_TO]}};
    int status = prepare_job(given, &j);
    status = place_agree(j.place, status);
    if (status == EXIT_DONE)
        status = run_job(given, &j);
    finish_job(&j);
    return status;
}

const tool_command redistribute_command = {
    .name = "redistribute",
    .summary = "move a tensor from one layout to another, for real",
    .details =
        "Runs one rank for each rank of the mesh: a thread, with --engine nccl a GPU. With --device cuda the tensors "
        "are in the memory of "
        "GPUs while they move, which ranks of threads share. The input is the global tensor, of which each rank takes "
        "its part (a Partial "
        "source holds terms that reduce to it), or every rank's local tensor as it is. Each rank's local tensor after "
        "the move is "
        "written to rank-N.npy, in C order and little-endian; on failure nothing is left there. A folder with files of "
        "ranks that the mesh "
        "does not have is refused. bf16 travels as <u2 and f8e4m3, f8e5m2 "
        "as |u1: say so with --dtype. --shape gives the global shape of shards, which otherwise follows from theirs.",
    .examples = "  tessera redistribute --mesh 2x2 --from 'S(0),S(1)' --to 'S(1),S(0)' --input x.npy --output out\n"
                "  tessera redistribute --mesh 4 --from P --to 'S(0)' --input-shards out --output reduced --json\n"
                "  tessera redistribute --mesh 3 --from 'S(0;unit=64)' --to R --input w.npy --dtype bf16 --output full "
                "--mode message\n",
    .takes = TAKES(MESH) | TAKES(FROM) | TAKES(TO) | TAKES(INPUT) | TAKES(INPUT_SHARDS) | TAKES(OUTPUT) | TAKES(SHAPE) |
             TAKES(DTYPE) | TAKES(MODE) | TAKES(ENGINE) | TAKES(DEVICE) | TAKES(JSON),
    .requires_all = TAKES(MESH) | TAKES(FROM) | TAKES(TO) | TAKES(OUTPUT),
    .defaults = {{OPT_SHAPE, "that of the input"}, {OPT_DTYPE, "that of the input"}},
    .run = run_redistribute,
};
