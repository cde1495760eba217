/* The check of moves in benchmarks accepts right results, and finds every wrong element. */
#include <tessera/tessera.h>

#include <bench/check/move_check.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define MOST_RANKS 8
#define MOST_BYTES 4096

/* The local tensors of all ranks of a layout. */
typedef struct held {
    tsr_layout *layout;
    int ranks;
    int64_t coordinate[MOST_RANKS][TSR_MAX_DIMS];
    size_t bytes[MOST_RANKS];
    unsigned char data[MOST_RANKS][MOST_BYTES];
} held;

static void hold(held *h, const tsr_mesh *mesh, const char *placements, const int64_t shape[2], tsr_dtype dtype)
{
    assert_int_equal(tsr_layout_parse(mesh, placements, 2, shape, dtype, &h->layout), TSR_OK);
    h->ranks = (int)tsr_mesh_count(mesh);
    for (int r = 0; r < h->ranks; r++) {
        int inside;
        assert_int_equal(tsr_mesh_coordinate_of(mesh, r, h->coordinate[r], &inside), TSR_OK);
        assert_int_equal(tsr_layout_local_bytes(h->layout, h->coordinate[r], &h->bytes[r]), TSR_OK);
        assert_in_range(h->bytes[r], 0, MOST_BYTES);
    }
}

static void fill(held *h)
{
    for (int r = 0; r < h->ranks; r++)
        assert_int_equal(check_fill(h->layout, h->coordinate[r], h->data[r], h->bytes[r]), TSR_OK);
}

static int64_t wrong_on(const held *from, const held *to, int rank)
{
    int64_t wrong = -1;
    assert_int_equal(
        check_count_wrong(from->layout, to->layout, to->coordinate[rank], to->data[rank], to->bytes[rank], &wrong),
        TSR_OK);
    return wrong;
}

static void what_was_filled_is_right_and_any_other_byte_is_wrong(void **state)
{
    (void)state;
    static const char *const placements[] = {"R,R",    "S(0),S(1)", "S(1),S(1)",
                                             "P,S(0)", "P,P",       "S(0;interleave=2),P(avg)"};
    static held h;
    const int64_t shape[2] = {5, 4};
    tsr_mesh *mesh;
    assert_int_equal(tsr_mesh_parse(NULL, NULL, "2x3", &mesh), TSR_OK);
    for (size_t p = 0; p < sizeof placements / sizeof *placements; p++) {
        hold(&h, mesh, placements[p], shape, TSR_F32);
        fill(&h);
        for (int r = 0; r < h.ranks; r++) {
            print_message("%s rank %d\n", placements[p], r);
            assert_int_equal(wrong_on(&h, &h, r), 0);
            for (size_t b = 0; b < h.bytes[r]; b++) {
                h.data[r][b] ^= 1;
                assert_int_equal(wrong_on(&h, &h, r), 1);
                h.data[r][b] ^= 1;
            }
        }
        tsr_layout_destroy(h.layout);
    }
    tsr_mesh_destroy(mesh);
}

static void elements_of_one_row_differ(void **state)
{
    (void)state;
    static held h;
    const int64_t shape[2] = {8, 16};
    tsr_mesh *mesh;
    assert_int_equal(tsr_mesh_parse(NULL, NULL, "1", &mesh), TSR_OK);
    hold(&h, mesh, "R", shape, TSR_F64);
    fill(&h);
    for (size_t i = 0; i < 128; i++)
        for (size_t j = 0; j < i; j++)
            assert_memory_not_equal(h.data[0] + 8 * i, h.data[0] + 8 * j, 8);
    tsr_layout_destroy(h.layout);
    tsr_mesh_destroy(mesh);
}

static int64_t combine(tsr_reduce_op op, int64_t a, int64_t b)
{
    if (op == TSR_MIN)
        return a < b ? a : b;
    if (op == TSR_MAX)
        return a > b ? a : b;
    return op == TSR_PROD ? a * b : a + b;
}

/* Reduces the 64-bit integers of all ranks by hand, with the term of rank `twice` in place of rank
 * `never`'s, into every rank of `to`. */
static void reduce(const held *from, held *to, tsr_reduce_op op, int never, int twice)
{
    for (size_t i = 0; i < from->bytes[0] / 8; i++) {
        int64_t result = 0;
        for (int r = 0; r < from->ranks; r++) {
            int64_t term;
            memcpy(&term, from->data[r == never ? twice : r] + 8 * i, 8);
            result = r == 0 ? term : combine(op, result, term);
        }
        for (int r = 0; r < to->ranks; r++)
            memcpy(to->data[r] + 8 * i, &result, 8);
    }
}

