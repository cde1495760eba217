/* Files that some ranks write together and others read into dtensors that exist: a table in any
 * layout, on other numbers of ranks; the files' bytes; and what is refused, on all ranks. */
#include "comm_suite.h"

#include <tessera/mesh.h>
#include <tessera/npy.h>
#include <tessera/safetensors.h>
#include <tessera/values.h>

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { ROWS = 13, WIDTH = 6 };

/* Ranks that are processes have one parent, and so one name for each file. */
static void name_file(const char *kind, char path[96])
{
    snprintf(path, 96, "/tmp/tessera-restore-%d-%s-%s", (int)getppid(), suite_engine->name, kind);
}

static float value_of(int64_t row, int64_t column)
{
    return (float)(row * WIDTH + column) * 0.25F - 3;
}

/* A table with gaps between its rows, all of which have `value`. */
typedef struct table {
    tsr_mesh *mesh;
    float memory[ROWS * (WIDTH + 2)];
    tsr_dtensor *x;
    tsr_tensor local;
    int64_t rows[ROWS], columns; /* the global row of each local one, and the first column */
} table;

static tsr_status make_table(tsr_comm *comm, const char *mesh, const char *placements, table *t)
{
    const int64_t shape[] = {ROWS, WIDTH};
    int64_t local[2], offset[2];
    tsr_layout *layout;
    tsr_dtensor *dense;
    TSR_TRY(tsr_mesh_parse(comm, NULL, mesh, &t->mesh));
    TSR_TRY(tsr_layout_parse(t->mesh, placements, 2, shape, TSR_F32, &layout));
    TSR_TRY(tsr_layout_local(layout, NULL, local, offset));
    TSR_TRY(tsr_dtensor_create(layout, tsr_device_host(), &dense));
    t->local = tsr_dtensor_to_local(dense);
    tsr_dtensor_destroy(dense);
    t->local.data = t->memory;
    if (t->local.ndim == 2) /* not outside of the mesh */
        t->local.strides[0] = WIDTH + 2;
    t->columns = offset[1];
    for (int64_t row = 0, i = 0; row < ROWS; row++) {
        tsr_interval owned[ROWS];
        size_t parts;
        TSR_TRY(tsr_layout_intervals(layout, NULL, 0, owned, ROWS, &parts));
        for (size_t p = 0; p < parts; p++)
            if (row >= owned[p].begin && row < owned[p].end)
                t->rows[i++] = row;
    }
    TSR_TRY(tsr_dtensor_from_local(&t->local, layout, NULL, &t->x));
    tsr_layout_destroy(layout);
    return tsr_dtensor_fill(t->x, 0, NULL);
}

static void free_table(table *t)
{
    tsr_dtensor_destroy(t->x);
    tsr_mesh_destroy(t->mesh);
}

static float *element(const table *t, int64_t i, int64_t j)
{
    return (float *)t->local.data + i * t->local.strides[0] + j;
}

static void set_values(const table *t)
{
    for (int64_t i = 0; i < t->local.shape[0]; i++)
        for (int64_t j = 0; j < t->local.shape[1]; j++)
            *element(t, i, j) = value_of(t->rows[i], t->columns + j);
}

/* Checks that elements are those of set_values() times `factor`. */
static tsr_status check_values(const table *t, float factor)
{
    for (int64_t i = 0; i < t->local.shape[0]; i++)
        for (int64_t j = 0; j < t->local.shape[1]; j++)
            CHECK(*element(t, i, j) == factor * value_of(t->rows[i], t->columns + j));
    return TSR_OK;
}

/* What a layout's files have in their names. */
typedef struct place {
    const char *mesh, *placements, *kind;
} place;

static tsr_status save(tsr_comm *comm, void *arg)
{
    const place *const p = arg;
    char npy[96], safetensors[96], narrow[96], kind[16];
    table t;
    TSR_TRY(make_table(comm, p->mesh, p->placements, &t));
    set_values(&t);
    name_file(p->kind, npy);
    snprintf(kind, sizeof kind, "%s-many", p->kind);
    name_file(kind, safetensors);
    snprintf(kind, sizeof kind, "%s-bf16", p->kind);
    name_file(kind, narrow);
    const tsr_safetensors_tensor all[] = {{"table", t.x, TSR_DTYPE_NONE}, {"half", t.x, TSR_BF16}};
    TSR_TRY(tsr_npy_write(t.x, npy, TSR_DTYPE_NONE));
    TSR_TRY(tsr_npy_write(t.x, narrow, TSR_BF16));
    TSR_TRY(tsr_safetensors_write(safetensors, 2, all, NULL));
    free_table(&t);
    return TSR_OK;
}

