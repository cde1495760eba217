#include "cli/report.h"
#include "files/file.h"
#include "files/output.h"
#include "place/local.h"
#include "place/move.h"
#include "shards/shards.h"

#include <tessera/npy.h>
#include <tessera/sys/status.h>

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* What the ranks share. Each rank writes only its own row and result. */
typedef struct job {
    place *place;
    move_request request;
    tsr_mesh *mesh, *to_mesh; /* abstract: used before ranks run */
    tsr_layout *from, *to;    /* on `mesh` and `to_mesh` */
    tsr_npy *global;          /* --input; NULL: shards */
    shards shards;            /* --input-shards: a file for each rank of the mesh */
    const char *file;         /* --output if it names a file for the whole tensor, else NULL */
    int ranks;
    struct row {
        int64_t bytes_received;
        double seconds;
        bool inside; /* the rank is in the destination's mesh, so it has a part of the result */
    } * rows;
    tsr_tensor *results; /* local results on the heap; data is NULL for a rank outside to_mesh or of another process */
} job;

/* Makes this rank's source: its part of the global tensor, or the tensor in its file, which is
 * borrowed. */
static tsr_status make_source(const job *j, const move *m, int rank, tsr_dtensor **out)
{
    if (j->global)
        return tsr_npy_read(j->global, m->from, NULL, out);
    tsr_tensor part = {.dtype = j->request.dtype, .ndim = 1};
    tsr_npy *const file = shards_find(&j->shards, rank);
    if (file)
        TSR_TRY(tsr_npy_load(file, &part));
    return tsr_dtensor_from_local(&part, m->from, NULL, out);
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
    row->inside = move_has_rank(m->to_mesh);
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
 * elements lie in the file as the library has them. */
static int open_global(const tool_arguments *given, job *j, bool dtype_given)
{
    tsr_tensor loaded;
    if (tsr_npy_open(given->value[OPT_INPUT], dtype_given ? j->request.dtype : TSR_DTYPE_NONE, &j->global) != TSR_OK)
        return complain_status(EXIT_REFUSED);
    const tsr_npy_header *const header = tsr_npy_get_header(j->global);
    const bool in_parts = place_launched(j->place) > 0 && !header->fortran && !header->big_endian;
    if (!in_parts && tsr_npy_load(j->global, &loaded) != TSR_OK)
        return complain_status(EXIT_REFUSED);
    j->request.dtype = header->dtype;
    return EXIT_DONE;
}

/* Takes the shape from the file; refuses a --shape that differs. */
static int settle_global_shape(const tensor_shape *wanted, const char *text, job *j)
{
    const tsr_npy_header *const tensor = tsr_npy_get_header(j->global);
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

static int read_meshes(const tool_arguments *given, job *j)
{
    const int status = parse_mesh(j->request.mesh, &j->mesh);
    if (status != EXIT_DONE)
        return status;
    if (j->request.to_mesh)
        return parse_mesh_in(NULL, "--to-mesh", given->value[OPT_TO_MESH], &j->to_mesh);
    j->to_mesh = tsr_mesh_retain(j->mesh);
    return EXIT_DONE;
}

/* Refuses a file for the whole tensor that is the input, by whatever name. */
static int check_file(const char *path, const char *input)
{
    struct stat out, in;
    if (input && stat(path, &out) == 0 && stat(input, &in) == 0 && out.st_dev == in.st_dev && out.st_ino == in.st_ino)
        return complain(EXIT_REFUSED, "--output %s is the file of --input, which stays; give another name", path);
    return file_check_output("--output", path);
}

/* Refuses an --output that cannot be written. */
static int check_output(const tool_arguments *given, job *j)
{
    const char *const path = given->value[OPT_OUTPUT];
    const size_t length = strlen(path), end = strlen(".npy");
    if (length >= end && strcmp(path + length - end, ".npy") == 0) {
        j->file = path;
        return check_file(path, given->value[OPT_INPUT]);
    }
    const int status = output_check(path);
    return status == EXIT_DONE ? shards_refuse_others(path, j->to_mesh) : status;
}

/* Reads all options and opens the input; runs and writes nothing. */
static int prepare_job(const tool_arguments *given, job *j)
{
    int status = place_open(given, &j->place);
    if (status == EXIT_DONE)
        status = place_parse_mode(j->place, given->value[OPT_MODE], &j->request.mode);
    if (status == EXIT_DONE)
        status = read_meshes(given, j);
    if (status == EXIT_DONE)
        status = check_placements("--from", j->request.from);
    if (status == EXIT_DONE)
        status = check_placements("--to", j->request.to);
    if (status == EXIT_DONE)
        status = place_count_ranks(j->place, j->mesh, j->to_mesh, &j->ranks);
    if (status == EXIT_DONE)
        status = check_output(given, j);
    if (status == EXIT_DONE)
        status = open_input(given, j);
    if (status == EXIT_DONE)
        status = parse_layout("--from", j->request.from, j->mesh, &j->request.shape, j->request.dtype, &j->from);
    if (status == EXIT_DONE)
        status = parse_layout("--to", j->request.to, j->to_mesh, &j->request.shape, j->request.dtype, &j->to);
    return status;
}

/* Writes this rank's part of the whole tensor; collective. */
static tsr_status write_part(const job *j, const tsr_layout *layout, int rank)
{
    const tsr_tensor outside = {.dtype = j->request.dtype, .ndim = 1};
    const tsr_tensor *const result = &j->results[rank];
    tsr_dtensor *y;
    TSR_TRY(tsr_dtensor_from_local(result->data ? result : &outside, layout, NULL, &y));
    const tsr_status status = tsr_npy_write(y, j->file, TSR_DTYPE_NONE);
    tsr_dtensor_destroy(y);
    return status;
}

static tsr_status write_whole(tsr_comm *comm, void *arg)
{
    const job *const j = arg;
    const move_request *const r = &j->request;
    tsr_mesh *mesh;
    tsr_layout *layout = NULL;
    TSR_TRY(tsr_mesh_parse(comm, NULL, r->to_mesh ? r->to_mesh : r->mesh, &mesh));
    tsr_status status = tsr_layout_parse(mesh, r->to, r->shape.ndim, r->shape.size, r->dtype, &layout);
    if (status == TSR_OK)
        status = write_part(j, layout, tsr_comm_rank(comm));
    tsr_layout_destroy(layout);
    tsr_mesh_destroy(mesh);
    return status;
}

/* Writes the whole tensor to the file of --output. */
static int write_file(output *files, job *j)
{
    if (place_run(j->place, j->ranks, write_whole, j) != TSR_OK)
        return complain_status(EXIT_REFUSED);
    return place_speaks(j->place) ? output_add_complete(files, j->file) : EXIT_DONE;
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
        if (!j->file)
            names = json_with_item(names, json_sprintf("rank-%d.npy", r));
    }
    if (j->file)
        names = json_with_item(names, json_string(output_file_name(j->file)));
    if (given->value[OPT_JSON])
        return print_json(json_pack("{sI s{sI sI} sf so}", "ranks", (json_int_t)files, "bytes_received", "max",
                                    (json_int_t)max, "total", (json_int_t)total, "seconds", seconds, "files", names));
    json_decref(names);
    if (j->file)
        say("the whole tensor in %s", j->file);
    else
        say("%lld files in %s", (long long)files, given->value[OPT_OUTPUT]);
    say("; %lld bytes received (at most %lld by one rank) in %.6f s\n", (long long)total, (long long)max, seconds);
    return EXIT_DONE;
}

static int print_report(const tool_arguments *given, const job *j)
{
    const int status = report_job(given, j);
    return status == EXIT_DONE ? finish_stdout() : status;
}

/* Writes the shards' files, or the whole tensor's; `*begun` becomes true if output_finish() or
 * output_cancel() must follow. */
static int write_output(const tool_arguments *given, output *files, job *j, bool *begun)
{
    if (j->file) {
        output_begin_file(files);
        *begun = true;
        return write_file(files, j);
    }
    const int status = output_begin(given->value[OPT_OUTPUT], files);
    *begun = status == EXIT_DONE;
    return *begun ? output_add_ranks(files, j->results, j->ranks) : status;
}

/* Writes the output and prints the report; removes the files again if any process fails in
 * either. */
static int deliver_job(const tool_arguments *given, job *j)
{
    output files;
    bool begun = false;
    int status = place_agree(j->place, write_output(given, &files, j, &begun));
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
    tsr_npy_destroy(j->global);
    shards_close(&j->shards);
    tsr_layout_destroy(j->from);
    tsr_layout_destroy(j->to);
    tsr_mesh_destroy(j->mesh);
    tsr_mesh_destroy(j->to_mesh);
    place_close(j->place);
}

static int run_redistribute(const tool_arguments *given)
{
    if ((!given->value[OPT_INPUT]) == (!given->value[OPT_INPUT_SHARDS]))
        return complain(EXIT_USAGE, "redistribute needs either --input X.npy or --input-shards DIR");
    job j = {.request = {.mesh = given->value[OPT_MESH],
                         .from = given->value[OPT_FROM],
                         .to = given->value[OPT_TO],
                         .to_mesh = given->value[OPT_TO_MESH]}};
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
        "Runs one rank for each rank of the meshes: a thread, with --engine nccl a GPU. With --device cuda the tensors "
        "are in the memory of "
        "GPUs while they move, which ranks of threads share. The input is the global tensor, of which each rank takes "
        "its part (a Partial "
        "source holds terms that reduce to it), or every rank's local tensor as it is. Each rank's local tensor after "
        "the move is "
        "written to rank-N.npy, in C order and little-endian; on failure nothing is left there. A folder with files of "
        "ranks that the mesh "
        "does not have is refused. An --output that ends in .npy is one file, with the whole tensor: a Partial one is "
        "reduced. With --to-mesh the tensor goes to other ranks, or to the same ranks in another order. bf16 travels "
        "as <u2 and f8e4m3, f8e5m2 "
        "as |u1: say so with --dtype. --shape gives the global shape of shards, which otherwise follows from theirs.",
    .examples =
        "  tessera redistribute --mesh 2x2 --from 'S(0),S(1)' --to 'S(1),S(0)' --input x.npy --output out\n"
        "  tessera redistribute --mesh 4 --from P --to 'S(0)' --input-shards out --output reduced --json\n"
        "  tessera redistribute --mesh 4 --to-mesh 6 --from 'S(0)' --to 'S(0)' --input-shards out --output y.npy\n"
        "  tessera redistribute --mesh 3 --from 'S(0;unit=64)' --to R --input w.npy --dtype bf16 --output full "
        "--mode message\n",
    .output = "where the result goes: a folder, made if need be, for rank-N.npy, each rank's local tensor; or "
              "FILE.npy for the whole tensor",
    .takes = TAKES(MESH) | TAKES(TO_MESH) | TAKES(FROM) | TAKES(TO) | TAKES(INPUT) | TAKES(INPUT_SHARDS) |
             TAKES(OUTPUT) | TAKES(SHAPE) | TAKES(DTYPE) | TAKES(MODE) | TAKES(ENGINE) | TAKES(DEVICE) | TAKES(JSON),
    .requires_all = TAKES(MESH) | TAKES(FROM) | TAKES(TO) | TAKES(OUTPUT),
    .defaults = {{OPT_SHAPE, "that of the input"}, {OPT_DTYPE, "that of the input"}},
    .run = run_redistribute,
};
