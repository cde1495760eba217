/* Ops that index tables on GPUs if the machine has any, else on emulated ones, which run the
 * kernels' bodies: shards have the bits that the host gives them, whatever the cuts. */
#include "device_shards.h"
#include "gpus.h"
#include "layers.h"
#include "wholes.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
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

/* 7 rows over 4 ranks are 2, 2, 2 and 1; over 8 some have none. 300 ids are more than a block of
 * threads has. Two cuts of units make more runs than one launch takes. */
static const indexing_case cases[] = {
    {"embedding", "embedding_gradient", "1", "R", "R", -2, 2, 2, {7, 3}, {2, 5}},
    {"embedding", "embedding_gradient", "1", "R", "R", -2, 2, 1, {40, 16}, {300}},
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
    {"embedding", "embedding_gradient", "2", "S(0;blocks=2,9,1,4)", "R", -2, 2, 1, {16, 4}, {60}},
    {"embedding", "embedding_gradient", "2x3", "S(0),S(1)", "R,R", -2, 2, 2, {7, 5}, {2, 5}},
    {"embedding", "embedding_gradient", "2x3", "R,S(0)", "S(1),R", -2, 2, 2, {7, 5}, {2, 5}},
    {"embedding", "embedding_gradient", "2x2", "S(0;unit=3),S(0;unit=2)", "R,R", -2, 2, 1, {700, 2}, {400}},
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
    {"gather", "gather_gradient", "2", "R", "S(0;unit=2)", 1, 2, 2, {9, 6}, {7, 5}},
    {"gather", "gather_gradient", "2x2", "R,R", "S(0),S(2;unit=1)", 1, 3, 3, {9, 6, 5}, {7, 5, 4}},
    {"scatter_add", NULL, "1", "R", "R", 0, 2, 2, {5, 4}, {9, 4}},
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

static tsr_status check_case(trial *t, shards_pair *made)
{
    const indexing_case *const c = t->c;
    TSR_TRY(make(t, c->table, t->dtype, c->table_ndim, c->table_shape, 0, &made[0]));
    TSR_TRY(make(t, c->ids, t->ids_dtype, c->ids_ndim, c->ids_shape, rows_of(c), &made[1]));
    if (!c->gradient) {
        TSR_TRY(make(t, c->ids, t->dtype, c->ids_ndim, c->ids_shape, 0, &made[2]));
        return call_both(t, c->op, (shards_pair *const[]){&made[0], &made[1], &made[2], NULL}, &made[3]);
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
    static const tsr_dtype dtypes[] = {TSR_F32, TSR_F64, TSR_F16, TSR_BF16, TSR_I64, TSR_I32,
                                       TSR_U8,  TSR_BOOL, TSR_F8E4M3, TSR_C64, TSR_C128};
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_give_the_hosts_bits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
