/* Views of rows: for every range of rows of several layouts, the view's layout and memory, and what
 * redistributing it gives. */
#include "ranks.h"
#include "support.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

enum { ROWS = 11, COLUMNS = 3 };

static const int64_t shape[] = {ROWS, COLUMNS};

typedef struct sight {
    const char *mesh, *placements;
} sight;

static const sight sights[] = {
    {"4", "R"},
    {"4", "S(1)"},
    {"4", "S(0)"},
    {"4", "S(0;balanced)"},
    {"4", "S(0;unit=2)"},
    {"4", "S(0;sizes=3,0,7,1)"},
    {"4", "S(0;interleave=2)"},
    {"2", "S(0;blocks=6,2,3)"},
    {"2x2", "S(0),S(1)"},
    {"2x2", "S(1)[1],S(0;balanced)[0]"},
    {"2x2", "P,S(0)"},
    {"2x2", "S(0),S(0)"},
    {"1x4", "S(0;sizes=11),S(0)"},
};

/* True if no part has rows of the range behind those of a higher part, and one mesh dim at most
 * cuts rows. */
static tsr_status can_be_seen(const tsr_layout *layout, int64_t begin, int64_t end, bool *out)
{
    int64_t rows[ROWS], parts[ROWS];
    int cuts = 0;
    for (int i = 0; i < tsr_mesh_ndim(tsr_layout_mesh(layout)); i++) {
        const tsr_placement *p = &tsr_layout_placements(layout)[i];
        cuts += tsr_mesh_size(tsr_layout_mesh(layout), i) > 1 && p->kind == TSR_SHARD && p->dim == 0;
    }
    for (int64_t i = begin; i < end; i++)
        rows[i - begin] = i;
    TSR_TRY(tsr_layout_owners(layout, 0, (size_t)(end - begin), rows, parts, NULL));
    *out = cuts < 2 || end - begin == ROWS;
    for (int64_t i = 1; end - begin < ROWS && i < end - begin; i++)
        *out = *out && parts[i] >= parts[i - 1];
    return TSR_OK;
}

static tsr_status check_view(const tsr_dtensor *x, const tsr_dtensor *view, int64_t begin, int64_t end)
{
    tsr_dtensor *whole = NULL;
    const tsr_tensor mine = tsr_dtensor_to_local(x), seen = tsr_dtensor_to_local(view);
    const tsr_layout *layout = tsr_dtensor_layout(view);
    int64_t local[TSR_MAX_DIMS];
    TSR_TRY(tsr_layout_local(layout, NULL, local, NULL));
    CHECK(tsr_layout_shape(layout)[0] == end - begin && tsr_layout_shape(layout)[1] == COLUMNS);
    for (int d = 0; d < seen.ndim; d++)
        CHECK(seen.shape[d] == local[d]);
    if (seen.shape[0] > 0 && seen.shape[seen.ndim - 1] > 0) {
        const char *first = mine.data, *at = seen.data;
        CHECK(at >= first && at < first + (size_t)(mine.shape[0] * mine.strides[0]) * sizeof(int32_t));
    }
    TSR_TRY(tsr_full_tensor(view, &whole));
    const int32_t *values = tsr_dtensor_to_local(whole).data;
    for (int64_t i = 0; values && i < (end - begin) * COLUMNS; i++)
        CHECK(values[i] == (int32_t)(begin * COLUMNS + i));
    tsr_dtensor_destroy(whole);
    return TSR_OK;
}

static tsr_status see_each_range(tsr_comm *comm, void *arg)
{
    const sight *s = arg;
    tsr_mesh *mesh = NULL;
    tsr_dtensor *x = NULL;
    TSR_TRY(mesh_over(comm, s->mesh, &mesh));
    TSR_TRY(numbered_over(mesh, s->placements, shape, 1, &x));
    for (int64_t begin = 0; begin <= ROWS; begin++)
        for (int64_t end = begin; end <= ROWS; end++) {
            tsr_dtensor *view = NULL;
            bool possible;
            TSR_TRY(can_be_seen(tsr_dtensor_layout(x), begin, end, &possible));
            if (!possible) {
                CHECK_ERROR(tsr_dtensor_rows(x, begin, end, &view), TSR_ERROR_UNSUPPORTED,
                            "redistribute it to S(0) or R first");
                CHECK(!view);
                continue;
            }
            TSR_TRY(tsr_dtensor_rows(x, begin, end, &view));
            TSR_TRY(check_view(x, view, begin, end));
            tsr_dtensor_destroy(view);
        }
    tsr_dtensor_destroy(x);
    tsr_mesh_destroy(mesh);
    return TSR_OK;
}

static void every_range_of_rows_is_a_dtensor_or_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof sights / sizeof *sights; i++) {
        test_case("rows of %s on %s", sights[i].placements, sights[i].mesh);
        run_ranks(4, see_each_range, (void *)&sights[i]);
    }
}

