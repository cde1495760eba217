/* Ops that index tables on GPUs if the machine has any, else on emulated ones, which run the
 * kernels' bodies: shards have the bits that the host gives them, whatever the cuts. */
#include "device_shards.h"
#include "gpus.h"
#include "layers.h"
#include "wholes.h"

#include <tessera/sys/ops.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define COUNT(array) (sizeof array / sizeof *array)

/* How a row is called: a table, ids, and their placements. */
typedef struct indexing_case {
    const char *op, *gradient, *mesh, *table, *ids;
    int dim; /* the attribute; -2: there is none */
    int table_ndim, ids_ndim;
    int64_t table_shape[TSR_MAX_DIMS], ids_shape[TSR_MAX_DIMS];
} indexing_case;

/* Digits of pi, whose sum is 360. */
#define BLOCKS                                                                                                         \
    "3,1,4,1,5,9,2,6,5,3,5,8,9,7,9,3,2,3,8,4,6,2,6,4,3,3,8,3,2,7,9,5,2,8,8,"                                           \
    "4,1,9,7,1,6,9,3,9,9,3,7,5,1,5,8,2,9,7,4,9,4,4,5,9,2,3,7,8,1,6,4,6,2,8"

/* 7 rows over 4 ranks are 2, 2, 2 and 1; over 8 some have none. 900 ids are more than a block of
 * threads has. Unequal
 * blocks are more runs than one launch takes. */
