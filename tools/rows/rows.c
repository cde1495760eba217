/* rows gather and rows update: rows of a table by the ids that files of ranks have. */
#include "cli/report.h"
#include "files/file.h"
#include "files/output.h"
#include "place/move.h"
#include "place/wholes.h"
#include "shards/shards.h"

#include <tessera/npy.h>
#include <tessera/sys/status.h>

#include <stdlib.h>
#include <string.h>

/* What the ranks share. Each rank writes only its own result and seconds. */
typedef struct job {
    const char *name; /* "rows gather" */
    bool gathers;
    tsr_rows_op op; /* of an update */
    place *place;
    tsr_mesh *mesh; /* abstract */
    tsr_npy *table;
    tsr_layout *layout; /* on `mesh` */
    shards ids, rows;
    const char *output;
    int ranks;
    tsr_tensor *results; /* of a gather, on the heap; data is NULL for a rank outside the mesh or of another process */
    double *seconds;
} job;

/* Memory for the rows of `count` ids, which outlives the rank. */
static tsr_status make_result(const job *j, int64_t count, tsr_tensor *out)
{
    int64_t shape[TSR_MAX_DIMS], elements;
    memcpy(shape, tsr_layout_shape(j->layout), sizeof(int64_t) * (size_t)tsr_layout_ndim(j->layout));
    shape[0] = count;
    *out = tsr_tensor_contiguous(NULL, tsr_layout_dtype(j->layout), tsr_layout_ndim(j->layout), shape);
    TSR_TRY(tsr_tensor_count(out, &elements));
    out->data = calloc((size_t)elements + 1, tsr_dtype_bytes(out->dtype));
    return out->data ? TSR_OK : tsr_status_set(TSR_ERROR_MEMORY, "there is no memory for %lld rows", (long long)count);
}

/* The rows that a rank brings to an update, or the memory that a gather writes. */
static tsr_status find_data(job *j, int rank, int64_t count, tsr_tensor *out)
{
    if (!j->gathers)
        return tsr_npy_load(shards_find(&j->rows, rank), out);
    const tsr_status status = make_result(j, count, out);
    j->results[rank] = *out;
    return status;
}

static tsr_status time_call(job *j, tsr_comm *comm, tsr_dtensor *table, const tsr_tensor *ids, const tsr_tensor *data)
{
    TSR_TRY(tsr_comm_barrier(comm));
    const double begin = clock_seconds();
    TSR_TRY(j->gathers ? tsr_rows_gather(table, ids, data) : tsr_rows_update(table, ids, data, j->op));
    TSR_TRY(tsr_comm_barrier(comm));
    j->seconds[tsr_comm_rank(comm)] = clock_seconds() - begin;
    return TSR_OK;
}

/* A rank whose files do not fit still makes the call, in which its peers wait: with no ids, or with
 * tensors that the call refuses. */
static tsr_status call_on_rank(job *j, tsr_comm *comm, tsr_dtensor *table)
{
    tsr_tensor ids = {.data = NULL}, data = {.data = NULL};
    const int rank = tsr_comm_rank(comm);
    tsr_npy *const file = shards_find(&j->ids, rank);
    tsr_status status = file ? tsr_npy_load(file, &ids) : TSR_OK;
    if (status == TSR_OK && file)
        status = find_data(j, rank, ids.ndim > 0 ? ids.shape[0] : 0, &data);
    TSR_TRY(tsr_comm_share_status(comm, j->name, status));
    return time_call(j, comm, table, &ids, &data);
}

static tsr_status run_rank(tsr_comm *comm, void *arg)
{
    job *const j = arg;
    tsr_mesh *mesh;
    tsr_dtensor *table = NULL;
    TSR_TRY(wholes_mesh(comm, NULL, j->mesh, &mesh));
    tsr_status status = wholes_read(j->table, mesh, j->layout, &table);
    if (status == TSR_OK)
        status = call_on_rank(j, comm, table);
    if (status == TSR_OK && !j->gathers)
        status = tsr_npy_write(table, j->output, TSR_DTYPE_NONE);
    if (status == TSR_OK)
        status = place_share(j->place, comm, j->seconds, sizeof *j->seconds);
    tsr_dtensor_destroy(table);
    tsr_mesh_destroy(mesh);
    return status;
}

/* Opens --table, which gives the shape and, without --dtype, the dtype. Rank threads share its
 * elements in memory; a process reads its part. */
