/* Rows by id of tables on devices: all bytes of results and tables are those that plain loops over
 * whole tables give, which are the host's. */
#include "comm_suite.h"
#include "rows_machine.h"
#include "rows_memory.h"
#include "rows_oracle.h"
#include "support.h"

#include <tessera/dtensor.h>

#include <stdlib.h>

enum { GAP = 3, GUARD = 0x5a };

/* A table, whose mesh has all ranks. */
typedef struct site {
    int ranks;
    const char *mesh, *placements;
    int ndim;
    int64_t shape[4];
} site;

static const site sites[] = {
    {1, "1", "S(0)", 2, {13, 5}},
    {2, "2", "S(0;sizes=0,13)", 2, {13, 5}},
    {2, "2", "R", 1, {13}},
    {2, "2", "S(0;interleave=3)", 3, {13, 2, 2}},
    {3, "3", "S(0;sizes=4,0,9)", 2, {13, 4}},
    {3, "3@[2,0,1]", "S(1)", 2, {13, 7}},
    {4, "2x2", "S(0),S(1)", 2, {13, 8}},
    {4, "2x2@[3,1,0,2]", "S(0),R", 2, {13, 5}},
    {4, "4", "S(1;interleave=2)", 2, {13, 16}},
    {4, "4", "S(0)", 3, {6, 0, 3}},
    {6, "2x3", "S(0),S(1;interleave=2)", 2, {13, 13}},
};
enum { SITES = sizeof sites / sizeof *sites };

static const tsr_dtype dtypes[] = {TSR_F32,    TSR_BF16,   TSR_I64, TSR_F16,  TSR_F64, TSR_I32,
                                   TSR_I16,    TSR_I8,     TSR_U64, TSR_U32,  TSR_U16, TSR_U8,
                                   TSR_F8E4M3, TSR_F8E5M2, TSR_C64, TSR_C128, TSR_BOOL};
enum { DTYPES = sizeof dtypes / sizeof *dtypes };

/* How ranks play. */
typedef struct play_case {
    const site *s;
    tsr_dtype dtype, id_dtype;
    bool raw, gaps, ids_on_host;
} play_case;

/* One rank's table with what it must hold, and buffers on its device. */
typedef struct stage {
    play_case c;
    tsr_mesh *mesh;
    tsr_layout *layout;
    tsr_dtensor *table;
    rows_memory memory, ids, data; /* the table's, and those that a call is given */
    int64_t rows, width;
    size_t bytes; /* of an element */
    unsigned char whole[ROWS_BYTES];
    int64_t host_ids[2 * ROWS_IDS];
    unsigned char host_data[2 * ROWS_BYTES], wanted[2 * ROWS_BYTES], got[2 * ROWS_BYTES];
} stage;

/* Writes what the memory of the rank's shard must hold to s->wanted; returns its bytes. */
static size_t describe_shard(stage *s)
{
    int64_t count = 0, row = 1;
    const tsr_tensor local = tsr_dtensor_to_local(s->table);
    for (int dim = 1; dim < local.ndim; dim++)
        row *= local.shape[dim];
    (void)tsr_tensor_count(&local, &count);
    memset(s->wanted, GUARD, sizeof s->wanted);
    for (int64_t i = 0; i < count; i++)
        memcpy(s->wanted + (size_t)(i / row * local.strides[0] + i % row) * s->bytes,
               s->whole + (size_t)rows_global(s->layout, i) * s->bytes, s->bytes);
    return (size_t)local.shape[0] * (size_t)local.strides[0] * s->bytes;
}

static tsr_status raise_table(stage *s)
{
    int64_t shape[TSR_MAX_DIMS], row = 1;
    TSR_TRY(tsr_layout_local(s->layout, NULL, shape, NULL));
    for (int dim = 1; dim < s->c.s->ndim; dim++)
        row *= shape[dim];
    tsr_tensor local = tsr_tensor_contiguous(s->memory.data, s->c.dtype, s->c.s->ndim, shape);
    local.device = s->memory.device;
    local.strides[0] = row + (s->c.gaps ? GAP : 0);
    TSR_TRY(tsr_dtensor_from_local(&local, s->layout, NULL, &s->table));
    rows_fill(s->c.dtype, s->rows * s->width, 17, s->c.raw, s->whole);
    const size_t bytes = describe_shard(s);
    CHECK(bytes <= sizeof s->wanted);
    return rows_memory_put(&s->memory, s->wanted, sizeof s->wanted);
}