static const indexing_case cases[] = {
    {"embedding", "embedding_gradient", "1", "R", "R", -2, 2, 2, {7, 3}, {2, 5}},
    {"embedding", "embedding_gradient", "1", "R", "R", -2, 2, 1, {40, 16}, {900}},
    {"embedding", "embedding_gradient", "1", "R", "R", -2, 2, 0, {7, 4}, {0}},
    {"embedding", "embedding_gradient", "1", "R", "R", -2, 2, 1, {7, 4}, {0}},
    {"embedding", "embedding_gradient", "1", "R", "R", -2, 2, 1, {7, 0}, {5}},
    {"embedding", "embedding_gradient", "2", "S(0)", "R", -2, 2, 2, {7, 8}, {2, 5}},
    {"embedding", "embedding_gradient", "2", "S(1)", "R", -2, 2, 2, {7, 3}, {2, 5}},
    {"embedding", "embedding_gradient", "2", "R", "S(0)", -2, 2, 2, {7, 3}, {3, 5}},
    {"embedding", "embedding_gradient", "4", "S(0)", "R", -2, 2, 2, {7, 6}, {4, 70}},
    {"embedding", "embedding_gradient", "8", "R", "S(1)", -2, 2, 2, {7, 2}, {2, 5}},
    {"embedding", "embedding_gradient", "8", "S(0)", "R", -2, 2, 2, {7, 2}, {2, 5}},
    {"embedding", "embedding_gradient", "8", "S(1)", "R", -2, 2, 1, {7, 5}, {9}},
    {"embedding", "embedding_gradient", "3", "S(0;balanced)", "R", -2, 2, 2, {7, 3}, {2, 5}},
    {"embedding", "embedding_gradient", "3", "S(0;unit=2)", "R", -2, 2, 2, {23, 3}, {2, 25}},
    {"embedding", "embedding_gradient", "2", "S(0;interleave=3)", "R", -2, 2, 1, {25, 4}, {60}},
    {"embedding", "embedding_gradient", "2", "S(0;blocks=2,9,1,4)", "R", -2, 2, 1, {16, 4}, {600}},
    {"embedding", "embedding_gradient", "2x3", "S(0),S(1)", "R,R", -2, 2, 2, {7, 5}, {2, 5}},
    {"embedding", "embedding_gradient", "2x3", "R,S(0)", "S(1),R", -2, 2, 2, {7, 5}, {2, 5}},
    {"embedding", "embedding_gradient", "2x2", "S(0;interleave=3),S(0;interleave=2)", "R,R", -2, 2, 1, {70, 2}, {400}},
    {"embedding", "embedding_gradient", "2", "S(0;blocks=" BLOCKS ")", "R", -2, 2, 1, {360, 2}, {700}},
    {"index_select", "index_select_gradient", "1", "R", "R", 1, 3, 1, {2, 6, 4}, {9}},
    {"index_select", "index_select_gradient", "1", "R", "R", -1, 3, 1, {2, 3, 5}, {8}},
    {"index_select", "index_select_gradient", "1", "R", "R", 0, 1, 1, {5}, {8}},
    {"index_select", "index_select_gradient", "2", "S(1)", "R", 1, 3, 1, {2, 5, 4}, {9}},
    {"index_select", "index_select_gradient", "2x2", "S(0),S(2)", "R,R", 1, 3, 1, {3, 5, 3}, {9}},
    {"index_select", "index_select_gradient", "2", "R", "S(0)", 1, 3, 1, {2, 5, 3}, {7}},
    {"gather", "gather_gradient", "1", "R", "R", 0, 2, 2, {5, 4}, {9, 4}},
    {"gather", "gather_gradient", "1", "R", "R", -1, 2, 2, {4, 5}, {4, 70}},
    {"gather", "gather_gradient", "1", "R", "R", 1, 3, 3, {4, 6, 5}, {3, 8, 2}},
    {"gather", "gather_gradient", "2", "S(1)", "R", 1, 2, 2, {4, 5}, {4, 7}},
    {"gather", "gather_gradient", "2", "S(0)", "S(0)", 1, 2, 2, {5, 6}, {5, 7}},
    {"gather", "gather_gradient", "2", "R", "S(0;interleave=2)", 1, 2, 2, {9, 6}, {7, 5}},
    {"gather", "gather_gradient", "2x2", "R,R", "S(0;interleave=2),S(2;interleave=2)", 1, 3, 3, {9, 6, 5}, {7, 5, 4}},
    {"gather", "gather_gradient", "2", "S(1)", "S(1)", 0, 3, 3, {5, 3, 2}, {520, 3, 2}},
    {"scatter_add", NULL, "1", "R", "R", 0, 2, 2, {5, 4}, {9, 4}},
    {"scatter_add", NULL, "1", "R", "R", 0, 3, 3, {300, 2, 3}, {700, 2, 2}},
    {"scatter_add", NULL, "1", "R", "R", 1, 3, 3, {4, 6, 5}, {3, 8, 2}},
    {"scatter_add", NULL, "2", "S(1)", "R", 1, 2, 2, {4, 5}, {4, 7}},
    {"scatter_add", NULL, "2", "S(0)", "S(0)", 1, 2, 2, {5, 6}, {5, 7}},
};

/* A case on one rank. */
typedef struct trial {
    const indexing_case *c;
    shards_device on;
    const tsr_mesh *mesh;
    tsr_dtype dtype, ids_dtype;
    bool turned; /* the first two dims of operands and results run the other way in memory */
    int compared;
} trial;

static int64_t rows_of(const indexing_case *c)
{
    return c->table_shape[c->dim == -1 ? c->table_ndim - 1 : c->dim == -2 ? 0 : c->dim];
}

/* A dtensor on host and device with the same elements; ids: they are below `below`. */
static tsr_status make(const trial *t, const char *placements, tsr_dtype dtype, int ndim, const int64_t *shape,
                       int64_t below, shards_pair *out)
{
    tsr_layout *layout;
    TSR_TRY(tsr_layout_parse(t->mesh, placements, ndim, shape, dtype, &layout));
    const tsr_status status = shards_make(&t->on, layout, t->turned, below, out);
    tsr_layout_destroy(layout);
    return status;
}

