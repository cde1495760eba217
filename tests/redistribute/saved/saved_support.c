#include "saved_support.h"

#include "layouts.h"
#include "support.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static tsr_mesh *mesh_of(const char *text, tsr_nodes nodes)
{
    tsr_mesh *mesh = NULL, *knowing = NULL;
    expect_ok(tsr_mesh_parse(NULL, NULL, text, &mesh));
    expect_ok(tsr_mesh_with_nodes(mesh, &nodes, &knowing));
    tsr_mesh_destroy(mesh);
    return knowing;
}

static tsr_layout *layout_on(const tsr_mesh *mesh, const saved_move *move, const char *placements)
{
    int64_t shape[TSR_MAX_DIMS];
    tsr_layout *layout = NULL;
    expect_ok(tsr_layout_parse(mesh, placements, shape_of(move->shape, shape), shape, move->dtype, &layout));
    return layout;
}

tsr_plan *plan_of(const saved_move *move, const tsr_plan_options *options)
{
    tsr_plan *plan = NULL;
    test_case("--mesh %s%s%s --shape %s --dtype %s --from \"%s\" --to \"%s\"", move->from_mesh,
              move->to_mesh ? " --to-mesh " : "", move->to_mesh ? move->to_mesh : "", move->shape,
              tsr_dtype_name(move->dtype), move->from, move->to);
    tsr_mesh *from = mesh_of(move->from_mesh, move->nodes);
    tsr_mesh *to = move->to_mesh ? mesh_of(move->to_mesh, (tsr_nodes){0}) : tsr_mesh_retain(from);
    tsr_layout *src = layout_on(from, move, move->from), *dst = layout_on(to, move, move->to);
    expect_ok(tsr_plan_create(src, dst, options, &plan));
    tsr_layout_destroy(src);
    tsr_layout_destroy(dst);
    tsr_mesh_destroy(from);
    tsr_mesh_destroy(to);
    return plan;
}

saved_bytes bytes_of(const tsr_plan *plan)
{
    saved_bytes bytes = {NULL, 0};
    expect_ok(tsr_plan_save(plan, NULL, 0, &bytes.size));
    bytes.at = malloc(bytes.size);
    assert_non_null(bytes.at);
    size_t again = 0;
    expect_ok(tsr_plan_save(plan, bytes.at, bytes.size, &again));
    assert_int_equal(again, bytes.size);
    return bytes;
}

saved_bytes bytes_copy(const saved_bytes *bytes)
{
    saved_bytes copy = {malloc(bytes->size), bytes->size};
    assert_non_null(copy.at);
    memcpy(copy.at, bytes->at, bytes->size);
    return copy;
}

void bytes_free(saved_bytes *bytes)
{
    free(bytes->at);
    *bytes = (saved_bytes){NULL, 0};
}

void put_number(saved_bytes *bytes, size_t at, int width, uint64_t value)
{
    assert_true(at + (size_t)width <= bytes->size);
    for (int i = 0; i < width; i++)
        bytes->at[at + (size_t)i] = (unsigned char)(value >> 8 * i);
}

uint64_t get_number(const saved_bytes *bytes, size_t at, int width)
{
    assert_true(at + (size_t)width <= bytes->size);
    uint64_t value = 0;
    for (int i = width - 1; i >= 0; i--)
        value = value << 8 | bytes->at[at + (size_t)i];
    return value;
}

void seal(saved_bytes *bytes)
{
    uint64_t checksum = UINT64_C(14695981039346656037);
    put_number(bytes, AT_LENGTH, 8, bytes->size);
    for (size_t i = 0; i < bytes->size - 8; i++)
        checksum = (checksum ^ bytes->at[i]) * UINT64_C(1099511628211);
    put_number(bytes, bytes->size - 8, 8, checksum);
}

void expect_bytes(const tsr_plan *plan, const saved_bytes *bytes)
{
    saved_bytes have = bytes_of(plan);
    size_t same = 0;
    while (same < have.size && same < bytes->size && have.at[same] == bytes->at[same])
        same++;
    if (have.size != bytes->size || same != have.size)
        fail_msg("saved in %zu bytes, not %zu, and byte %zu differs\ncase: %s", have.size, bytes->size, same,
                 test_case_text());
    bytes_free(&have);
}