static void reduced_terms_are_right_and_every_rank_of_them_counts(void **state)
{
    (void)state;
    static const tsr_reduce_op ops[] = {TSR_SUM, TSR_MIN, TSR_MAX, TSR_PROD};
    static held from, to;
    const int64_t shape[2] = {12, 12};
    for (int ranks = 2; ranks <= MOST_RANKS; ranks++) {
        for (size_t o = 0; o < sizeof ops / sizeof *ops; o++) {
            char mesh_text[8], placements[16];
            tsr_mesh *mesh;
            snprintf(mesh_text, sizeof mesh_text, "%d", ranks);
            snprintf(placements, sizeof placements, "P(%s)", tsr_reduce_op_name(ops[o]));
            assert_int_equal(tsr_mesh_parse(NULL, NULL, mesh_text, &mesh), TSR_OK);
            hold(&from, mesh, placements, shape, TSR_I64);
            hold(&to, mesh, "R", shape, TSR_I64);
            fill(&from);
            reduce(&from, &to, ops[o], -1, -1);
            print_message("%s over %d ranks\n", placements, ranks);
            for (int r = 0; r < ranks; r++)
                assert_int_equal(wrong_on(&from, &to, r), 0);
            for (int never = 0; never < ranks; never++) {
                reduce(&from, &to, ops[o], never, (never + 1) % ranks);
                assert_int_not_equal(wrong_on(&from, &to, 0), 0);
            }
            tsr_layout_destroy(from.layout);
            tsr_layout_destroy(to.layout);
            tsr_mesh_destroy(mesh);
        }
    }
}

static void set_all(held *h, float value)
{
    for (int r = 0; r < h->ranks; r++)
        for (size_t i = 0; i < h->bytes[r] / sizeof value; i++)
            memcpy(h->data[r] + i * sizeof value, &value, sizeof value);
}

/* Replicate -> Partial: coordinate 0 keeps the value, the others hold the identity, to the sign of
 * zero. */
static void new_terms_are_exact_to_the_sign_of_zero(void **state)
{
    (void)state;
    static const struct {
        const char *to;
        float neutral, close;
    } cases[] = {{"P", -0.0f, 0.0f}, {"P(prod)", 1.0f, 0.0f}};
    static held from, to;
    const int64_t shape[2] = {3, 4};
    tsr_mesh *mesh;
    assert_int_equal(tsr_mesh_parse(NULL, NULL, "3", &mesh), TSR_OK);
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        hold(&from, mesh, "R", shape, TSR_F32);
        hold(&to, mesh, cases[c].to, shape, TSR_F32);
        fill(&from);
        set_all(&to, cases[c].neutral);
        assert_int_equal(wrong_on(&from, &to, 1), 0);
        assert_int_equal(wrong_on(&from, &to, 0), 12);
        memcpy(to.data[0], from.data[0], from.bytes[0]);
        assert_int_equal(wrong_on(&from, &to, 0), 0);
        set_all(&to, cases[c].close);
        assert_int_equal(wrong_on(&from, &to, 2), 12);
        tsr_layout_destroy(from.layout);
        tsr_layout_destroy(to.layout);
    }
    tsr_mesh_destroy(mesh);
}

/* Shard -> Partial(sum): every rank keeps its own rows, and holds -0.0 elsewhere. */
static void shards_become_terms_where_they_are(void **state)
{
    (void)state;
    static held from, to;
    const int64_t shape[2] = {4, 3};
    tsr_mesh *mesh;
    assert_int_equal(tsr_mesh_parse(NULL, NULL, "2", &mesh), TSR_OK);
    hold(&from, mesh, "S(0)", shape, TSR_F32);
    hold(&to, mesh, "P", shape, TSR_F32);
    fill(&from);
    set_all(&to, -0.0f);
    for (int r = 0; r < 2; r++) {
        assert_int_equal(wrong_on(&from, &to, r), 6);
        memcpy(to.data[r] + (size_t)r * 24, from.data[r], 24);
        assert_int_equal(wrong_on(&from, &to, r), 0);
    }
    tsr_layout_destroy(from.layout);
    tsr_layout_destroy(to.layout);
    tsr_mesh_destroy(mesh);
}