static tsr_status call_both(trial *t, const char *name, shards_pair *const *operands, shards_pair *out)
{
    const tsr_attribute dim = tsr_attribute_int("dim", t->c->dim);
    const bool has_dim = t->c->dim != -2;
    TSR_TRY(shards_call(&t->on, name, has_dim ? 1 : 0, &dim, operands, t->turned, out));
    t->compared++;
    return shards_compare(&t->on, name, out);
}

static tsr_status check_gradient(trial *t, shards_pair *table, shards_pair *ids, const shards_pair *result)
{
    shards_pair dout = {NULL, NULL}, dtable = {NULL, NULL};
    tsr_layout *layout;
    TSR_TRY(tsr_layout_gradient(tsr_dtensor_layout(result->host), &layout));
    tsr_status status = shards_make(&t->on, layout, t->turned, 0, &dout);
    if (status == TSR_OK)
        status = call_both(t, t->c->gradient, (shards_pair *const[]){&dout, table, ids, NULL}, &dtable);
    tsr_layout_destroy(layout);
    shards_destroy(&dout);
    shards_destroy(&dtable);
    return status;
}

static bool sums(tsr_dtype dtype)
{
    return dtype == TSR_F64 || dtype == TSR_F32 || dtype == TSR_F16 || dtype == TSR_BF16 || dtype == TSR_I64 ||
           dtype == TSR_I32;
}

/* The sum in x's own memory. */
static tsr_status add_into_x(const trial *t, shards_pair *made)
{
    const tsr_attribute dim = tsr_attribute_int("dim", t->c->dim);
    const tsr_dtensor *const host[] = {made[0].host, made[1].host, made[2].host};
    const tsr_dtensor *const device[] = {made[0].device, made[1].device, made[2].device};
    const tsr_op *row;
    TSR_TRY(tsr_op_find(NULL, t->c->op, &row));
    TSR_TRY(tsr_op_call_into(row, 1, &dim, host, &made[0].host));
    TSR_TRY(tsr_op_call_into(row, 1, &dim, device, &made[0].device));
    return shards_compare(&t->on, "x", &made[0]);
}

static tsr_status check_case(trial *t, shards_pair *made)
{
    const indexing_case *const c = t->c;
    TSR_TRY(make(t, c->table, t->dtype, c->table_ndim, c->table_shape, 0, &made[0]));
    TSR_TRY(make(t, c->ids, t->ids_dtype, c->ids_ndim, c->ids_shape, rows_of(c), &made[1]));
    if (!c->gradient) {
        TSR_TRY(make(t, c->ids, t->dtype, c->ids_ndim, c->ids_shape, 0, &made[2]));
        TSR_TRY(call_both(t, c->op, (shards_pair *const[]){&made[0], &made[1], &made[2], NULL}, &made[3]));
        return add_into_x(t, made);
    }
    TSR_TRY(call_both(t, c->op, (shards_pair *const[]){&made[0], &made[1], NULL}, &made[3]));
    return sums(t->dtype) ? check_gradient(t, &made[0], &made[1], &made[3]) : TSR_OK;
}

/* A case with one dtype; those that the row does not take are not tried. */
static tsr_status check_dtype(trial *t)
{
    shards_pair made[4] = {{NULL, NULL}, {NULL, NULL}, {NULL, NULL}, {NULL, NULL}};
    const tsr_status status = check_case(t, made);
    for (size_t i = 0; i < COUNT(made); i++)
        shards_destroy(&made[i]);
    if (status == TSR_OK)
        return TSR_OK;
    tsr_kept_sentence kept;
    tsr_status_keep(&kept);
    return tsr_status_set(status, "%s of %s on mesh %s, table %s, ids %s%s: %s", t->c->op, tsr_dtype_name(t->dtype),
                          t->c->mesh, t->c->table, t->c->ids, t->turned ? ", turned" : "", kept.text);
}

/* What rank threads are given. */
typedef struct task {
    const gpus *g;
    const indexing_case *c;
} task;