static int open_table(const tool_arguments *given, job *j)
{
    tsr_dtype dtype = TSR_DTYPE_NONE;
    tsr_tensor loaded;
    int status = given->value[OPT_DTYPE] ? parse_dtype(given->value[OPT_DTYPE], &dtype) : EXIT_DONE;
    if (status != EXIT_DONE)
        return status;
    if (tsr_npy_open(given->value[OPT_TABLE], dtype, &j->table) != TSR_OK)
        return complain_status(EXIT_REFUSED);
    if (place_launched(j->place) == 0 && tsr_npy_load(j->table, &loaded) != TSR_OK)
        return complain_status(EXIT_REFUSED);
    const tsr_npy_header *const header = tsr_npy_get_header(j->table);
    tensor_shape shape = {.ndim = header->ndim};
    memcpy(shape.size, header->shape, sizeof shape.size);
    return parse_layout("--placements", given->value[OPT_PLACEMENTS], j->mesh, &shape, header->dtype, &j->layout);
}

static int parse_op(const char *text, tsr_rows_op *out)
{
    for (int op = 0; op < TSR_ROWS_OP_END; op++)
        if (strcmp(text, tsr_rows_op_name((tsr_rows_op)op)) == 0) {
            *out = (tsr_rows_op)op;
            return EXIT_DONE;
        }
    return complain(EXIT_USAGE, "--op '%s' is none of assign, add, mean and max", text);
}

static int open_shards(const tool_arguments *given, job *j)
{
    int status = shards_open(given->value[OPT_IDS], j->mesh, TSR_DTYPE_NONE, &j->ids);
    if (status == EXIT_DONE && !j->gathers)
        status = shards_open(given->value[OPT_ROWS], j->mesh, tsr_layout_dtype(j->layout), &j->rows);
    return status;
}

static int check_output(job *j)
{
    if (!j->gathers)
        return file_check_output("--output", j->output);
    const int status = output_check(j->output);
    return status == EXIT_DONE ? shards_refuse_others(j->output, j->mesh) : status;
}

/* Reads all options and opens the files; runs and writes nothing. */
static int prepare_job(const tool_arguments *given, job *j)
{
    int status = j->gathers ? EXIT_DONE : parse_op(given->value[OPT_OP], &j->op);
    if (status == EXIT_DONE)
        status = place_open(given, &j->place);
    if (status == EXIT_DONE)
        status = parse_mesh(given->value[OPT_MESH], &j->mesh);
    if (status == EXIT_DONE)
        status = check_placements("--placements", given->value[OPT_PLACEMENTS]);
    if (status == EXIT_DONE)
        status = place_count_ranks(j->place, j->mesh, NULL, &j->ranks);
    if (status == EXIT_DONE)
        status = check_output(j);
    if (status == EXIT_DONE)
        status = open_table(given, j);
    return status == EXIT_DONE ? open_shards(given, j) : status;
}

static int report_job(const tool_arguments *given, const job *j)
{
    int64_t ids = 0;
    double seconds = 0;
    json_t *names = json_array();
    for (int64_t i = 0; i < j->ids.count; i++) {
        const tsr_npy_header *const header = tsr_npy_get_header(j->ids.files[i]);
        ids += header->ndim > 0 ? header->shape[0] : 0;
        if (j->gathers)
            names = json_with_item(names, json_sprintf("rank-%lld.npy", (long long)j->ids.ranks[i]));
    }
    for (int r = 0; r < j->ranks; r++)
        seconds = j->seconds[r] > seconds ? j->seconds[r] : seconds;
    if (!j->gathers)
        names = json_with_item(names, json_string(output_file_name(j->output)));
    if (given->value[OPT_JSON])
        return print_json(json_pack("{ss sI sI sf so}", "op", j->gathers ? "gather" : tsr_rows_op_name(j->op), "ranks",
                                    (json_int_t)j->ids.count, "ids", (json_int_t)ids, "seconds", seconds, "files",
                                    names));
    json_decref(names);
    say("%lld ids of %lld ranks in %.6f s; %s in %s\n", (long long)ids, (long long)j->ids.count, seconds,
        j->gathers ? "their rows" : "the whole table", j->output);
    return EXIT_DONE;
}

static int print_report(const tool_arguments *given, const job *j)
{
    const int status = report_job(given, j);
    return status == EXIT_DONE ? finish_stdout() : status;
}

/* Makes the call and writes its results; `*begun` becomes true if output_finish() or
 * output_cancel() must follow. */