/* Each split has four elements on each rank, so that only their values tell them apart. */
static void elements_of_another_split_are_wrong(void **state)
{
    (void)state;
    static const struct {
        const char *placements;
        int64_t elements[2][4];
    } splits[] = {
        {"S(0)", {{0, 1, 2, 3}, {4, 5, 6, 7}}},
        {"S(0;interleave=2)", {{0, 1, 4, 5}, {2, 3, 6, 7}}},
        {"S(0;blocks=2,6)", {{0, 2, 3, 4}, {1, 5, 6, 7}}},
        {"S(0;interleave=4)", {{0, 2, 4, 6}, {1, 3, 5, 7}}},
    };
    static held whole, from, to;
    const int64_t shape[2] = {8, 1};
    tsr_mesh *mesh;
    assert_int_equal(tsr_mesh_parse(NULL, NULL, "2", &mesh), TSR_OK);
    hold(&whole, mesh, "R", shape, TSR_F32);
    fill(&whole);
    for (size_t s = 0; s < sizeof splits / sizeof *splits; s++) {
        hold(&from, mesh, splits[s].placements, shape, TSR_F32);
        fill(&from);
        for (size_t other = 0; other < sizeof splits / sizeof *splits; other++) {
            hold(&to, mesh, splits[other].placements, shape, TSR_F32);
            for (int r = 0; r < 2; r++) {
                int64_t wrong = 0;
                for (int i = 0; i < 4; i++) {
                    const int64_t has = splits[s].elements[r][i];
                    assert_memory_equal(from.data[r] + 4 * i, whole.data[0] + 4 * has, 4);
                    wrong += has != splits[other].elements[r][i];
                }
                memcpy(to.data[r], from.data[r], 16);
                assert_int_equal(wrong_on(&whole, &to, r), wrong);
            }
            tsr_layout_destroy(to.layout);
        }
        tsr_layout_destroy(from.layout);
    }
    tsr_layout_destroy(whole.layout);
    tsr_mesh_destroy(mesh);
}

static void a_shard_of_another_size_is_refused(void **state)
{
    (void)state;
    static held h;
    const int64_t shape[2] = {5, 4};
    int64_t wrong = 7;
    tsr_mesh *mesh;
    assert_int_equal(tsr_mesh_parse(NULL, NULL, "2", &mesh), TSR_OK);
    hold(&h, mesh, "S(0)", shape, TSR_F32);
    assert_int_equal(check_fill(h.layout, h.coordinate[1], h.data[1], 3 * 4 * 4), TSR_ERROR_INTERNAL);
    assert_string_equal(tsr_status_message(),
                        "a shard has 8 elements by the rules of layouts, but memory of 48 bytes; please report it");
    assert_int_equal(check_count_wrong(h.layout, h.layout, h.coordinate[0], h.data[0], 2 * 4 * 4, &wrong),
                     TSR_ERROR_INTERNAL);
    assert_int_equal(wrong, 7);
    tsr_layout_destroy(h.layout);
    tsr_mesh_destroy(mesh);
}

/* The model lists the ranks of small meshes alone. */
static void large_meshes_are_checked(void **state)
{
    (void)state;
    const int64_t shape[2] = {16, 4}, first[2] = {0, 0}, last[2] = {9, 9};
    unsigned char x[16 * 4 * 8], y[16 * 4 * 8];
    tsr_mesh *mesh;
    tsr_layout *from, *to;
    int64_t sum[64] = {0}, term, wrong;
    assert_int_equal(tsr_mesh_parse(NULL, NULL, "10x10", &mesh), TSR_OK);
    assert_int_equal(tsr_layout_parse(mesh, "P,P", 2, shape, TSR_I64, &from), TSR_OK);
    assert_int_equal(tsr_layout_parse(mesh, "R,R", 2, shape, TSR_I64, &to), TSR_OK);
    for (int rank = 0; rank < 100; rank++) {
        assert_int_equal(check_fill(from, (int64_t[]){rank / 10, rank % 10}, x, sizeof x), TSR_OK);
        for (size_t i = 0; i < 64; i++) {
            memcpy(&term, x + 8 * i, 8);
            sum[i] += term;
        }
    }
    memcpy(y, sum, sizeof y);
    assert_int_equal(check_count_wrong(from, to, first, y, sizeof y, &wrong), TSR_OK);
    assert_int_equal(wrong, 0);
    y[8 * 63]++;
    assert_int_equal(check_count_wrong(from, to, last, y, sizeof y, &wrong), TSR_OK);
    assert_int_equal(wrong, 1);
    tsr_layout_destroy(to);
    tsr_layout_destroy(from);
    tsr_mesh_destroy(mesh);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_filled_is_right_and_any_other_byte_is_wrong),
        cmocka_unit_test(elements_of_one_row_differ),
        cmocka_unit_test(reduced_terms_are_right_and_every_rank_of_them_counts),
        cmocka_unit_test(new_terms_are_exact_to_the_sign_of_zero),
        cmocka_unit_test(shards_become_terms_where_they_are),
        cmocka_unit_test(elements_of_another_split_are_wrong),
        cmocka_unit_test(a_shard_of_another_size_is_refused),
        cmocka_unit_test(large_meshes_are_checked),
    };
    return cmocka_run_group_tests_name("bench check", tests, NULL, NULL);
}