static tsr_status check_dtypes(trial *t)
{
    static const tsr_dtype dtypes[] = {TSR_F32, TSR_F64,  TSR_F16,    TSR_BF16, TSR_I64, TSR_I32,
                                       TSR_U8,  TSR_BOOL, TSR_F8E4M3, TSR_C64,  TSR_C128};
    const bool one_rank = strcmp(t->c->mesh, "1") == 0, reads_any = t->c->dim != -2 && t->c->gradient;
    const bool is_whole = one_rank || !strstr(t->c->table, "S(") || strcmp(t->c->table, "S(0)") == 0;
    for (size_t i = 0; i < (reads_any && is_whole ? COUNT(dtypes) : 6); i++) {
        t->dtype = dtypes[i];
        t->ids_dtype = i % 2 ? TSR_I64 : TSR_I32;
        t->turned = false;
        TSR_TRY(check_dtype(t));
        t->turned = true;
        if (one_rank)
            TSR_TRY(check_dtype(t));
    }
    return TSR_OK;
}

static tsr_status run_case(tsr_comm *comm, void *arg)
{
    const task *const given = arg;
    trial t = {.c = given->c};
    tsr_mesh *mesh;
    shards_begin(given->g->driver, tsr_comm_rank(comm) % given->g->count, &t.on);
    TSR_TRY(tsr_mesh_parse(comm, NULL, given->c->mesh, &mesh));
    t.mesh = mesh;
    tsr_status status = check_dtypes(&t);
    if (status == TSR_OK && t.compared < 6)
        status = tsr_status_set(TSR_ERROR_INTERNAL, "%s was compared %d times", t.c->op, t.compared);
    tsr_mesh_destroy(mesh);
    return status;
}

static void rows_give_the_hosts_bits(void **state)
{
    gpus g;
    (void)state;
    gpus_open(&g);
    for (size_t i = 0; i < COUNT(cases); i++) {
        task given = {&g, &cases[i]};
        if (tsr_threads_run(support_count_ranks(cases[i].mesh), run_case, &given, NULL) != TSR_OK)
            fail_msg("case %zu: %s", i, tsr_status_message());
    }
    tsr_device_driver_destroy(g.driver);
}

/* Makes a dtensor of values on the device. */
static tsr_status put(const trial *t, const char *placements, tsr_dtype dtype, int ndim, const int64_t *shape,
                      const double *values, tsr_dtensor **out)
{
    tsr_dtensor *host;
    TSR_TRY(support_make(t->mesh, placements, dtype, ndim, shape, values, &host));
    tsr_status status = tsr_dtensor_create(tsr_dtensor_layout(host), t->on.device, out);
    if (status == TSR_OK)
        status = shards_copy(&t->on, host, *out);
    tsr_dtensor_destroy(host);
    return status;
}

static tsr_status wait(const trial *t, tsr_stream stream)
{
    return t->on.table->stream_synchronize(t->on.self, t->on.device.index, stream);
}

/* Waits for the device by a call that reports nothing. */
static tsr_status wait_quietly(const trial *t)
{
    void *memory;
    TSR_TRY(t->on.table->alloc(t->on.self, t->on.device.index, 64, NULL, &memory));
    t->on.table->free(t->on.self, t->on.device.index, memory, 64, NULL);
    return TSR_OK;
}

/* A call that is to be made by the row's name; its result is not looked at. */
static tsr_status call(const char *op, const tsr_dtensor *a, const tsr_dtensor *b, const tsr_dtensor *c)
{
    const tsr_dtensor *const operands[TSR_OP_MOST_OPERANDS] = {a, b, c};
    const tsr_attribute dim = tsr_attribute_int("dim", 0);
    const tsr_op *row;
    tsr_dtensor *y = NULL;
    TSR_TRY(tsr_op_find(NULL, op, &row));
    const tsr_status status = tsr_op_call(row, strstr(op, "embedding") ? 0 : 1, &dim, operands, &y);
    tsr_dtensor_destroy(y);
    return status;
}