/* Reads the files of "a" into the layout. */
static tsr_status load(tsr_comm *comm, void *arg)
{
    const place *const p = arg;
    char path[96];
    table t, half;
    TSR_TRY(make_table(comm, p->mesh, p->placements, &t));
    TSR_TRY(make_table(comm, p->mesh, p->placements, &half));
    name_file("a", path);
    TSR_TRY(tsr_npy_restore(t.x, path, TSR_DTYPE_NONE));
    TSR_TRY(check_values(&t, 1));
    name_file("a-bf16", path);
    TSR_TRY(tsr_npy_restore(half.x, path, TSR_BF16));
    TSR_TRY(check_values(&half, 1)); /* bf16 has these values */
    TSR_TRY(tsr_dtensor_fill(t.x, 0, NULL));
    TSR_TRY(tsr_dtensor_fill(half.x, 0, NULL));
    name_file("a-many", path);
    const tsr_safetensors_target all[] = {{"half", half.x}, {"table", t.x}};
    TSR_TRY(tsr_safetensors_restore(path, 2, all));
    TSR_TRY(check_values(&half, 1));
    TSR_TRY(check_values(&t, 1));
    free_table(&half);
    free_table(&t);
    return TSR_OK;
}

static size_t read_whole(const char *path, char *bytes, size_t room)
{
    FILE *const file = fopen(path, "rb");
    const size_t got = file ? fread(bytes, 1, room, file) : 0;
    if (file)
        fclose(file);
    return got;
}

/* Removes the files; those of "a" and "b" must have the same bytes. */
static tsr_status compare_files(tsr_comm *comm, void *arg)
{
    static const char *const kinds[][2] = {{"a", "b"}, {"a-many", "b-many"}, {"a-bf16", "b-bf16"}};
    bool equal = true;
    (void)comm;
    (void)arg;
    for (int i = 0; i < 3; i++) {
        char path[2][96], bytes[2][2048];
        size_t size[2];
        for (int side = 0; side < 2; side++) {
            name_file(kinds[i][side], path[side]);
            size[side] = read_whole(path[side], bytes[side], sizeof bytes[side]);
            unlink(path[side]);
        }
        equal = equal && size[0] > 128 && size[0] == size[1] && memcmp(bytes[0], bytes[1], size[0]) == 0;
    }
    CHECK(equal);
    return TSR_OK;
}

static void tables_are_read_on_other_ranks_than_wrote_them(void **state)
{
    (void)state;
    static place square = {"dp=2,tp=2", "S(0;sizes=9,4),S(1)", "a"}, one = {"1", "R", "b"};
    static place others[] = {{"3", "S(0;sizes=5,0,8)", NULL},
                             {"3", "S(1;balanced)", NULL},
                             {"3", "R", NULL},
                             {"2@1", "S(0;interleave=3)", NULL}};
    suite_run(4, save, &square);
    suite_run(1, save, &one);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        suite_run(3, load, &others[i]);
    suite_run(1, load, &one);
    suite_run(4, load, &square);
    suite_run(1, compare_files, NULL);
}

/* A call that rank 1 alone makes wrongly, and one that all make: each rank hears of it, elements
 * stay as they were, and the communicator stays usable. */
