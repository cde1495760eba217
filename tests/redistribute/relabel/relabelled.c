#include "relabelled.h"

#include "layouts.h"
#include "support.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

int64_t shared_elements(const oracle_layout *src, int64_t rank, const oracle_layout *dst, int64_t position)
{
    int64_t have[TSR_MAX_DIMS], want[TSR_MAX_DIMS], shared = 1;
    const int64_t at = oracle_mesh_position(&src->mesh, rank);
    if (at < 0)
        return 0;
    oracle_mesh_coordinate(&src->mesh, at, have);
    oracle_mesh_coordinate(&dst->mesh, position, want);
    for (int dim = 0; dim < src->ndim; dim++) {
        int64_t *a = malloc((size_t)(2 * src->shape[dim] + 1) * sizeof *a), *b = a + src->shape[dim], both = 0;
        const int64_t a_count = oracle_owned(src, have, dim, a), b_count = oracle_owned(dst, want, dim, b);
        for (int64_t i = 0; i < a_count; i++)
            for (int64_t j = 0; j < b_count; j++)
                both += a[i] == b[j];
        shared *= both;
        free(a);
    }
    return shared;
}

int64_t *shared_table(const oracle_layout *src, const oracle_layout *dst)
{
    const int64_t n = oracle_mesh_count(&dst->mesh);
    int64_t *table = malloc((size_t)(n * n) * sizeof *table);
    for (int64_t i = 0; i < n; i++)
        for (int64_t position = 0; position < n; position++)
            table[i * n + position] = shared_elements(src, dst->mesh.ranks[i], dst, position);
    return table;
}

/* Whether elements at a coordinate of the move's destination can count as kept: not where they are
 * fills, nor in the zero terms of a new Partial. */
static bool counts(const oracle_move *move, const int64_t *coordinate)
{
    if (move->shortcut)
        return true;
    for (int i = 0; i < move->dst.mesh.ndim && move->reduced_terms > 1; i++)
        if (move->dst.placements[i].kind == TSR_PARTIAL && !move->kept[i] && coordinate[i] != 0)
            return false;
    return !oracle_filled_by(move, coordinate);
}

/* The move has no mesh dims of size 1, so positions are taken in its own meshes. */
int64_t kept_by(const oracle_layout *src, const oracle_layout *dst, const oracle_layout *given, const int64_t *table)
{
    const int64_t n = oracle_mesh_count(&dst->mesh);
    oracle_move move;
    oracle_move_make(src, dst, &move);
    int64_t elements = 0;
    for (int64_t position = 0; position < n; position++) {
        int64_t coordinate[TSR_MAX_DIMS];
        oracle_mesh_coordinate(&move.dst.mesh, position, coordinate);
        if (counts(&move, coordinate))
            elements += table[oracle_mesh_position(&given->mesh, dst->mesh.ranks[position]) * n + position];
    }
    return elements * (int64_t)oracle_bytes(src->dtype);
}

oracle_layout with_mesh_of(const oracle_layout *layout, const tsr_layout *made)
{
    oracle_layout out = *layout;
    const int64_t n = oracle_mesh_count(&layout->mesh);
    for (int64_t position = 0; position < n; position++) {
        int64_t coordinate[TSR_MAX_DIMS];
        oracle_mesh_coordinate(&layout->mesh, position, coordinate);
        expect_ok(tsr_mesh_rank_at(tsr_layout_mesh(made), coordinate, &out.mesh.ranks[position]));
    }
    return out;
}

void name_case(const oracle_layout *src, const oracle_layout *dst)
{
    char text[6][512];
    test_case("--shape %s --dtype %s --from-mesh '%s' --from '%s' --mesh '%s' --to '%s' --relabel",
              oracle_print_shape(src->ndim, src->shape, text[0], sizeof text[0]), oracle_dtype_name(src->dtype),
              oracle_print_mesh(&src->mesh, text[1], sizeof text[1]),
              oracle_print_placements(src->placements, src->mesh.ndim, text[2], sizeof text[2]),
              oracle_print_mesh(&dst->mesh, text[3], sizeof text[3]),
              oracle_print_placements(dst->placements, dst->mesh.ndim, text[4], sizeof text[4]));
}

#define EXPECT(condition)                                                                                              \
    do {                                                                                                               \
        if (!(condition))                                                                                              \
            fail_msg("not true: %s\ncase: %s", #condition, test_case_text());                                          \
    } while (0)

static void check_mesh(const oracle_layout *dst, const oracle_layout *came, const tsr_layout *made)
{
    EXPECT(tsr_mesh_ndim(tsr_layout_mesh(made)) == dst->mesh.ndim);
    for (int i = 0; i < dst->mesh.ndim; i++)
        EXPECT(tsr_mesh_size(tsr_layout_mesh(made), i) == dst->mesh.shape[i]);
    for (int64_t i = 0; i < oracle_mesh_count(&dst->mesh); i++)
        EXPECT(oracle_mesh_position(&came->mesh, dst->mesh.ranks[i]) >= 0);
    tsr_layout *again = abstract_layout(came);
    EXPECT(tsr_layout_equal(again, made));
    tsr_layout_destroy(again);
}

int64_t count_moved(const oracle_mesh *given, const oracle_mesh *came)
{
    int64_t moved = 0;
    for (int64_t i = 0; i < oracle_mesh_count(given); i++)
        moved += given->ranks[i] != came->ranks[i];
    return moved;
}

tsr_relabel_report check_relabel(const oracle_layout *src, const oracle_layout *dst, const int64_t *table)
{
    tsr_layout *from = abstract_layout(src), *to = abstract_layout(dst), *made = NULL;
    tsr_relabel_report report = {.bytes_kept = -1};
    name_case(src, dst);
    expect_ok(tsr_layout_relabel(from, to, &made, &report));
    const oracle_layout came = with_mesh_of(dst, made);
    check_mesh(dst, &came, made);
    EXPECT(report.bytes_kept_given == kept_by(src, dst, dst, table));
    EXPECT(report.bytes_kept == kept_by(src, &came, dst, table));
    EXPECT(report.bytes_kept >= report.bytes_kept_given);
    EXPECT(report.bytes_kept >= report.bytes_kept_greedy);
    EXPECT((report.bytes_kept == report.bytes_kept_given) == (made == to));
    EXPECT(report.moved_ranks == count_moved(&dst->mesh, &came.mesh));
    tsr_layout_destroy(made);
    tsr_layout_destroy(to);
    tsr_layout_destroy(from);
    return report;
}