#define EARLIER "; the device found this in an earlier call, whose result is not valid"

/* Checks that a call was refused with a sentence, and that the word is clear then. */
static tsr_status expect_fault(const trial *t, tsr_status given, const char *sentence)
{
    EXPECT(given == TSR_ERROR_STATE && strcmp(tsr_status_message(), sentence) == 0, "%s, with: %s",
           tsr_status_name(given), given == TSR_OK ? "nothing" : tsr_status_message());
    return wait(t, NULL);
}

/* A table of 7 rows, ids that are in range, and ids of which two are not; of both dtypes. */
typedef struct bad_ids {
    tsr_dtensor *table, *good, *bad, *worse, *number;
} bad_ids;

static void bad_ids_destroy(const bad_ids *b)
{
    tsr_dtensor_destroy(b->table);
    tsr_dtensor_destroy(b->good);
    tsr_dtensor_destroy(b->bad);
    tsr_dtensor_destroy(b->worse);
    tsr_dtensor_destroy(b->number);
}

static tsr_status bad_ids_create(const trial *t, bad_ids *out)
{
    static const double rows[21] = {1, 2, 3, 4, 5}, good[6] = {6, 0, 3, 3, 1, 6}, bad[6] = {6, 0, 7, 3, -1, 6},
                        worse[6] = {0, 0, 0, -5000000000.0, 0, 9}, number[1] = {12};
    static const int64_t table_shape[] = {7, 3}, shape[] = {2, 3};
    TSR_TRY(put(t, "R", TSR_F32, 2, table_shape, rows, &out->table));
    TSR_TRY(put(t, "R", TSR_I32, 2, shape, good, &out->good));
    TSR_TRY(put(t, "R", TSR_I32, 2, shape, bad, &out->bad));
    TSR_TRY(put(t, "R", TSR_I64, 2, shape, worse, &out->worse));
    return put(t, "R", TSR_I64, 0, NULL, number, &out->number);
}

/* The next call that computes reports; it does nothing else, and the one after it works. */
static tsr_status report_by_calls(const trial *t, const bad_ids *b)
{
    tsr_dtensor *y;
    TSR_TRY(call("embedding", b->table, b->bad, NULL));
    TSR_TRY(wait_quietly(t));
    TSR_TRY(expect_fault(t, call("embedding", b->table, b->good, NULL),
                         "embedding: ids[0,2] is 7 on rank 0, but must be at least 0 and below 7" EARLIER));
    TSR_TRY(call("embedding", b->table, b->good, NULL));
    TSR_TRY(call("embedding", b->table, b->worse, NULL));
    TSR_TRY(wait_quietly(t));
    TSR_TRY(expect_fault(t, tsr_neg(b->table, &y),
                         "embedding: ids[1,0] is -5000000000 on rank 0, but must be at least 0 and below 7" EARLIER));
    TSR_TRY(tsr_neg(b->table, &y));
    tsr_dtensor_destroy(y);
    return wait(t, NULL);
}

/* Waits report, those of the device and those of the library; of several errors the first. */
static tsr_status report_by_waits(const trial *t, const bad_ids *b)
{
    double sum;
    tsr_dtensor *y;
    TSR_TRY(call("embedding", b->table, b->number, NULL));
    TSR_TRY(
        expect_fault(t, wait(t, NULL), "embedding: ids is 12 on rank 0, but must be at least 0 and below 7" EARLIER));
    TSR_TRY(tsr_embedding(b->table, b->bad, &y));
    const tsr_status summed = expect_fault(t, tsr_dtensor_sum(y, &sum),
                                           "embedding: ids[0,2] is 7 on rank 0, but must "
                                           "be at least 0 and below 7" EARLIER);
    const tsr_status grown = call("embedding_gradient", y, b->table, b->worse);
    tsr_dtensor_destroy(y);
    TSR_TRY(summed);
    TSR_TRY(grown);
    const tsr_status later = call("embedding", b->table, b->bad, NULL);
    EXPECT(later == TSR_OK || later == TSR_ERROR_STATE, "%s", tsr_status_message());
    return expect_fault(t, later == TSR_OK ? wait(t, NULL) : later,
                        "embedding_gradient: ids[1,0] is -5000000000 on rank 0, but must be at least 0 and below "
                        "7" EARLIER);
}