static tsr_status refuse(tsr_comm *comm, void *arg)
{
    const bool odd = tsr_comm_rank(comm) == 1;
    const tsr_status own = odd ? TSR_ERROR_ARGUMENT : TSR_ERROR_PEER, lost = odd ? TSR_ERROR_IO : TSR_ERROR_PEER;
    char npy[96], many[96], none[96];
    table t;
    (void)arg;
    name_file("a", npy);
    name_file("a-many", many);
    name_file("none", none);
    TSR_TRY(make_table(comm, "3", "S(0)", &t));
    set_values(&t);
    CHECK_ERROR(tsr_npy_restore(NULL, npy, TSR_DTYPE_NONE), TSR_ERROR_ARGUMENT, "x is NULL");
    CHECK_ERROR(tsr_npy_restore(t.x, odd ? NULL : npy, TSR_DTYPE_NONE), own, "path is NULL");
    CHECK_ERROR(tsr_npy_restore(t.x, odd ? none : npy, TSR_DTYPE_NONE), lost, none);
    CHECK_ERROR(tsr_npy_restore(t.x, npy, odd ? TSR_F64 : TSR_F32), own, "dtype f64");
    CHECK_ERROR(tsr_npy_restore(t.x, many, TSR_DTYPE_NONE), TSR_ERROR_IO, "not a .npy file");
    const tsr_safetensors_target good = {"table", t.x}, unnamed = {NULL, t.x}, missing = {"tabel", t.x};
    CHECK_ERROR(tsr_safetensors_restore(many, 0, &good), TSR_ERROR_ARGUMENT, "count is 0");
    CHECK_ERROR(tsr_safetensors_restore(many, 1, NULL), TSR_ERROR_ARGUMENT, "targets is NULL");
    CHECK_ERROR(tsr_safetensors_restore(odd ? NULL : many, 1, &good), own, "path is NULL");
    CHECK_ERROR(tsr_safetensors_restore(odd ? none : many, 1, &good), lost, none);
    CHECK_ERROR(tsr_safetensors_restore(many, 1, odd ? &unnamed : &good), own, "targets[0].name is NULL");
    CHECK_ERROR(tsr_safetensors_restore(many, 1, odd ? &missing : &good), own, "no tensor tabel");
    TSR_TRY(check_values(&t, 1));
    free_table(&t);
    return suite_check_usable(comm);
}

/* Dtensors of another shape or dtype than the file's. */
static tsr_status refuse_misfits(tsr_comm *comm, void *arg)
{
    const int64_t taller[] = {ROWS + 1, WIDTH}, fits[] = {ROWS, WIDTH};
    char npy[96], many[96];
    tsr_mesh *mesh;
    tsr_layout *tall_layout, *whole_layout;
    tsr_dtensor *tall, *whole;
    (void)arg;
    name_file("a", npy);
    name_file("a-many", many);
    TSR_TRY(tsr_mesh_parse(comm, NULL, "3", &mesh));
    TSR_TRY(tsr_layout_parse(mesh, "S(0)", 2, taller, TSR_F32, &tall_layout));
    TSR_TRY(tsr_layout_parse(mesh, "S(1)", 2, fits, TSR_I32, &whole_layout));
    TSR_TRY(tsr_dtensor_create(tall_layout, tsr_device_host(), &tall));
    TSR_TRY(tsr_dtensor_create(whole_layout, tsr_device_host(), &whole));
    const tsr_safetensors_target tall_one = {"table", tall}, whole_one = {"half", whole};
    CHECK_ERROR(tsr_npy_restore(tall, npy, TSR_DTYPE_NONE), TSR_ERROR_ARGUMENT, "13x6, but the dtensor for it is 14x6");
    CHECK_ERROR(tsr_npy_restore(whole, npy, TSR_DTYPE_NONE), TSR_ERROR_ARGUMENT, "i32");
    CHECK_ERROR(tsr_npy_restore(whole, npy, TSR_F32), TSR_ERROR_UNSUPPORTED, "of f32, but the dtensor for it of i32");
    CHECK_ERROR(tsr_safetensors_restore(many, 1, &tall_one), TSR_ERROR_ARGUMENT, "table is 13x6");
    CHECK_ERROR(tsr_safetensors_restore(many, 1, &whole_one), TSR_ERROR_UNSUPPORTED, "half is of bf16");
    tsr_dtensor_destroy(whole);
    tsr_dtensor_destroy(tall);
    tsr_layout_destroy(whole_layout);
    tsr_layout_destroy(tall_layout);
    tsr_mesh_destroy(mesh);
    return suite_check_usable(comm);
}

