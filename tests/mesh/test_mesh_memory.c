/* Every call that allocates, with its n-th allocation failing, for every n. */
#include "counted_memory.h"
#include "mesh/derive.h"
#include "mesh_support.h"

#include <tessera/sys/status.h>

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

/* What a mesh is made from: a text, and then a derivation of it. */
typedef tsr_status make(tsr_context *context, const tsr_mesh *from, tsr_mesh **out);

static const int64_t square[] = {2, 2};
static const char *const names[] = {"x", "y"};

static tsr_status make_regular(tsr_context *context, const tsr_mesh *from, tsr_mesh **out)
{
    (void)from;
    return tsr_mesh_create_abstract(context, 2, square, names, NULL, out);
}

static tsr_status make_listed(tsr_context *context, const tsr_mesh *from, tsr_mesh **out)
{
    (void)from;
    return tsr_mesh_create_abstract(context, 2, square, NULL, (const int64_t[]){3, 1, 0, 2}, out);
}

static tsr_status parse_regular(tsr_context *context, const tsr_mesh *from, tsr_mesh **out)
{
    (void)from;
    return tsr_mesh_parse(NULL, context, "dp=2,tp=4@8", out);
}

static tsr_status parse_listed(tsr_context *context, const tsr_mesh *from, tsr_mesh **out)
{
    (void)from;
    return tsr_mesh_parse(NULL, context, "dp=2,tp=2@[3,1,0,2]", out);
}

static tsr_status slice(tsr_context *context, const tsr_mesh *from, tsr_mesh **out)
{
    (void)context;
    return tsr_mesh_slice(from, "a,c", out);
}

static tsr_status flatten(tsr_context *context, const tsr_mesh *from, tsr_mesh **out)
{
    (void)context;
    return tsr_mesh_flatten(from, "a,b", out);
}

static tsr_status unflatten(tsr_context *context, const tsr_mesh *from, tsr_mesh **out)
{
    (void)context;
    return tsr_mesh_unflatten(from, "c", 2, square, names, out);
}

static tsr_status know_equal(tsr_context *context, const tsr_mesh *from, tsr_mesh **out)
{
    (void)context;
    return tsr_mesh_with_nodes(from, &(tsr_nodes){2, 0, NULL}, out);
}

static tsr_status know_listed(tsr_context *context, const tsr_mesh *from, tsr_mesh **out)
{
    (void)context;
    return tsr_mesh_with_nodes(from, &(tsr_nodes){0, 4, (const int64_t[]){0, 1, 1, 1}}, out);
}

static tsr_status know_listed_as_equal(tsr_context *context, const tsr_mesh *from, tsr_mesh **out)
{
    (void)context;
    return tsr_mesh_with_nodes(from, &(tsr_nodes){0, 4, (const int64_t[]){0, 0, 1, 1}}, out);
}

static tsr_status know_of_comm(tsr_context *context, const tsr_mesh *from, tsr_mesh **out)
{
    (void)from;
    tsr_comm comm = {0, 4, context, (const int[]){1, 0, 0, 0}};
    return tsr_mesh_create(&comm, 2, square, NULL, NULL, out);
}

/* Of a mesh that knows its nodes. */
static tsr_status split(tsr_context *context, const tsr_mesh *from, tsr_mesh **out)
{
    static tsr_comm comm;
    const tsr_mesh_dims both = {2, {0, 1}};
    tsr_mesh *known;
    comm = (tsr_comm){.size = 4, .context = context};
    TSR_TRY(tsr_mesh_with_nodes(from, &(tsr_nodes){2, 0, NULL}, &known));
    const tsr_status status = tsr_mesh_build_split(known, &both, (const int64_t[]){0, 1, 2, 3}, &comm, out);
    tsr_mesh_destroy(known);
    return status;
}