/* Rows that go by elements. */
static tsr_status report_elements(const trial *t, const bad_ids *b)
{
    TSR_TRY(call("gather", b->table, b->worse, NULL));
    TSR_TRY(expect_fault(t, wait(t, NULL),
                         "gather: index[1,0] is -5000000000 on rank 0, but must be at least 0 and below 7" EARLIER));
    TSR_TRY(call("scatter_add", b->worse, b->bad, b->worse));
    return expect_fault(t, wait(t, NULL),
                        "scatter_add: index[0,0] is 6 on rank 0, but must be at least 0 and below 2" EARLIER);
}

/* A result in the memory that ids still read is refused. */
static tsr_status refuse_own_memory(const trial *t)
{
    static const double values[4] = {1, 0, 1, 0};
    static const int64_t shape[] = {2, 2};
    const tsr_attribute dim = tsr_attribute_int("dim", 0);
    const tsr_op *row;
    tsr_dtensor *x = NULL;
    tsr_status status = put(t, "R", TSR_I64, 2, shape, values, &x);
    if (status == TSR_OK)
        status = tsr_op_find(NULL, "gather", &row);
    const tsr_dtensor *const operands[] = {x, x};
    if (status == TSR_OK)
        status = layer_expect_status("gather into x", tsr_op_call_into(row, 1, &dim, operands, &x),
                                     TSR_ERROR_UNSUPPORTED, "device \"cuda\" has no kernel of gather");
    tsr_dtensor_destroy(x);
    return status;
}

static tsr_status begin(tsr_comm *comm, const gpus *g, const char *mesh, trial *t, tsr_mesh **out)
{
    memset(t, 0, sizeof *t);
    shards_begin(g->driver, tsr_comm_rank(comm) % g->count, &t->on);
    TSR_TRY(tsr_mesh_parse(comm, NULL, mesh, out));
    t->mesh = *out;
    return TSR_OK;
}

static tsr_status report_all(tsr_comm *comm, void *arg)
{
    trial t;
    tsr_mesh *mesh;
    bad_ids b = {NULL, NULL, NULL, NULL, NULL};
    TSR_TRY(begin(comm, arg, "1", &t, &mesh));
    tsr_status status = bad_ids_create(&t, &b);
    if (status == TSR_OK)
        status = report_by_calls(&t, &b);
    if (status == TSR_OK)
        status = report_by_waits(&t, &b);
    if (status == TSR_OK)
        status = report_elements(&t, &b);
    if (status == TSR_OK)
        status = refuse_own_memory(&t);
    bad_ids_destroy(&b);
    tsr_mesh_destroy(mesh);
    return status;
}

static void run_ranks(int ranks, tsr_rank_main *body)
{
    gpus g;
    gpus_open(&g);
    if (tsr_threads_run(ranks, body, &g, NULL) != TSR_OK)
        fail_msg("%s", tsr_status_message());
    tsr_device_driver_destroy(g.driver);
}

static void ids_out_of_range_are_reported_by_the_next_call(void **state)
{
    (void)state;
    run_ranks(1, report_all);
}

/* Looks up on one rank after another, as ranks of one GPU share its stream; `wanted` NULL: all is
 * well. */