/* Rank 0 cuts a byte off each file. */
static tsr_status refuse_short(tsr_comm *comm, void *arg)
{
    static const char *const kinds[] = {"a", "a-many"};
    table t;
    (void)arg;
    TSR_TRY(make_table(comm, "3", "S(0)", &t));
    set_values(&t);
    for (int i = 0; i < 2; i++) {
        char path[96], bytes[2048];
        name_file(kinds[i], path);
        if (tsr_comm_rank(comm) == 0)
            CHECK(truncate(path, (off_t)read_whole(path, bytes, sizeof bytes) - 1) == 0);
        TSR_TRY(tsr_comm_barrier(comm));
        const tsr_safetensors_target target = {"table", t.x};
        if (i == 0)
            CHECK_ERROR(tsr_npy_restore(t.x, path, TSR_DTYPE_NONE), TSR_ERROR_IO, "truncated");
        else
            CHECK_ERROR(tsr_safetensors_restore(path, 1, &target), TSR_ERROR_ARGUMENT, "bytes of tensors");
    }
    TSR_TRY(check_values(&t, 1));
    free_table(&t);
    return suite_check_usable(comm);
}

static tsr_status remove_files(tsr_comm *comm, void *arg)
{
    static const char *const kinds[] = {"a", "a-many", "a-bf16"};
    (void)comm;
    (void)arg;
    for (int i = 0; i < 3; i++) {
        char path[96];
        name_file(kinds[i], path);
        CHECK(unlink(path) == 0);
    }
    return TSR_OK;
}

static void files_that_do_not_fit_are_refused_on_all_ranks(void **state)
{
    (void)state;
    static place three = {"3", "S(0)", "a"};
    suite_run(3, save, &three);
    suite_run(3, refuse, NULL);
    suite_run(3, refuse_misfits, NULL);
    suite_run(3, refuse_short, NULL);
    suite_run(1, remove_files, NULL);
}

/* A 2x3 file of f32 0 to 5, in Fortran order or big-endian. */
static tsr_status read_odd_order(tsr_comm *comm, void *arg)
{
    const bool fortran = *(const bool *)arg;
    const char *const dict = fortran ? "{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3), }\n"
                                     : "{'descr': '>f4', 'fortran_order': False, 'shape': (2, 3), }\n";
    const int64_t shape[] = {2, 3};
    char path[96];
    tsr_mesh *mesh;
    tsr_layout *layout;
    tsr_dtensor *x;
    name_file("odd", path);
    if (tsr_comm_rank(comm) == 0) {
        FILE *const file = fopen(path, "wb");
        CHECK(file && fwrite("\x93NUMPY\1\0", 8, 1, file) == 1 && fputc((int)strlen(dict), file) >= 0);
        CHECK(fputc(0, file) == 0 && fputs(dict, file) >= 0);
        for (int i = 0; i < 6; i++) {
            const float value = (float)(fortran ? i % 2 * 3 + i / 2 : i);
            unsigned char bytes[4];
            memcpy(bytes, &value, 4);
            for (int b = 0; b < 4; b++)
                CHECK(fputc(bytes[fortran ? b : 3 - b], file) >= 0);
        }
        CHECK(fclose(file) == 0);
    }
    TSR_TRY(tsr_mesh_parse(comm, NULL, "2", &mesh));
    TSR_TRY(tsr_layout_parse(mesh, "S(0)", 2, shape, TSR_F32, &layout));
    TSR_TRY(tsr_dtensor_create(layout, tsr_device_host(), &x));
    TSR_TRY(tsr_comm_barrier(comm));
    TSR_TRY(tsr_npy_restore(x, path, TSR_DTYPE_NONE));
    for (int j = 0; j < 3; j++)
        CHECK(((const float *)tsr_dtensor_to_local(x).data)[j] == (float)(3 * tsr_comm_rank(comm) + j));
    if (tsr_comm_rank(comm) == 0)
        CHECK(unlink(path) == 0);
    tsr_dtensor_destroy(x);
    tsr_layout_destroy(layout);
    tsr_mesh_destroy(mesh);
    return TSR_OK;
}

static void files_of_another_order_are_read_too(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        bool fortran = i;
        suite_run(2, read_odd_order, &fortran);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tables_are_read_on_other_ranks_than_wrote_them),
        cmocka_unit_test(files_that_do_not_fit_are_refused_on_all_ranks),
        cmocka_unit_test(files_of_another_order_are_read_too),
    };
    suite_start(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
