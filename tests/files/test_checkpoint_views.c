/* Checkpoints of dtensors of one dim that are stored as tensors of more: whole, in PyTorch's boxes,
 * fused; cut in the midst of rows. */
#include "checkpoint_support.h"
#include "comm_suite.h"

#include <tessera/checkpoint.h>

enum { ROWS = 5, COLUMNS = 6, ELEMENTS = ROWS * COLUMNS };

static const int64_t whole_shape[] = {ROWS, COLUMNS}, flat_shape[] = {ELEMENTS};
static const tsr_checkpoint_view as_rows = {"rows", 2, whole_shape};

/* Elements that count up from `first`, or zeros where it is negative. */
static tsr_status make(const tsr_mesh *mesh, const char *placements, int ndim, const int64_t *shape, float first,
                       tsr_dtensor **out)
{
    float values[ELEMENTS] = {0};
    const tsr_tensor whole = tsr_tensor_contiguous(values, TSR_F32, ndim, shape);
    for (int i = 0; i < ELEMENTS && first >= 0; i++)
        values[i] = first + (float)i;
    return tsr_distribute(&whole, mesh, placements, out);
}

static tsr_status check(const tsr_dtensor *x, float first)
{
    tsr_dtensor *full;
    int64_t count;
    TSR_TRY(tsr_full_tensor(x, &full));
    const tsr_tensor local = tsr_dtensor_to_local(full);
    TSR_TRY(tsr_tensor_count(&local, &count));
    for (int64_t i = 0; i < count; i++)
        CHECK(((const float *)local.data)[i] == first + (float)i);
    tsr_dtensor_destroy(full);
    return TSR_OK;
}

static tsr_status save(tsr_comm *comm, const char *folder, const tsr_dtensor *x, size_t count,
                       const tsr_checkpoint_view *views, int dcp)
{
    const tsr_safetensors_tensor tensor = {"rows", x, TSR_DTYPE_NONE};
    tsr_checkpoint_save_options options = TSR_CHECKPOINT_SAVE_OPTIONS_INIT;
    options.view_count = count;
    options.views = views;
    options.dcp = dcp;
    return tsr_checkpoint_save(comm, folder, 1, &tensor, &options);
}

/* Saves a view in the background; what says so is borrowed for the call alone. */
static tsr_status save_in_background(tsr_comm *comm, const char *folder, const tsr_dtensor *x)
{
    tsr_checkpoint_saving *going;
    const tsr_safetensors_tensor tensor = {"rows", x, TSR_DTYPE_NONE};
    int64_t shape[] = {ROWS, COLUMNS};
    tsr_checkpoint_view view = {"rows", 2, shape};
    tsr_checkpoint_save_options options = TSR_CHECKPOINT_SAVE_OPTIONS_INIT;
    options.view_count = 1;
    options.views = &view;
    TSR_TRY(tsr_checkpoint_start(comm, folder, 1, &tensor, &options, &going));
    shape[0] = shape[1] = -1;
    view = (tsr_checkpoint_view){NULL, -1, NULL};
    return tsr_checkpoint_finish(going);
}

static tsr_status load(tsr_comm *comm, const char *folder, tsr_dtensor *x, size_t count,
                       const tsr_checkpoint_view *views, const tsr_checkpoint_map *map, int64_t *bytes)
{
    const tsr_safetensors_target target = {"rows", x};
    tsr_checkpoint_load_options options = TSR_CHECKPOINT_LOAD_OPTIONS_INIT;
    options.view_count = count;
    options.views = views;
    options.map_count = map != NULL;
    options.map = map;
    options.bytes_read = bytes;
    return tsr_checkpoint_load(comm, folder, 1, &target, &options);
}

/* Loads the folder's tensor, whose elements count up from 3, into views, of which each rank reads
 * only its own part. */