static tsr_status look_up_in_turn(tsr_comm *comm, const trial *t, const tsr_dtensor *table, const tsr_dtensor *ids,
                                  const char *const *wanted)
{
    tsr_status status = TSR_OK;
    for (int rank = 0; rank < tsr_comm_size(comm); rank++) {
        const char *const sentence = wanted[rank];
        if (rank == tsr_comm_rank(comm) && status == TSR_OK) {
            status = call("embedding", table, ids, NULL);
            if (status == TSR_OK)
                status = sentence ? expect_fault(t, wait(t, NULL), sentence) : wait(t, NULL);
        }
        TSR_TRY(tsr_comm_barrier(comm));
    }
    return status;
}

/* Tables and ids in parts: an id of another rank's part is none out of range, and one of a shard is
 * named by its index in the whole tensor. */
static tsr_status report_parts(tsr_comm *comm, void *arg)
{
    static const double rows[14] = {1}, values[9] = {0, 6, 3, 1, 6, 5, 4, 7, 2};
    static const int64_t table_shape[] = {7, 2}, shape[] = {9};
    static const struct {
        const char *table, *ids;
        bool fails[2];
    } parts[] = {{"S(0)", "R", {true, true}}, {"R", "S(0)", {false, true}}, {"R", "S(0;interleave=3)", {true, false}}};
    trial t;
    tsr_mesh *mesh;
    tsr_status status = begin(comm, arg, "2", &t, &mesh);
    for (size_t i = 0; i < COUNT(parts) && status == TSR_OK; i++) {
        char sentences[2][200];
        const char *wanted[2] = {NULL, NULL};
        tsr_dtensor *table = NULL, *ids = NULL;
        for (int rank = 0; rank < 2; rank++) {
            snprintf(sentences[rank], sizeof sentences[rank],
                     "embedding: ids[7] is 7 on rank %d, but must be at least 0 and below 7" EARLIER, rank);
            wanted[rank] = parts[i].fails[rank] ? sentences[rank] : NULL;
        }
        status = put(&t, parts[i].table, TSR_F16, 2, table_shape, rows, &table);
        if (status == TSR_OK)
            status = put(&t, parts[i].ids, TSR_I64, 1, shape, values, &ids);
        if (status == TSR_OK)
            status = look_up_in_turn(comm, &t, table, ids, wanted);
        tsr_dtensor_destroy(table);
        tsr_dtensor_destroy(ids);
    }
    tsr_mesh_destroy(mesh);
    return status;
}

/* Ids in more pieces than are told apart: the index is that in the shard. */
static tsr_status report_pieces(tsr_comm *comm, void *arg)
{
    static const double rows[14] = {1};
    static const int64_t table_shape[] = {7, 2}, shape[] = {360};
    static const char *const wanted[2] = {
        NULL, "embedding: ids[99] of the rank's shard is 5000 on rank 1, but must be at least 0 and below 7" EARLIER};
    double values[360] = {0};
    trial t;
    tsr_mesh *mesh;
    tsr_dtensor *table = NULL, *ids = NULL, *host = NULL;
    TSR_TRY(begin(comm, arg, "2", &t, &mesh));
    tsr_status status = put(&t, "R", TSR_F64, 2, table_shape, rows, &table);
    if (status == TSR_OK)
        status = support_make(mesh, "S(0;blocks=" BLOCKS ")", TSR_I32, 1, shape, values, &host);
    if (status == TSR_OK)
        status = tsr_dtensor_create(tsr_dtensor_layout(host), t.on.device, &ids);
    if (status == TSR_OK && tsr_comm_rank(comm) == 1)
        ((int32_t *)tsr_dtensor_to_local(host).data)[99] = 5000;
    if (status == TSR_OK)
        status = shards_copy(&t.on, host, ids);
    if (status == TSR_OK)
        status = look_up_in_turn(comm, &t, table, ids, wanted);
    tsr_dtensor_destroy(table);
    tsr_dtensor_destroy(ids);
    tsr_dtensor_destroy(host);
    tsr_mesh_destroy(mesh);
    return status;
}

