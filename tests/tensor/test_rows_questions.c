/* Owners of rows, rows of owners, and partition books. */
#include <tessera/rows.h>
#include <tessera/sys/status.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { ROWS = 23, COLUMNS = 6, MOST = 64 };

static const struct {
    const char *mesh, *placements;
} layouts[] = {
    {"1", "R"},
    {"4", "S(0)"},
    {"4", "S(0;balanced)"},
    {"4", "S(0;unit=4)"},
    {"3", "S(0;sizes=0,20,3)"},
    {"3", "S(0;interleave=3)"},
    {"2", "S(0;blocks=10,2,11)"},
    {"2x2", "S(0),S(1)"},
    {"2x2", "R,S(0)"},
    {"2x2", "S(0),P"},
    {"2x3", "S(0)[1],S(0)[0]"},
    {"2x2@[3,1,0,2]", "S(1),S(0)"},
    {"2x2@[9,4,2,7]", "S(0),S(0)"},
    {"4", "S(1)"},
};
enum { LAYOUTS = sizeof layouts / sizeof *layouts };

static void succeed(tsr_status status)
{
    if (status != TSR_OK)
        fail_msg("%s", tsr_status_message());
}

static void refuse(tsr_status status, const char *words)
{
    assert_int_equal(status, TSR_ERROR_ARGUMENT);
    if (!strstr(tsr_status_message(), words))
        fail_msg("\"%s\" does not say \"%s\"", tsr_status_message(), words);
}

static tsr_layout *parse(const char *mesh_text, const char *placements, tsr_mesh **mesh)
{
    const int64_t shape[] = {ROWS, COLUMNS};
    tsr_layout *layout = NULL;
    succeed(tsr_mesh_parse(NULL, NULL, mesh_text, mesh));
    succeed(tsr_layout_parse(*mesh, placements, 2, shape, TSR_F32, &layout));
    return layout;
}

/* Each answer is that of tsr_layout_owner(), which looks for one element. */
static void check_owners(const tsr_layout *layout)
{
    int32_t ids[2 * MOST];
    int64_t ranks[MOST], locals[MOST], only[MOST], count = 2 * ROWS;
    for (int i = 0; i < count; i++)
        ids[2 * i] = i * 7 % ROWS;
    tsr_tensor named = tsr_tensor_contiguous(ids, TSR_I32, 1, &count);
    named.strides[0] = 2;
    succeed(tsr_rows_owners(layout, &named, ranks, locals));
    succeed(tsr_rows_owners(layout, &named, NULL, only));
    assert_memory_equal(only, locals, (size_t)count * sizeof *only);
    for (int i = 0; i < count; i++) {
        const int64_t index[] = {ids[2 * i], 0};
        tsr_owner owner;
        succeed(tsr_layout_owner(layout, index, &owner));
        assert_int_equal(ranks[i], owner.rank);
        assert_int_equal(locals[i], owner.local[0]);
    }
}

/* The rows of each rank, in pieces, lead back to it. */
static void check_rows_of(const tsr_layout *layout)
{
    for (int64_t rank = 0; rank < 10; rank++) {
        int64_t ids[MOST], piece[MOST], count, again;
        succeed(tsr_rows_of(layout, rank, 0, MOST, ids, &count));
        for (int64_t first = 0; first <= count + 1; first++) {
            memset(piece, 0x55, sizeof piece);
            succeed(tsr_rows_of(layout, rank, first, 3, piece, &again));
            assert_int_equal(again, count);
            for (int64_t i = 0; i < 3; i++)
                assert_int_equal(piece[i], first + i < count ? ids[first + i] : 0x5555555555555555);
        }
        const tsr_mesh *const mesh = tsr_layout_mesh(layout);
        int64_t coordinate[TSR_MAX_DIMS], shape[TSR_MAX_DIMS];
        int inside;
        succeed(tsr_mesh_coordinate_of(mesh, rank, coordinate, &inside));
        if (!inside) {
            assert_int_equal(count, 0);
            continue;
        }
        succeed(tsr_layout_local(layout, coordinate, shape, NULL));
        assert_int_equal(count, shape[0]);
        for (int64_t i = 0; i < count; i++) {
            int64_t local;
            const int64_t one = 1;
            const tsr_tensor named = tsr_tensor_contiguous(&ids[i], TSR_I64, 1, &one);
            succeed(tsr_rows_owners(layout, &named, NULL, &local));
            assert_int_equal(local, i);
        }
    }
}