static tsr_status load_views(tsr_comm *comm, const tsr_mesh *mesh, const char *folder)
{
    static const char *const flat[] = {"S(0;balanced)", "S(0;sizes=1,28,1)", "S(0;interleave=5)", "R"};
    for (size_t i = 0; i < sizeof flat / sizeof *flat; i++) {
        tsr_dtensor *x;
        int64_t bytes = 0, count;
        TSR_TRY(make(mesh, flat[i], 1, flat_shape, -1, &x));
        TSR_TRY(load(comm, folder, x, 1, &as_rows, NULL, &bytes));
        const tsr_tensor local = tsr_dtensor_to_local(x);
        TSR_TRY(tsr_tensor_count(&local, &count));
        CHECK(bytes == count * (int64_t)sizeof(float));
        TSR_TRY(check(x, 3));
        tsr_dtensor_destroy(x);
    }
    return TSR_OK;
}

/* Tensors into views, and a view into a tensor. */
static tsr_status go_round(tsr_comm *comm, void *arg)
{
    static const char *const cuts[] = {"S(0)", "S(1;balanced)"};
    char folder[FOLDER_BYTES];
    tsr_mesh *mesh;
    tsr_dtensor *x;
    name_folder(arg, folder);
    TSR_TRY(tsr_mesh_parse(comm, NULL, "3", &mesh));
    for (int i = 0; i < 2; i++) {
        TSR_TRY(make(mesh, cuts[i], 2, whole_shape, 3, &x));
        TSR_TRY(save(comm, folder, x, 0, NULL, 0));
        tsr_dtensor_destroy(x);
        TSR_TRY(load_views(comm, mesh, folder));
        TSR_TRY(make(mesh, "S(0;balanced)", 1, flat_shape, 50, &x));
        TSR_TRY(i == 0 ? save(comm, folder, x, 1, &as_rows, 0) : save_in_background(comm, folder, x));
        tsr_dtensor_destroy(x);
        TSR_TRY(make(mesh, cuts[i], 2, whole_shape, -1, &x));
        TSR_TRY(load(comm, folder, x, 0, NULL, NULL, NULL));
        TSR_TRY(check(x, 50));
        tsr_dtensor_destroy(x);
    }
    tsr_mesh_destroy(mesh);
    return TSR_OK;
}

static void views_are_stored_as_the_tensors_that_they_hold(void **state)
{
    (void)state;
    char kind[] = "views";
    suite_run(3, go_round, kind);
    suite_run(1, remove_folder, kind);
}

/* Boxes of whole rows, or of columns, that PyTorch's form has of ranks. */
static tsr_status load_boxes(tsr_comm *comm, void *arg)
{
    const bool columns = strcmp(arg, "view-columns") == 0;
    char folder[FOLDER_BYTES];
    tsr_mesh *mesh;
    tsr_dtensor *x;
    name_folder(arg, folder);
    TSR_TRY(tsr_mesh_parse(comm, NULL, "3", &mesh));
    TSR_TRY(make(mesh, columns ? "S(1)" : "S(0)", 2, whole_shape, 3, &x));
    TSR_TRY(save(comm, folder, x, 0, NULL, 1));
    tsr_dtensor_destroy(x);
    TSR_TRY(load_views(comm, mesh, folder));
    tsr_mesh_destroy(mesh);
    return TSR_OK;
}

static void boxes_of_pytorch_are_read_into_views(void **state)
{
    (void)state;
    char rows[] = "view-rows", columns[] = "view-columns";
    suite_run(3, load_boxes, rows);
    suite_run(1, remove_folder, rows);
    suite_run(3, load_boxes, columns);
    suite_run(1, remove_folder, columns);
}

/* Boxes of one row, of which the view has five. */
static tsr_status load_other_boxes(tsr_comm *comm, void *arg)
{
    static const int64_t in_one_row[] = {1, ELEMENTS};
    char folder[FOLDER_BYTES];
    tsr_mesh *mesh;
    tsr_dtensor *x;
    name_folder(arg, folder);
    TSR_TRY(tsr_mesh_parse(comm, NULL, "3", &mesh));
    TSR_TRY(make(mesh, "S(1)", 2, in_one_row, 3, &x));
    TSR_TRY(save(comm, folder, x, 0, NULL, 1));
    tsr_dtensor_destroy(x);
    TSR_TRY(make(mesh, "S(0;balanced)", 1, flat_shape, -1, &x));
    CHECK_ERROR(load(comm, folder, x, 1, &as_rows, NULL, NULL), TSR_ERROR_ARGUMENT,
                "tensor rows: boxes[0], [0:1, 0:10]");
    tsr_dtensor_destroy(x);
    tsr_mesh_destroy(mesh);
    return TSR_OK;
}