static int carry_out(job *j, output *files, bool *begun)
{
    if (!j->gathers) {
        output_begin_file(files);
        *begun = true;
    }
    if (place_run(j->place, j->ranks, run_rank, j) != TSR_OK)
        return complain_status(EXIT_REFUSED);
    if (!j->gathers)
        return place_speaks(j->place) ? output_add_complete(files, j->output) : EXIT_DONE;
    const int status = output_begin(j->output, files);
    *begun = status == EXIT_DONE;
    return *begun ? output_add_ranks(files, j->results, j->ranks) : status;
}

static int run_job(const tool_arguments *given, job *j)
{
    output files;
    bool begun = false;
    j->results = calloc((size_t)j->ranks, sizeof *j->results);
    j->seconds = calloc((size_t)j->ranks, sizeof *j->seconds);
    if (!j->results || !j->seconds)
        return complain(EXIT_REFUSED, "there is no memory for %d ranks", j->ranks);
    int status = place_agree(j->place, carry_out(j, &files, &begun));
    if (status == EXIT_DONE)
        status = place_agree(j->place, print_report(given, j));
    if (status == EXIT_DONE)
        output_finish(&files);
    else if (begun)
        output_cancel(&files);
    return status;
}

static void finish_job(job *j)
{
    for (int r = 0; j->results && r < j->ranks; r++)
        free(j->results[r].data);
    free(j->results);
    free(j->seconds);
    shards_close(&j->ids);
    shards_close(&j->rows);
    tsr_npy_destroy(j->table);
    tsr_layout_destroy(j->layout);
    tsr_mesh_destroy(j->mesh);
    place_close(j->place);
}

static int run_rows(const tool_arguments *given, job *j)
{
    j->output = given->value[OPT_OUTPUT];
    int status = prepare_job(given, j);
    status = place_agree(j->place, status);
    if (status == EXIT_DONE)
        status = run_job(given, j);
    finish_job(j);
    return status;
}

static int run_gather(const tool_arguments *given)
{
    job j = {.name = "rows gather", .gathers = true};
    return run_rows(given, &j);
}

static int run_update(const tool_arguments *given)
{
    job j = {.name = "rows update"};
    return run_rows(given, &j);
}

#define TAKEN                                                                                                          \
    (TAKES(MESH) | TAKES(PLACEMENTS) | TAKES(TABLE) | TAKES(IDS) | TAKES(OUTPUT) | TAKES(DTYPE) | TAKES(ENGINE) |      \
     TAKES(JSON))
#define REQUIRED (TAKES(MESH) | TAKES(PLACEMENTS) | TAKES(TABLE) | TAKES(IDS) | TAKES(OUTPUT))

const tool_command rows_gather_command = {
    .name = "rows gather",
    .summary = "read rows of a sharded table by ids, for real",
    .details = "Runs one rank for each rank of the mesh, cuts the table as --placements say, and lets each rank gather "
               "the rows of its own ids. DIR/rank-N.npy of --ids has the ids of rank N, any number of them, also none; "
               "the rows come in their order. bf16 travels as <u2 and f8 as |u1: say so with --dtype.",
    .examples = "  tessera rows gather --mesh 4 --placements 'S(0)' --table t.npy --ids ids --output rows\n"
                "  tessera rows gather --mesh 2x2 --placements 'S(0;sizes=70,30),S(1)' --table t.npy --ids ids "
                "--output rows --json\n",
    .output = "the folder, made if need be, for rank-N.npy: the rows of the ids of rank N",
    .takes = TAKEN,
    .requires_all = REQUIRED,
    .defaults = {{OPT_DTYPE, "that of the table"}},
    .run = run_gather,
};

const tool_command rows_update_command = {
    .name = "rows update",
    .summary = "change rows of a sharded table by ids, for real",
    .details =
        "Runs one rank for each rank of the mesh, cuts the table as --placements say, and lets each rank bring ids and "
        "rows: DIR/rank-N.npy of --ids and of --rows. With add and mean, the table's row gets the sum, or the mean, of "
        "all rows with its id added; with max, it becomes the largest of itself and them; with assign, the last of "
        "them, in the order of rank, then position. The whole table is written afterwards.",
    .examples = "  tessera rows update --mesh 4 --placements 'S(0)' --table t.npy --ids ids --rows rows --op add "
                "--output t2.npy\n"
                "  tessera rows update --mesh 2x2 --placements 'R,S(0)' --table t.npy --ids ids --rows rows --op mean "
                "--output t2.npy\n",
    .output = "the file for the whole table afterwards",
    .takes = TAKEN | TAKES(ROWS) | TAKES(OP),
    .requires_all = REQUIRED | TAKES(ROWS) | TAKES(OP),
    .defaults = {{OPT_DTYPE, "that of the table"}},
    .run = run_update,
};