static void ids_of_several_ranks_are_named_by_rank_and_index(void **state)
{
    (void)state;
    run_ranks(2, report_parts);
    run_ranks(2, report_pieces);
}

/* Looks up on a stream. */
static tsr_status look_up_on(const trial *t, const bad_ids *b, const tsr_dtensor *ids, tsr_stream stream)
{
    static const tsr_attribute none[1];
    static const int64_t coordinate[1];
    tsr_dtensor *y;
    int64_t bytes = 0;
    TSR_TRY(tsr_embedding(b->table, b->good, &y));
    const tsr_tensor inputs[] = {tsr_dtensor_to_local(b->table), tsr_dtensor_to_local(ids)};
    const tsr_tensor output = tsr_dtensor_to_local(y);
    const tsr_layout *const layouts[] = {tsr_dtensor_layout(b->table), tsr_dtensor_layout(ids)};
    const tsr_layout *const result = tsr_dtensor_layout(y);
    tsr_kernel_call given = {.op = "embedding",
                             .attributes = none,
                             .input_count = 2,
                             .output_count = 1,
                             .inputs = inputs,
                             .outputs = &output,
                             .layouts = layouts,
                             .result_layouts = &result,
                             .coordinate = coordinate,
                             .stage = TSR_STAGE_WHOLE,
                             .query = &bytes};
    const tsr_device_table *const table = t->on.table;
    tsr_status status = table->launch(t->on.self, t->on.device.index, &given, stream);
    given.query = NULL;
    if (status == TSR_OK)
        status = table->alloc(t->on.self, t->on.device.index, (size_t)bytes, stream, &given.workspace);
    if (status == TSR_OK) {
        status = table->launch(t->on.self, t->on.device.index, &given, stream);
        table->free(t->on.self, t->on.device.index, given.workspace, (size_t)bytes, stream);
    }
    tsr_dtensor_destroy(y); /* waits for the device */
    return status;
}

/* An error on one stream is not reported by calls on others; with more streams than words, words go
 * to streams in turn. */
static tsr_status report_on(const trial *t, const bad_ids *b, tsr_stream stream, tsr_stream other)
{
    TSR_TRY(look_up_on(t, b, b->good, other));
    TSR_TRY(look_up_on(t, b, b->bad, stream));
    TSR_TRY(wait(t, other));
    TSR_TRY(wait(t, NULL));
    return expect_fault(t, wait(t, stream),
                        "embedding: ids[0,2] is 7 on rank 0, but must be at least 0 and below 7" EARLIER);
}

static tsr_status report_streams(tsr_comm *comm, void *arg)
{
    enum { STREAMS = 70 };
    trial t;
    tsr_mesh *mesh;
    tsr_stream streams[STREAMS] = {NULL};
    bad_ids b = {NULL, NULL, NULL, NULL, NULL};
    TSR_TRY(begin(comm, arg, "1", &t, &mesh));
    tsr_status status = bad_ids_create(&t, &b);
    for (int i = 0; i < STREAMS && status == TSR_OK; i++)
        status = t.on.table->stream_create(t.on.self, t.on.device.index, &streams[i]);
    for (int i = 1; i < STREAMS && status == TSR_OK; i++)
        status = report_on(&t, &b, streams[i], streams[i - 1]);
    for (int i = 0; i < STREAMS; i++)
        t.on.table->stream_destroy(t.on.self, t.on.device.index, streams[i]);
    bad_ids_destroy(&b);
    tsr_mesh_destroy(mesh);
    return status;
}

static void each_stream_reports_its_own_errors(void **state)
{
    (void)state;
    run_ranks(1, report_streams);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_give_the_hosts_bits),
        cmocka_unit_test(ids_out_of_range_are_reported_by_the_next_call),
        cmocka_unit_test(ids_of_several_ranks_are_named_by_rank_and_index),
        cmocka_unit_test(each_stream_reports_its_own_errors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