static void boxes_of_another_shape_are_refused(void **state)
{
    (void)state;
    char kind[] = "view-other";
    suite_run(3, load_other_boxes, kind);
    suite_run(1, remove_folder, kind);
}

/* A stored column of many rows is as many runs of a view: what loads them takes no time by their
 * square, which would be minutes. */
static tsr_status load_columns(tsr_comm *comm, void *arg)
{
    static const int64_t shape[] = {40000, 3}, flat[] = {120000};
    static const tsr_checkpoint_view view = {"rows", 2, shape};
    char folder[FOLDER_BYTES];
    tsr_mesh *mesh;
    tsr_layout *layout;
    tsr_dtensor *x;
    name_folder(arg, folder);
    TSR_TRY(tsr_mesh_parse(comm, NULL, "3", &mesh));
    TSR_TRY(tsr_layout_parse(mesh, "S(1)", 2, shape, TSR_F32, &layout));
    TSR_TRY(tsr_dtensor_create(layout, tsr_device_host(), &x));
    tsr_layout_destroy(layout);
    for (int i = 0; i < 40000; i++)
        ((float *)tsr_dtensor_to_local(x).data)[i] = 1.0F + (float)tsr_comm_rank(comm);
    TSR_TRY(save(comm, folder, x, 0, NULL, 1));
    tsr_dtensor_destroy(x);
    TSR_TRY(tsr_layout_parse(mesh, "S(0)", 1, flat, TSR_F32, &layout));
    TSR_TRY(tsr_dtensor_create(layout, tsr_device_host(), &x));
    tsr_layout_destroy(layout);
    TSR_TRY(load(comm, folder, x, 1, &view, NULL, NULL));
    const tsr_tensor local = tsr_dtensor_to_local(x);
    for (int64_t i = 0; i < local.shape[0]; i++)
        CHECK(((const float *)local.data)[i] == (float)((tsr_comm_rank(comm) * local.shape[0] + i) % 3 + 1));
    tsr_dtensor_destroy(x);
    tsr_mesh_destroy(mesh);
    return TSR_OK;
}

static void columns_of_many_rows_are_read_into_views(void **state)
{
    (void)state;
    char kind[] = "view-many";
    suite_run(3, load_columns, kind);
    suite_run(1, remove_folder, kind);
}

/* A map is of the tensor, not of its view: its columns are those of two stored tensors. */
static tsr_status join(tsr_comm *comm, void *arg)
{
    static const tsr_checkpoint_source halves[] = {{"rows", 0, 3, 0}, {"rows", 3, 6, 0}};
    static const tsr_checkpoint_map swapped = {"rows", 1, 2, halves}, upside[] = {{"rows", 0, 2, halves}};
    char folder[FOLDER_BYTES];
    tsr_mesh *mesh;
    tsr_dtensor *x, *y;
    name_folder(arg, folder);
    TSR_TRY(tsr_mesh_parse(comm, NULL, "3", &mesh));
    TSR_TRY(make(mesh, "S(0)", 2, whole_shape, 3, &x));
    TSR_TRY(make(mesh, "S(0;balanced)", 1, flat_shape, -1, &y));
    TSR_TRY(save(comm, folder, x, 0, NULL, 0));
    TSR_TRY(load(comm, folder, y, 1, &as_rows, &swapped, NULL));
    TSR_TRY(check(y, 3));
    CHECK_ERROR(load(comm, folder, y, 1, &as_rows, upside, NULL), TSR_ERROR_ARGUMENT, "indices 3 to 6 of rows");
    tsr_dtensor_destroy(y);
    tsr_dtensor_destroy(x);
    tsr_mesh_destroy(mesh);
    return TSR_OK;
}