static void owners_and_rows_are_two_views_of_one_map(void **state)
{
    (void)state;
    for (int i = 0; i < LAYOUTS; i++) {
        tsr_mesh *mesh = NULL;
        tsr_layout *layout = parse(layouts[i].mesh, layouts[i].placements, &mesh);
        check_owners(layout);
        check_rows_of(layout);
        tsr_layout_destroy(layout);
        tsr_mesh_destroy(mesh);
    }
}

static void a_book_orders_things_by_part(void **state)
{
    (void)state;
    enum { THINGS = 40, PARTS = 5 };
    int64_t parts[THINGS], sizes[PARTS], rows[THINGS], things[THINGS], n = THINGS, next = 0;
    for (int i = 0; i < THINGS; i++)
        parts[i] = i * i % 4; /* part 4 has none, and 2 and 3 neither */
    const tsr_tensor book = tsr_tensor_contiguous(parts, TSR_I64, 1, &n);
    succeed(tsr_rows_read_book(&book, PARTS, sizes, rows, things));
    for (int part = 0; part < PARTS; part++) {
        int64_t size = 0;
        for (int i = 0; i < THINGS; i++)
            if (parts[i] == part) {
                assert_int_equal(rows[i], next);
                assert_int_equal(things[next++], i);
                size++;
            }
        assert_int_equal(sizes[part], size);
    }
    memset(sizes, 0, sizeof sizes);
    succeed(tsr_rows_read_book(&book, PARTS, sizes, NULL, NULL));
    assert_int_equal(sizes[0] + sizes[1], THINGS);
    n = 0;
    const tsr_tensor empty = tsr_tensor_contiguous(NULL, TSR_I32, 1, &n);
    succeed(tsr_rows_read_book(&empty, 2, sizes, rows, things));
    assert_int_equal(sizes[0] + sizes[1], 0);
}

static void what_has_no_answer_is_refused(void **state)
{
    (void)state;
    tsr_mesh *mesh = NULL;
    tsr_layout *layout = parse("2", "S(0)", &mesh), *scalar = NULL;
    int64_t ids[] = {1, ROWS}, out[2], n = 2, count = -5;
    const tsr_tensor named = tsr_tensor_contiguous(ids, TSR_I64, 1, &n);
    succeed(tsr_layout_parse(mesh, "R", 0, NULL, TSR_F32, &scalar));
    refuse(tsr_rows_owners(layout, &named, out, NULL), "tsr_rows_owners: ids at position 1 is 23: there are 23 rows");
    refuse(tsr_rows_owners(layout, NULL, out, NULL), "ids is NULL");
    refuse(tsr_rows_owners(NULL, &named, out, NULL), "layout is NULL");
    refuse(tsr_rows_owners(scalar, &named, out, NULL), "a scalar, which has no rows");
    refuse(tsr_rows_of(scalar, 0, 0, 2, out, &count), "a scalar");
    refuse(tsr_rows_of(layout, 0, -1, 2, out, &count), "first is -1");
    refuse(tsr_rows_of(layout, 0, 0, -2, out, &count), "capacity is -2");
    refuse(tsr_rows_of(layout, 0, 0, 2, NULL, &count), "ids is NULL");
    refuse(tsr_rows_of(layout, 0, 0, 2, out, NULL), "count is NULL");
    assert_int_equal(count, -5);
    refuse(tsr_rows_read_book(&named, 23, out, NULL, NULL), "parts at position 1 is 23: there are 23 parts");
    refuse(tsr_rows_read_book(&named, -1, out, NULL, NULL), "count is negative");
    refuse(tsr_rows_read_book(&named, 2, NULL, NULL, NULL), "sizes is NULL");
    refuse(tsr_rows_read_book(NULL, 2, out, NULL, NULL), "parts is NULL");
    tsr_layout_destroy(scalar);
    tsr_layout_destroy(layout);
    tsr_mesh_destroy(mesh);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(owners_and_rows_are_two_views_of_one_map),
        cmocka_unit_test(a_book_orders_things_by_part),
        cmocka_unit_test(what_has_no_answer_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