static tsr_status raise_stage(stage *s, tsr_comm *comm)
{
    const tsr_device device = rows_machine_device(tsr_comm_rank(comm));
    s->bytes = tsr_dtype_bytes(s->c.dtype);
    s->rows = s->c.s->shape[0];
    s->width = 1;
    for (int dim = 1; dim < s->c.s->ndim; dim++)
        s->width *= s->c.s->shape[dim];
    TSR_TRY(tsr_mesh_parse(comm, NULL, s->c.s->mesh, &s->mesh));
    TSR_TRY(tsr_layout_parse(s->mesh, s->c.s->placements, s->c.s->ndim, s->c.s->shape, s->c.dtype, &s->layout));
    TSR_TRY(rows_memory_take(device, sizeof s->wanted, &s->memory));
    TSR_TRY(rows_memory_take(device, sizeof s->host_ids, &s->ids));
    TSR_TRY(rows_memory_take(device, sizeof s->host_data, &s->data));
    return raise_table(s);
}

static void strike_stage(stage *s)
{
    tsr_dtensor_destroy(s->table);
    rows_memory_free(&s->memory);
    rows_memory_free(&s->ids);
    rows_memory_free(&s->data);
    tsr_layout_destroy(s->layout);
    tsr_mesh_destroy(s->mesh);
}

/* The ids that a rank brings in a round. */
static tsr_status bring_ids(stage *s, int round, int rank, tsr_tensor *out)
{
    const int64_t count = rows_count(round, rank), step = s->c.gaps ? 2 : 1;
    for (int64_t i = 0; i < count; i++) {
        const int64_t id = rows_id(round, rank, i, s->rows);
        const int32_t narrow = (int32_t)id;
        if (s->c.id_dtype == TSR_I64)
            s->host_ids[i * step] = id;
        else
            memcpy((char *)s->host_ids + (size_t)(i * step) * sizeof narrow, &narrow, sizeof narrow);
    }
    *out = tsr_tensor_contiguous(s->c.ids_on_host ? (void *)s->host_ids : s->ids.data, s->c.id_dtype, 1, &count);
    out->strides[0] = step;
    if (s->c.ids_on_host)
        return TSR_OK;
    out->device = s->ids.device;
    return rows_memory_put(&s->ids, s->host_ids, sizeof s->host_ids);
}

/* `count` rows, as a tensor over s->data. */
static tsr_tensor rows_tensor(stage *s, int64_t count)
{
    int64_t shape[TSR_MAX_DIMS] = {count};
    for (int dim = 1; dim < s->c.s->ndim; dim++)
        shape[dim] = s->c.s->shape[dim];
    tsr_tensor data = tsr_tensor_contiguous(s->data.data, s->c.dtype, s->c.s->ndim, shape);
    data.strides[0] = s->width + (s->c.gaps ? GAP : 0);
    data.device = s->data.device;
    return data;
}

static tsr_status bring_rows(stage *s, int round, int rank, tsr_tensor *out)
{
    static _Thread_local unsigned char packed[ROWS_BYTES];
    *out = rows_tensor(s, rows_count(round, rank));
    rows_fill(s->c.dtype, out->shape[0] * s->width, rows_salt(round, rank), s->c.raw, packed);
    for (int64_t i = 0; i < out->shape[0]; i++)
        memcpy(s->host_data + (size_t)(i * out->strides[0]) * s->bytes, packed + (size_t)(i * s->width) * s->bytes,
               (size_t)s->width * s->bytes);
    return rows_memory_put(&s->data, s->host_data, sizeof s->host_data);
}

static tsr_status check_table(stage *s)
{
    (void)describe_shard(s);
    TSR_TRY(rows_memory_get(&s->memory, s->got, sizeof s->got));
    if (memcmp(s->got, s->wanted, sizeof s->got) != 0)
        return tsr_status_set(TSR_ERROR_INTERNAL, "%s of %s on %s: the table is wrong", tsr_dtype_name(s->c.dtype),
                              s->c.s->placements, s->c.s->mesh);
    return TSR_OK;
}