static tsr_status reorder(tsr_context *context, const tsr_mesh *from, tsr_mesh **out)
{
    (void)context;
    return tsr_mesh_reorder(from, (const int64_t[]){3, 1, 0, 2}, out);
}

static const struct {
    const char *from; /* NULL for a call that needs no mesh */
    make *call;
    size_t allocations;
} cases[] = {
    {NULL, make_regular, 1},
    {NULL, make_listed, 1},
    {NULL, parse_regular, 2},
    {NULL, parse_listed, 3},
    {"a=2,b=3,c=4", slice, 1},
    {"a=2,b=1,c=4@[7,6,5,4,3,2,1,9]", slice, 2},
    {"a=2,b=3,c=4", flatten, 2},
    {"a=2,b=3,c=4@[0,1,2,3,4,5,6,7,8,9,10,11,23,22,21,20,19,18,17,16,15,14,13,12]", flatten, 3},
    {"a=2,b=3,c=4", unflatten, 1},
    {"a=2,b=1,c=4@[7,6,5,4,3,2,1,9]", unflatten, 2},
    {"4", know_equal, 2},
    {"2x2", know_listed, 2},
    {"4", know_listed_as_equal, 3},
    {NULL, know_of_comm, 3},
    {"2x2", split, 6},
    {"2x2", reorder, 1},
};

static void run_case(size_t index)
{
    counted_memory memory = {0};
    tsr_context *context = counted_context(&memory);
    tsr_mesh *from = NULL, *out = NULL;
    if (cases[index].from)
        assert_int_equal(tsr_mesh_parse(NULL, context, cases[index].from, &from), TSR_OK);
    const size_t before = memory.allocations, blocks = memory.live_blocks;
    for (size_t n = 1; n <= cases[index].allocations; n++) {
        memory.fail_at = memory.allocations + n;
        const tsr_status status = cases[index].call(context, from, &out);
        if (status != TSR_ERROR_MEMORY || out || memory.live_blocks != blocks)
            fail_msg("case %zu, allocation %zu: status %s, %zu blocks left", index, n, tsr_status_name(status),
                     memory.live_blocks - blocks);
        memory.allocations = before;
    }
    memory.fail_at = 0;
    assert_int_equal(cases[index].call(context, from, &out), TSR_OK);
    assert_int_equal(memory.allocations - before, cases[index].allocations);
    tsr_mesh_destroy(out);
    tsr_mesh_destroy(from);
    tsr_context_destroy(context);
    assert_nothing_leaked(&memory);
}

static void the_nth_allocation_fails_and_nothing_leaks_or_is_written(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        run_case(i);
}

static void *use_and_drop(void *shared)
{
    tsr_mesh *mesh = shared;
    for (int i = 0; i < 2000; i++) {
        tsr_mesh *slice = NULL;
        tsr_mesh_retain(mesh);
        if (tsr_mesh_slice(mesh, "b", &slice) != TSR_OK)
            return "slice failed";
        tsr_mesh_destroy(slice);
        tsr_mesh_destroy(mesh);
    }
    tsr_mesh_destroy(mesh);
    return NULL;
}

static void threads_share_a_mesh_and_the_last_frees_it(void **state)
{
    (void)state;
    pthread_t threads[4];
    tsr_mesh *plain = parsed("a=2,b=2@[3,1,0,7]"), *mesh;
    assert_int_equal(tsr_mesh_with_nodes(plain, &(tsr_nodes){2, 0, NULL}, &mesh), TSR_OK);
    tsr_mesh_destroy(plain);
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, use_and_drop, tsr_mesh_retain(mesh)), 0);
    tsr_mesh_destroy(mesh);
    for (int i = 0; i < 4; i++) {
        void *failure = NULL;
        assert_int_equal(pthread_join(threads[i], &failure), 0);
        assert_null(failure);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_nth_allocation_fails_and_nothing_leaks_or_is_written),
        cmocka_unit_test(threads_share_a_mesh_and_the_last_frees_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