static void maps_are_of_the_tensors_that_views_hold(void **state)
{
    (void)state;
    char kind[] = "view-maps";
    suite_run(3, join, kind);
    suite_run(1, remove_folder, kind);
}

/* What rank 1 alone gives wrongly is refused on all ranks. */
static tsr_status refuse(tsr_comm *comm, void *arg)
{
    const bool odd = tsr_comm_rank(comm) == 1;
    const tsr_status own = odd ? TSR_ERROR_ARGUMENT : TSR_ERROR_PEER;
    static const int64_t other[] = {ROWS, COLUMNS + 1}, turned[] = {COLUMNS, ROWS};
    const tsr_checkpoint_view large = {"rows", 2, other}, unknown = {"x", 2, whole_shape},
                              shapeless = {"rows", 2, NULL}, wrong = {"rows", 2, turned};
    char folder[FOLDER_BYTES];
    tsr_mesh *mesh;
    tsr_dtensor *x, *whole;
    name_folder(arg, folder);
    TSR_TRY(tsr_mesh_parse(comm, NULL, "3", &mesh));
    TSR_TRY(make(mesh, "S(0;balanced)", 1, flat_shape, 3, &x));
    TSR_TRY(make(mesh, "S(0)", 2, whole_shape, 3, &whole));
    CHECK_ERROR(save(comm, folder, x, 1, odd ? &large : &as_rows, 0), own, "the view of rows does not fit");
    CHECK_ERROR(save(comm, folder, x, 1, odd ? &shapeless : &as_rows, 0), own, "the view of rows does not fit");
    CHECK_ERROR(save(comm, folder, odd ? whole : x, 1, &as_rows, 0), own, "the view of rows does not fit");
    CHECK_ERROR(save(comm, folder, x, 1, odd ? &unknown : &as_rows, 0), own, "is x, which is not a dtensor's");
    CHECK_ERROR(save(comm, folder, x, 1, odd ? NULL : &as_rows, 0), own, "options.views is NULL");
    CHECK_ERROR(save(comm, folder, x, 1, &as_rows, 1), TSR_ERROR_ARGUMENT, "is no box");
    TSR_TRY(save(comm, folder, x, 1, &as_rows, 0));
    CHECK_ERROR(load(comm, folder, x, 1, odd ? &large : &as_rows, NULL, NULL), own, "the view of rows does not fit");
    CHECK_ERROR(load(comm, folder, x, 1, odd ? &unknown : &as_rows, NULL, NULL), own, "which is not a dtensor's");
    CHECK_ERROR(load(comm, folder, x, 1, odd ? &wrong : &as_rows, NULL, NULL), own,
                "has size 5 along dim 0, but the dtensor has 6");
    CHECK_ERROR(load(comm, folder, x, 0, NULL, NULL, NULL), TSR_ERROR_ARGUMENT, "has 2 dims, but for rows");
    TSR_TRY(check(x, 3));
    tsr_dtensor_destroy(whole);
    tsr_dtensor_destroy(x);
    tsr_mesh_destroy(mesh);
    return suite_check_usable(comm);
}

static void views_that_do_not_fit_are_refused_on_all_ranks(void **state)
{
    (void)state;
    char kind[] = "wrong-views";
    suite_run(3, refuse, kind);
    suite_run(1, remove_folder, kind);
}

int main(int count, char **arguments)
{
    suite_start(count, arguments);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(views_are_stored_as_the_tensors_that_they_hold),
        cmocka_unit_test(boxes_of_pytorch_are_read_into_views),
        cmocka_unit_test(boxes_of_another_shape_are_refused),
        cmocka_unit_test(columns_of_many_rows_are_read_into_views),
        cmocka_unit_test(maps_are_of_the_tensors_that_views_hold),
        cmocka_unit_test(views_that_do_not_fit_are_refused_on_all_ranks),
    };
    return cmocka_run_group_tests_name("checkpoints of views", tests, NULL, NULL);
}