/* What a gather of a round must write into rows of GUARD. */
static void describe_rows(stage *s, int round, int rank, const tsr_tensor *out)
{
    memset(s->wanted, GUARD, sizeof s->wanted);
    for (int64_t i = 0; i < out->shape[0]; i++)
        memcpy(s->wanted + (size_t)(i * out->strides[0]) * s->bytes,
               s->whole + (size_t)(rows_id(round, rank, i, s->rows) * s->width) * s->bytes,
               (size_t)s->width * s->bytes);
}

static tsr_status check_rows(stage *s, int round, int rank, const tsr_tensor *out)
{
    describe_rows(s, round, rank, out);
    TSR_TRY(rows_memory_get(&s->data, s->got, sizeof s->got));
    if (memcmp(s->got, s->wanted, sizeof s->got) != 0)
        return tsr_status_set(TSR_ERROR_INTERNAL, "%s of %s on %s: rows of rank %d are wrong",
                              tsr_dtype_name(s->c.dtype), s->c.s->placements, s->c.s->mesh, rank);
    return TSR_OK;
}

static tsr_status gather_and_check(stage *s, tsr_comm *comm, int round)
{
    const int rank = tsr_comm_rank(comm);
    tsr_tensor ids;
    TSR_TRY(bring_ids(s, round, rank, &ids));
    const tsr_tensor out = rows_tensor(s, ids.shape[0]);
    memset(s->host_data, GUARD, sizeof s->host_data);
    TSR_TRY(rows_memory_put(&s->data, s->host_data, sizeof s->host_data));
    TSR_TRY(tsr_rows_gather(s->table, &ids, &out));
    return check_rows(s, round, rank, &out);
}

static tsr_status update_and_check(stage *s, tsr_comm *comm, int round, tsr_rows_op op)
{
    const int rank = tsr_comm_rank(comm);
    tsr_tensor ids, rows;
    TSR_TRY(bring_ids(s, round, rank, &ids));
    TSR_TRY(bring_rows(s, round, rank, &rows));
    TSR_TRY(tsr_rows_update(s->table, &ids, &rows, op));
    rows_update_whole(s->c.dtype, op, s->rows, s->width, round, tsr_comm_size(comm), s->c.raw, s->whole);
    return check_table(s);
}

static tsr_status play(stage *s, tsr_comm *comm)
{
    TSR_TRY(raise_stage(s, comm));
    TSR_TRY(gather_and_check(s, comm, 0));
    for (int op = 0; op < TSR_ROWS_OP_END; op++) {
        if (!rows_has_op(s->c.dtype, (tsr_rows_op)op) || (s->c.raw && op != TSR_ROWS_ASSIGN))
            continue;
        TSR_TRY(update_and_check(s, comm, 2 * op + 1, (tsr_rows_op)op));
        TSR_TRY(gather_and_check(s, comm, 2 * op + 2));
    }
    return TSR_OK;
}

typedef tsr_status stage_play(stage *s, tsr_comm *comm);

static tsr_status play_on_stage(tsr_comm *comm, const play_case *c, stage_play *body)
{
    stage *const s = calloc(1, sizeof *s);
    CHECK(s);
    s->c = *c;
    const tsr_status status = body(s, comm);
    strike_stage(s);
    free(s);
    return status;
}

static tsr_status play_case_on_rank(tsr_comm *comm, void *arg)
{
    return play_on_stage(comm, arg, play);
}

static void every_layout_gives_the_rows_of_plain_loops(void **state)
{
    (void)state;
    for (int i = 0; i < SITES; i++)
        for (int k = 0; k < 3; k++) {
            play_case c = {&sites[i],
                           k == 0 ? TSR_F32 : dtypes[(2 * i + k) % DTYPES],
                           (i + k) % 2 ? TSR_I32 : TSR_I64,
                           k == 2,
                           k % 2 == 1,
                           (i + k) % 3 == 0};
            if ((4 * i + k) % rows_machine_share == 0)
                rows_machine_run(c.s->ranks, play_case_on_rank, &c);
        }
}

static void every_dtype_has_its_ops(void **state)
{
    (void)state;
    for (int d = 0; d < DTYPES; d += rows_machine_share) {
        play_case c = {&sites[4 + d % 3], dtypes[d], TSR_I64, false, d % 2 == 1, false};
        rows_machine_run(c.s->ranks, play_case_on_rank, &c);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_layout_gives_the_rows_of_plain_loops),
        cmocka_unit_test(every_dtype_has_its_ops),
    };
    test_watchdog(240);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