/* The text of the view's placements. */
static const struct {
    const char *mesh, *placements;
    int64_t begin, end;
    const char *view;
} texts[] = {
    {"2", "S(0;blocks=6,2,3)", 0, 6, "S(0)"},
    {"2", "S(0;blocks=6,2,3)", 6, 8, "S(0)"},
    {"2", "S(0;blocks=6,2,3)", 8, 11, "S(0)"},
    {"2", "S(0;blocks=6,2,3)", 2, 6, "S(0;sizes=1,3)"},
    {"4", "S(0)", 0, 8, "S(0;sizes=3,3,2,0)"},
    {"4", "S(0)", 1, 10, "S(0;sizes=2,3,3,1)"},
    {"4", "S(0)", 0, 11, "S(0)"},
    {"4", "S(0)", 5, 5, "S(0)"},
    {"4", "S(0;balanced)", 0, 11, "S(0;balanced)"},
    {"4", "S(0;balanced)", 1, 10, "S(0;sizes=2,3,3,1)"},
    {"4", "S(0;unit=2)", 0, 4, "S(0;sizes=4,0,0,0)"},
    {"2x2", "S(1),R", 2, 3, "S(1),R"},
    {"2x2", "P,S(0)", 5, 6, "P,S(0)"},
    {"1x4", "S(0;sizes=11),S(0)", 2, 4, "S(0),S(0)"},
    {"1x4", "S(0;sizes=11),S(0)", 2, 5, "S(0),S(0;sizes=1,2,0,0)"},
};

static tsr_status name_views(tsr_comm *comm, void *arg)
{
    (void)arg;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        char text[128];
        tsr_mesh *mesh = NULL;
        tsr_dtensor *x = NULL, *view = NULL;
        TSR_TRY(mesh_over(comm, texts[i].mesh, &mesh));
        TSR_TRY(numbered_over(mesh, texts[i].placements, shape, 1, &x));
        TSR_TRY(tsr_dtensor_rows(x, texts[i].begin, texts[i].end, &view));
        tsr_layout_print(tsr_dtensor_layout(view), text, sizeof text);
        if (strcmp(text, texts[i].view) != 0)
            return tsr_status_set(TSR_ERROR_INTERNAL, "rows %d to %d of %s are %s, not %s", (int)texts[i].begin,
                                  (int)texts[i].end, texts[i].placements, text, texts[i].view);
        tsr_dtensor_destroy(view);
        tsr_dtensor_destroy(x);
        tsr_mesh_destroy(mesh);
    }
    return TSR_OK;
}

static void the_plainest_split_names_the_rows(void **state)
{
    (void)state;
    run_ranks(4, name_views, NULL);
}

/* A view outlives the dtensor's owner, and a view of a view is one of the dtensor. */
static tsr_status outlive(tsr_comm *comm, void *arg)
{
    tsr_mesh *mesh = NULL;
    tsr_dtensor *x = NULL, *view = NULL, *inner = NULL, *whole = NULL;
    double sum = 0;
    (void)arg;
    TSR_TRY(mesh_over(comm, "2", &mesh));
    TSR_TRY(numbered_over(mesh, "S(0)", shape, 1, &x));
    TSR_TRY(tsr_dtensor_rows(x, 2, 10, &view));
    TSR_TRY(tsr_dtensor_rows(view, 1, 4, &inner));
    TSR_TRY(tsr_dtensor_fill(inner, 7, NULL));
    TSR_TRY(tsr_full_tensor(x, &whole));
    const int32_t *values = tsr_dtensor_to_local(whole).data;
    for (int i = 0; i < ROWS * COLUMNS; i++)
        CHECK(values[i] == (i / COLUMNS >= 3 && i / COLUMNS < 6 ? 7 : i));
    tsr_dtensor_destroy(whole);
    tsr_dtensor_destroy(x);
    tsr_dtensor_destroy(view);
    TSR_TRY(tsr_dtensor_sum(inner, &sum));
    CHECK(sum == 63);
    tsr_dtensor_destroy(inner);
    tsr_mesh_destroy(mesh);
    return TSR_OK;
}

static void a_view_shares_memory_and_keeps_it(void **state)
{
    (void)state;
    run_ranks(2, outlive, NULL);
}

static tsr_status refuse(tsr_comm *comm, void *arg)
{
    tsr_mesh *mesh = NULL;
    tsr_layout *scalar = NULL;
    tsr_dtensor *x = NULL, *y = NULL, *view = NULL;
    (void)arg;
    TSR_TRY(mesh_over(comm, "2", &mesh));
    TSR_TRY(numbered_over(mesh, "R", shape, 1, &x));
    TSR_TRY(layout_over(comm, "2", "scalar", "R", TSR_I32, &scalar));
    TSR_TRY(tsr_dtensor_create(scalar, tsr_device_host(), &y));
    CHECK_ERROR(tsr_dtensor_rows(x, -1, 2, &view), TSR_ERROR_ARGUMENT, "rows -1 to 2, but x has rows 0 to 11");
    CHECK_ERROR(tsr_dtensor_rows(x, 3, 2, &view), TSR_ERROR_ARGUMENT, "rows 3 to 2");
    CHECK_ERROR(tsr_dtensor_rows(x, 3, 12, &view), TSR_ERROR_ARGUMENT, "rows 3 to 12");
    CHECK_ERROR(tsr_dtensor_rows(y, 0, 0, &view), TSR_ERROR_ARGUMENT, "x is a scalar");
    CHECK_ERROR(tsr_dtensor_rows(NULL, 0, 0, &view), TSR_ERROR_ARGUMENT, "x is NULL");
    CHECK_ERROR(tsr_dtensor_rows(x, 0, 0, NULL), TSR_ERROR_ARGUMENT, "out is NULL");
    CHECK(!view);
    tsr_dtensor_destroy(y);
    tsr_dtensor_destroy(x);
    tsr_layout_destroy(scalar);
    tsr_mesh_destroy(mesh);
    return TSR_OK;
}

static void other_ranges_are_refused(void **state)
{
    (void)state;
    run_ranks(2, refuse, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_range_of_rows_is_a_dtensor_or_refused),
        cmocka_unit_test(the_plainest_split_names_the_rows),
        cmocka_unit_test(a_view_shares_memory_and_keeps_it),
        cmocka_unit_test(other_ranges_are_refused),
    };
    test_watchdog(60);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
