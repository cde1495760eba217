#include "counted_memory.h"
#include "mesh/derive.h"
#include "mesh_support.h"

#include <tessera/sys/mesh_attachment.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define WORLD 300
#define DRAWS 2000

/* Dims as slice and flatten take them: names ("a,c") or indices ("0,2"), spaces or not. */
static void write_dims(char *text, size_t capacity, const int *dims, int count, bool named, bool spaced)
{
    size_t length = 0;
    text[0] = '\0';
    for (int i = 0; i < count; i++)
        length += (size_t)snprintf(text + length, capacity - length, "%s%c",
                                   i == 0   ? ""
                                   : spaced ? "  , "
                                            : ",",
                                   (named ? 'a' : '0') + dims[i]);
}

static int choose_some(random_state *random, int ndim, int *dims)
{
    int count = 0;
    while (count == 0)
        for (int d = 0; d < ndim; d++)
            if (random_below(random, 2))
                dims[count++] = d;
    return count;
}

/* The ranks that agree with `base` in all dims but those kept. */
static mesh_model model_slice(const mesh_model *whole, const int *kept, int count, const int64_t *base)
{
    mesh_model part = {.ndim = count, .count = 0};
    int64_t at[TSR_MAX_DIMS] = {0}, position = 0;
    for (int i = 0; i < count; i++)
        part.shape[i] = whole->shape[kept[i]];
    do {
        bool fits = true;
        for (int d = 0, i = 0; d < whole->ndim; d++) {
            const bool free = i < count && kept[i] == d;
            i += free;
            fits = fits && (free || at[d] == base[d]);
        }
        if (fits)
            part.ranks[part.count++] = whole->ranks[position];
        position++;
    } while (next_coordinate(whole, at));
    return part;
}

static void check_slice(const mesh_model *whole, random_state *random, tsr_comm *comm, uint64_t seed)
{
    int dims[TSR_MAX_DIMS], inside = 0;
    char text[128];
    int64_t base[TSR_MAX_DIMS] = {0};
    const bool named = random_below(random, 2);
    const int count = choose_some(random, whole->ndim, dims);
    tsr_mesh *mesh = mesh_of(whole, NULL, comm, named), *slice = NULL;
    assert_int_equal(tsr_mesh_coordinate(mesh, base, &inside), TSR_OK);
    write_dims(text, sizeof text, dims, count, named && random_below(random, 4), random_below(random, 2));
    if (tsr_mesh_slice(mesh, text, &slice) != TSR_OK)
        fail_msg("seed %llu: %s", (unsigned long long)seed, tsr_status_message());
    const mesh_model expected = model_slice(whole, dims, count, base);
    assert_mesh_is(slice, &expected, WORLD, seed);
    assert_ptr_equal(tsr_mesh_comm(slice), comm);
    for (int i = 0; i < count; i++)
        assert_int_equal(tsr_mesh_name(slice, i) ? tsr_mesh_name(slice, i)[0] : 0, named ? 'a' + dims[i] : 0);
    tsr_mesh_destroy(mesh);
    tsr_mesh_destroy(slice);
}

static void a_slice_holds_the_ranks_through_this_rank_or_through_coordinate_zero(void **state)
{
    (void)state;
    counted_memory memory = {0};
    tsr_context *context = counted_context(&memory);
    for (uint64_t seed = 0; seed < DRAWS; seed++) {
        random_state random = {seed};
        const mesh_model whole = random_model(&random, WORLD);
        tsr_comm comm = {0, WORLD, context};
        /* Draws a rank of the mesh half the time, else any rank, which is mostly one outside. */
        comm.rank = (int)(random_below(&random, 2) ? whole.ranks[random_below(&random, (uint64_t)whole.count)]
                                                   : (int64_t)random_below(&random, WORLD));
        check_slice(&whole, &random, random_below(&random, 3) ? &comm : NULL, seed);
    }
    tsr_context_destroy(context);
    assert_nothing_leaked(&memory);
}

static void flattening_keeps_the_order_of_ranks(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < DRAWS; seed++) {
        random_state random = {seed};
        const mesh_model whole = random_model(&random, WORLD);
        const int begin = (int)random_below(&random, (uint64_t)whole.ndim);
        const int count = 1 + (int)random_below(&random, (uint64_t)(whole.ndim - begin));
        const bool named = random_below(&random, 2);
        int dims[TSR_MAX_DIMS];
        char text[128], joined[64] = "";
        mesh_model expected = whole;
        expected.ndim = 0;
        for (int d = 0; d < whole.ndim; d++) {
            const bool merged = d > begin && d < begin + count;
            if (merged)
                expected.shape[expected.ndim - 1] *= whole.shape[d];
            else
                expected.shape[expected.ndim++] = whole.shape[d];
        }
        for (int i = 0; i < count; i++) {
            dims[i] = begin + i;
            snprintf(joined + strlen(joined), sizeof joined - strlen(joined), "%s%c", i ? "_" : "", 'a' + dims[i]);
        }
        write_dims(text, sizeof text, dims, count == whole.ndim && random_below(&random, 2) ? 0 : count, named, false);
        tsr_mesh *mesh = mesh_of(&whole, NULL, NULL, named), *flat = NULL;
        if (tsr_mesh_flatten(mesh, text, &flat) != TSR_OK)
            fail_msg("seed %llu: %s", (unsigned long long)seed, tsr_status_message());
        assert_mesh_is(flat, &expected, WORLD, seed);
        if (named)
            assert_string_equal(tsr_mesh_name(flat, begin), joined);
        else
            assert_null(tsr_mesh_name(flat, begin));
        tsr_mesh_destroy(mesh);
        tsr_mesh_destroy(flat);
    }
}

/* A random factor of `size`. */
static int64_t random_factor(random_state *random, int64_t size)
{
    int64_t factor;
    do
        factor = 1 + (int64_t)random_below(random, (uint64_t)size);
    while (size % factor != 0);
    return factor;
}

static void unflattening_keeps_the_order_of_ranks_and_flattening_undoes_it(void **state)
{
    (void)state;
    static const char *const names[] = {"x", "y", "z"};
    for (uint64_t seed = 0; seed < DRAWS; seed++) {
        random_state random = {seed};
        const mesh_model whole = random_model(&random, WORLD);
        const int dim = (int)random_below(&random, (uint64_t)whole.ndim);
        const bool named = random_below(&random, 2);
        int64_t shape[3];
        shape[0] = random_factor(&random, whole.shape[dim]);
        shape[1] = random_factor(&random, whole.shape[dim] / shape[0]);
        shape[2] = whole.shape[dim] / shape[0] / shape[1];
        mesh_model expected = whole;
        expected.ndim = 0;
        for (int d = 0; d < whole.ndim; d++)
            for (int i = 0; i < (d == dim ? 3 : 1); i++)
                expected.shape[expected.ndim++] = d == dim ? shape[i] : whole.shape[d];
        const char text[] = {(char)((named ? 'a' : '0') + dim), '\0'};
        char back[64];
        snprintf(back, sizeof back, "%d,%d,%d", dim, dim + 1, dim + 2);
        tsr_mesh *mesh = mesh_of(&whole, NULL, NULL, named), *split = NULL, *flat = NULL;
        if (tsr_mesh_unflatten(mesh, text, 3, shape, named ? names : NULL, &split) != TSR_OK)
            fail_msg("seed %llu: %s", (unsigned long long)seed, tsr_status_message());
        assert_mesh_is(split, &expected, WORLD, seed);
        if (named)
            assert_string_equal(tsr_mesh_name(split, dim + 1), "y");
        assert_int_equal(tsr_mesh_flatten(split, named ? "x,y,z" : back, &flat), TSR_OK);
        assert_true(tsr_mesh_equal(flat, mesh));
        tsr_mesh_destroy(mesh);
        tsr_mesh_destroy(split);
        tsr_mesh_destroy(flat);
    }
}

/* What one derivation of a mesh prints. */
static void expect_text(const tsr_mesh *derived, const char *text)
{
    assert_string_equal(text_of(derived), text);
}

static void derived_meshes_print_as_one_would_write_them(void **state)
{
    (void)state;
    tsr_mesh *mesh = parsed("dp=2,pp=1,tp=4"), *slice = NULL, *flat = NULL, *split = NULL;
    assert_int_equal(tsr_mesh_slice(mesh, "dp,tp", &slice), TSR_OK);
    expect_text(slice, "dp=2,tp=4");
    assert_int_equal(tsr_mesh_flatten(slice, "dp,tp", &flat), TSR_OK);
    expect_text(flat, "dp_tp=8");
    assert_int_equal(
        tsr_mesh_unflatten(flat, "dp_tp", 2, (const int64_t[]){4, 2}, (const char *const[]){"a", "b"}, &split), TSR_OK);
    expect_text(split, "a=4,b=2");
    tsr_mesh *const all[] = {mesh, slice, flat, split};
    for (int i = 0; i < 4; i++)
        tsr_mesh_destroy(all[i]);
    mesh = parsed("dp=2,tp=4");
    assert_int_equal(tsr_mesh_slice(mesh, "dp", &slice), TSR_OK);
    expect_text(slice, "dp=2@[0,4]");
    assert_int_equal(tsr_mesh_slice(mesh, "tp", &flat), TSR_OK);
    expect_text(flat, "tp=4");
    tsr_mesh_destroy(mesh);
    tsr_mesh_destroy(slice);
    tsr_mesh_destroy(flat);
}

static void an_unnamed_mesh_of_one_dim_may_get_names_when_it_is_unflattened(void **state)
{
    (void)state;
    tsr_mesh *mesh = parsed("8"), *split = NULL;
    assert_int_equal(
        tsr_mesh_unflatten(mesh, "0", 2, (const int64_t[]){2, 4}, (const char *const[]){"kv", "group"}, &split),
        TSR_OK);
    expect_text(split, "kv=2,group=4");
    tsr_mesh_destroy(mesh);
    tsr_mesh_destroy(split);
}

static void slices_of_huge_meshes_stay_small(void **state)
{
    (void)state;
    counted_memory memory = {0};
    tsr_context *context = counted_context(&memory);
    tsr_mesh *mesh = NULL, *slice = NULL, *flat = NULL, *split = NULL;
    assert_int_equal(tsr_mesh_parse(NULL, context, "pp=1024,dp=1024,tp=1024", &mesh), TSR_OK);
    const size_t bytes = memory.live_bytes;
    assert_int_equal(tsr_mesh_slice(mesh, "pp,tp", &slice), TSR_OK);
    assert_int_equal(tsr_mesh_flatten(mesh, "dp,tp", &flat), TSR_OK);
    assert_int_equal(
        tsr_mesh_unflatten(mesh, "dp", 2, (const int64_t[]){4, 256}, (const char *const[]){"a", "b"}, &split), TSR_OK);
    assert_true(memory.live_bytes < 4 * bytes);
    int64_t rank = -1;
    assert_int_equal(tsr_mesh_rank_at(slice, (const int64_t[]){1023, 5}, &rank), TSR_OK);
    assert_int_equal(rank, (1023 << 20) + 5);
    assert_int_equal(tsr_mesh_rank_at(flat, (const int64_t[]){2, 1025}, &rank), TSR_OK);
    assert_int_equal(rank, (2 << 20) + 1025);
    assert_int_equal(tsr_mesh_rank_at(split, (const int64_t[]){0, 3, 255, 1}, &rank), TSR_OK);
    assert_int_equal(rank, (1023 << 10) + 1);
    tsr_mesh_destroy(mesh);
    tsr_mesh_destroy(slice);
    tsr_mesh_destroy(flat);
    tsr_mesh_destroy(split);
    tsr_context_destroy(context);
    assert_nothing_leaked(&memory);
}

static void dims_of_size_one_do_not_keep_a_huge_mesh_from_being_flattened(void **state)
{
    (void)state;
    counted_memory memory = {0};
    tsr_context *context = counted_context(&memory);
    tsr_mesh *mesh = NULL, *flat = NULL;
    int64_t rank = -1;
    assert_int_equal(tsr_mesh_parse(NULL, context, "1x1024x1x1048576x1", &mesh), TSR_OK);
    const size_t bytes = memory.live_bytes;
    assert_int_equal(tsr_mesh_flatten(mesh, "", &flat), TSR_OK);
    assert_true(memory.live_bytes <= 2 * bytes);
    assert_int_equal(tsr_mesh_rank_at(flat, (const int64_t[]){(1 << 30) - 1}, &rank), TSR_OK);
    assert_int_equal(rank, (1 << 30) - 1);
    tsr_mesh_destroy(mesh);
    tsr_mesh_destroy(flat);
    tsr_context_destroy(context);
    assert_nothing_leaked(&memory);
}

static void an_abstract_copy_has_the_same_ranks_and_names_and_no_communicator(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 500; seed++) {
        random_state random = {seed};
        const mesh_model whole = random_model(&random, WORLD);
        tsr_context *context = NULL;
        assert_int_equal(tsr_context_create(NULL, &context), TSR_OK);
        tsr_comm comm = {0, WORLD, context};
        tsr_mesh *mesh = mesh_of(&whole, NULL, &comm, seed % 2), *copy = NULL;
        assert_int_equal(tsr_mesh_copy(mesh, &copy), TSR_OK);
        assert_string_equal(text_of(copy), text_of(mesh));
        assert_mesh_is(copy, &whole, WORLD, seed);
        assert_null(tsr_mesh_comm(copy));
        tsr_mesh_destroy(mesh);
        tsr_mesh_destroy(copy);
        tsr_context_destroy(context);
    }
}

/* A mesh that owns its communicator, and meshes made of it, destroyed in any order. */
static void an_owned_communicator_ends_with_the_last_mesh_over_it(void **state)
{
    (void)state;
    const tsr_mesh_dims both = {2, {0, 1}};
    const int64_t ranks[] = {4, 5, 6, 7}, reversed[] = {3, 2, 1, 0};
    for (int first = 0; first < 5; first++) {
        counted_memory memory = {0};
        tsr_context *context = counted_context(&memory);
        tsr_comm comm = {0, 8, context}, own = {3, 4, context};
        tsr_mesh *mesh = NULL, *copy = NULL, *made[5];
        assert_int_equal(tsr_mesh_parse(&comm, NULL, "a=2,b=2@4", &mesh), TSR_OK);
        assert_int_equal(tsr_mesh_build_split(mesh, &both, ranks, &own, &made[0]), TSR_OK);
        assert_string_equal(text_of(made[0]), "a=2,b=2");
        assert_int_equal(tsr_mesh_slice(made[0], "b", &made[1]), TSR_OK);
        assert_int_equal(tsr_mesh_flatten(made[1], "", &made[2]), TSR_OK);
        assert_int_equal(tsr_mesh_with_nodes(made[2], NULL, &made[3]), TSR_OK);
        assert_int_equal(tsr_mesh_reorder(made[0], reversed, &made[4]), TSR_OK);
        assert_string_equal(text_of(made[4]), "a=2,b=2@[3,2,1,0]");
        assert_int_equal(tsr_mesh_copy(made[0], &copy), TSR_OK);
        for (int i = 0; i < 5; i++) {
            assert_int_equal(own.destroyed, 0);
            assert_ptr_equal(tsr_mesh_comm(made[(first + i) % 5]), &own);
            tsr_mesh_destroy(made[(first + i) % 5]);
        }
        assert_int_equal(own.destroyed, 1);
        tsr_mesh_destroy(copy);
        tsr_mesh_destroy(mesh);
        assert_int_equal(own.destroyed, 1);
        assert_int_equal(comm.destroyed, 0);
        tsr_context_destroy(context);
        assert_nothing_leaked(&memory);
    }
}

static void a_slice_outlives_its_parent(void **state)
{
    (void)state;
    counted_memory memory = {0};
    tsr_context *context = counted_context(&memory);
    tsr_mesh *mesh = NULL, *slice = NULL;
    assert_int_equal(tsr_mesh_parse(NULL, context, "a=2,b=2@[3,1,0,7]", &mesh), TSR_OK);
    tsr_context_destroy(context);
    assert_int_equal(tsr_mesh_slice(mesh, "a,b", &slice), TSR_OK);
    tsr_mesh_destroy(mesh);
    expect_text(slice, "a=2,b=2@[3,1,0,7]");
    tsr_mesh_destroy(slice);
    assert_nothing_leaked(&memory);
}

static void refuse(tsr_status status, const tsr_mesh *out, const char *says)
{
    assert_int_equal(status, TSR_ERROR_ARGUMENT);
    assert_null(out);
    if (!strstr(tsr_status_message(), says))
        fail_msg("\"%s\" does not say \"%s\"", tsr_status_message(), says);
}

static void dims_that_are_not_there_or_out_of_order_are_refused(void **state)
{
    (void)state;
    tsr_mesh *mesh = parsed("a=2,b=3,c=4"), *out = NULL;
    refuse(tsr_mesh_slice(mesh, "z", &out), out,
           "dims \"z\", character 1: the mesh has no such dim, but has \"a\" \"b\" \"c\"");
    refuse(tsr_mesh_slice(mesh, "", &out), out, "the mesh has no such dim");
    refuse(tsr_mesh_slice(mesh, "a,", &out), out, "character 3: the mesh has no such dim");
    refuse(tsr_mesh_slice(mesh, "3", &out), out, "the mesh has no such dim");
    refuse(tsr_mesh_slice(mesh, "00", &out), out, "the mesh has no such dim");
    refuse(tsr_mesh_slice(mesh, "b,a", &out), out, "character 3: dims go in mesh order, each once");
    refuse(tsr_mesh_slice(mesh, "b,b", &out), out, "character 3: dims go in mesh order, each once");
    refuse(tsr_mesh_slice(mesh, "a b", &out), out, "character 2: expected \",\" or the end, found \" \"");
    refuse(tsr_mesh_slice(NULL, "a", &out), out, "must not be NULL");
    refuse(tsr_mesh_slice(mesh, NULL, &out), out, "must not be NULL");
    refuse(tsr_mesh_flatten(mesh, "a,c", &out), out, "\"a,c\" are not adjacent");
    refuse(tsr_mesh_flatten(mesh, "c,b", &out), out, "in mesh order");
    refuse(tsr_mesh_flatten(NULL, "", &out), out, "must not be NULL");
    tsr_mesh_destroy(mesh);
    mesh = parsed("2x3");
    refuse(tsr_mesh_slice(mesh, "dp", &out), out, "the mesh has no such dim, but has \"0\" \"1\"");
    tsr_mesh_destroy(mesh);
    mesh = parsed("a=2,b=3,a_b=4");
    refuse(tsr_mesh_flatten(mesh, "a,b", &out), out, "both be called \"a_b\"");
    tsr_mesh_destroy(mesh);
}

static void an_unflattening_that_does_not_fit_is_refused(void **state)
{
    (void)state;
    const char *const names[] = {"x", "y", "z", "u", "v", "w", "s", "t"};
    const int64_t good[] = {2, 3}, large[] = {2, 6}, small[] = {2, 1}, zero[] = {0, 6},
                  ones[8] = {6, 1, 1, 1, 1, 1, 1, 1};
    const int64_t huge[] = {INT64_MAX, INT64_MAX};
    tsr_mesh *mesh = parsed("a=6,b=4"), *plain = parsed("6x4"), *out = NULL;
    refuse(tsr_mesh_unflatten(mesh, "a", 2, large, names, &out), out,
           "shape[1] is 6, which does not divide the 3 ranks left of dim 0");
    refuse(tsr_mesh_unflatten(mesh, "a", 2, huge, names, &out), out, "shape[0] is 9223372036854775807");
    refuse(tsr_mesh_unflatten(mesh, "a", 2, small, names, &out), out, "shape has 2 ranks in all, but dim 0 has 6");
    refuse(tsr_mesh_unflatten(mesh, "a", 2, zero, names, &out), out, "shape[0] is 0");
    refuse(tsr_mesh_unflatten(mesh, "a", 0, good, names, &out), out, "ndim is 0");
    refuse(tsr_mesh_unflatten(mesh, "a", INT32_MAX, good, names, &out), out, "ndim is 2147483647");
    refuse(tsr_mesh_unflatten(mesh, "a", 8, ones, names, &out), out, "ndim is 8; the mesh has 2 dims already");
    refuse(tsr_mesh_unflatten(mesh, "a", 2, good, NULL, &out), out, "names is NULL, but the mesh has named dims");
    refuse(tsr_mesh_unflatten(mesh, "a", 2, good, (const char *const[]){"b", "c"}, &out), out, "both be called \"b\"");
    refuse(tsr_mesh_unflatten(mesh, "a,b", 2, good, names, &out), out, "not one dim");
    refuse(tsr_mesh_unflatten(plain, "0", 2, good, names, &out), out, "names must be NULL");
    refuse(tsr_mesh_unflatten(plain, "0", 2, NULL, NULL, &out), out, "must not be NULL");
    assert_int_equal(tsr_mesh_unflatten(mesh, "a", 7, ones, names, &out), TSR_OK);
    assert_int_equal(tsr_mesh_ndim(out), 8);
    tsr_mesh_destroy(out);
    tsr_mesh_destroy(mesh);
    tsr_mesh_destroy(plain);
}

static void what_is_derived_from_a_mesh_knows_its_nodes(void **state)
{
    (void)state;
    const int64_t shape[] = {2, 6}, split[] = {3, 2};
    const char *const names[] = {"dp", "tp"}, *const parts[] = {"a", "b"};
    tsr_mesh *mesh, *known, *derived, *untouched = NULL;
    assert_int_equal(tsr_mesh_create_abstract(NULL, 2, shape, names, NULL, &mesh), TSR_OK);
    assert_int_equal(tsr_mesh_nodes(mesh).ranks_per_node, 0);
    assert_int_equal(tsr_mesh_with_nodes(mesh, &(tsr_nodes){.ranks_per_node = 4}, &known), TSR_OK);
    assert_int_equal(tsr_mesh_nodes(known).ranks_per_node, 4);
    assert_int_equal(tsr_mesh_equal(mesh, known), 1);
    assert_string_equal(tsr_mesh_name(known, 1), "tp");
    assert_int_equal(tsr_mesh_slice(known, "tp", &derived), TSR_OK);
    assert_int_equal(tsr_mesh_nodes(derived).ranks_per_node, 4);
    tsr_mesh_destroy(derived);
    assert_int_equal(tsr_mesh_flatten(known, "", &derived), TSR_OK);
    assert_int_equal(tsr_mesh_nodes(derived).ranks_per_node, 4);
    tsr_mesh_destroy(derived);
    assert_int_equal(tsr_mesh_unflatten(known, "tp", 2, split, parts, &derived), TSR_OK);
    assert_int_equal(tsr_mesh_nodes(derived).ranks_per_node, 4);
    tsr_mesh_destroy(derived);
    assert_int_equal(tsr_mesh_copy(known, &derived), TSR_OK);
    assert_int_equal(tsr_mesh_nodes(derived).ranks_per_node, 4);
    tsr_mesh_destroy(derived);
    assert_int_equal(tsr_mesh_with_nodes(mesh, &(tsr_nodes){.ranks_per_node = -1}, &untouched), TSR_ERROR_ARGUMENT);
    assert_non_null(strstr(tsr_status_message(), "ranks_per_node is -1"));
    assert_null(untouched);
    tsr_mesh_destroy(known);
    tsr_mesh_destroy(mesh);
}

static void assert_nodes(const tsr_mesh *mesh, int64_t ranks_per_node, int64_t count, const int64_t *node)
{
    const tsr_nodes nodes = tsr_mesh_nodes(mesh);
    assert_int_equal(nodes.ranks_per_node, ranks_per_node);
    assert_int_equal(nodes.count, count);
    for (int64_t r = 0; r < count; r++)
        assert_int_equal(nodes.node[r], node[r]);
}

static void nodes_have_one_form_however_they_are_given(void **state)
{
    (void)state;
    static const struct {
        int64_t given[8], node[8], ranks_per_node;
    } rows[] = {
        {{0, 0, 0, 1, 1, 1, 1, 1}, {0, 0, 0, 1, 1, 1, 1, 1}, 0},
        {{7, 7, 7, -1, -1, -1, -1, -1}, {0, 0, 0, 1, 1, 1, 1, 1}, 0},
        {{INT64_MAX, INT64_MIN, INT64_MAX, 0, 0, 0, 0, INT64_MIN}, {0, 1, 0, 2, 2, 2, 2, 1}, 0},
        {{1, 0, 1, 0, 1, 0, 1, 0}, {0, 1, 0, 1, 0, 1, 0, 1}, 0},
        {{0, 0, 0, 0, 0, 0, 0, 1}, {0}, 7},
        {{9, 9, 9, 5, 5, 5, 0, 0}, {0}, 3},
        {{3, 2, 1, 0, -1, -2, -3, -4}, {0}, 1},
        {{4, 4, 4, 4, 4, 4, 4, 4}, {0}, 8},
        {{0, 0, 0, 1, 1, 1, 0, 0}, {0, 0, 0, 1, 1, 1, 0, 0}, 0},
    };
    tsr_mesh *mesh = parsed("2x4"), *known, *again;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_int_equal(tsr_mesh_with_nodes(mesh, &(tsr_nodes){0, 8, rows[i].given}, &known), TSR_OK);
        assert_nodes(known, rows[i].ranks_per_node, rows[i].ranks_per_node > 0 ? 0 : 8, rows[i].node);
        const tsr_nodes nodes = tsr_mesh_nodes(known);
        assert_int_equal(tsr_mesh_with_nodes(mesh, &nodes, &again), TSR_OK);
        tsr_mesh_destroy(known);
        assert_nodes(again, rows[i].ranks_per_node, rows[i].ranks_per_node > 0 ? 0 : 8, rows[i].node);
        tsr_mesh_destroy(again);
    }
    tsr_mesh_destroy(mesh);
}

static void what_is_derived_from_a_mesh_knows_its_unequal_nodes(void **state)
{
    (void)state;
    static const int64_t node[] = {0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1};
    tsr_mesh *mesh = parsed("dp=3,tp=5"), *known, *derived;
    assert_int_equal(tsr_mesh_with_nodes(mesh, &(tsr_nodes){0, 15, node}, &known), TSR_OK);
    tsr_mesh_destroy(mesh);
    assert_int_equal(tsr_mesh_slice(known, "tp", &derived), TSR_OK);
    assert_nodes(derived, 0, 15, node);
    tsr_mesh_destroy(derived);
    assert_int_equal(tsr_mesh_flatten(known, "", &derived), TSR_OK);
    tsr_mesh_destroy(known);
    assert_nodes(derived, 0, 15, node);
    assert_int_equal(tsr_mesh_with_nodes(derived, &(tsr_nodes){0}, &known), TSR_OK);
    assert_nodes(known, 0, 0, NULL);
    tsr_mesh_destroy(known);
    tsr_mesh_destroy(derived);
}

static void assert_nodes_refused(const char *mesh, tsr_nodes nodes, const char *words)
{
    tsr_mesh *plain = parsed(mesh), *known = NULL;
    assert_int_equal(tsr_mesh_with_nodes(plain, &nodes, &known), TSR_ERROR_ARGUMENT);
    if (!strstr(tsr_status_message(), words))
        fail_msg("\"%s\" does not say \"%s\"", tsr_status_message(), words);
    assert_null(known);
    tsr_mesh_destroy(plain);
}

static void nodes_that_cannot_be_are_refused(void **state)
{
    (void)state;
    static const int64_t node[] = {0, 0, 0, 0};
    assert_nodes_refused("4", (tsr_nodes){-3, 0, NULL}, "nodes.ranks_per_node is -3");
    assert_nodes_refused("4", (tsr_nodes){0, -4, node}, "nodes.count is -4");
    assert_nodes_refused("4", (tsr_nodes){0, INT64_MAX, node}, "nodes.count is 9223372036854775807");
    assert_nodes_refused("4", (tsr_nodes){0, 4, NULL}, "nodes.node is NULL, but count is 4");
    assert_nodes_refused("4", (tsr_nodes){2, 4, node}, "nodes has 2 ranks a node and a list of 4 ranks");
    assert_nodes_refused("5", (tsr_nodes){0, 4, node}, "nodes are listed for ranks 0 to 3, but a mesh has rank 4");
    assert_nodes_refused("2@[0,9]", (tsr_nodes){0, 4, node}, "ranks 0 to 3, but a mesh has rank 9");
    assert_nodes_refused("2x2@1", (tsr_nodes){0, 4, node}, "ranks 0 to 3, but a mesh has rank 4");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_slice_holds_the_ranks_through_this_rank_or_through_coordinate_zero),
        cmocka_unit_test(flattening_keeps_the_order_of_ranks),
        cmocka_unit_test(unflattening_keeps_the_order_of_ranks_and_flattening_undoes_it),
        cmocka_unit_test(derived_meshes_print_as_one_would_write_them),
        cmocka_unit_test(an_unnamed_mesh_of_one_dim_may_get_names_when_it_is_unflattened),
        cmocka_unit_test(slices_of_huge_meshes_stay_small),
        cmocka_unit_test(dims_of_size_one_do_not_keep_a_huge_mesh_from_being_flattened),
        cmocka_unit_test(an_abstract_copy_has_the_same_ranks_and_names_and_no_communicator),
        cmocka_unit_test(an_owned_communicator_ends_with_the_last_mesh_over_it),
        cmocka_unit_test(a_slice_outlives_its_parent),
        cmocka_unit_test(what_is_derived_from_a_mesh_knows_its_nodes),
        cmocka_unit_test(nodes_have_one_form_however_they_are_given),
        cmocka_unit_test(what_is_derived_from_a_mesh_knows_its_unequal_nodes),
        cmocka_unit_test(nodes_that_cannot_be_are_refused),
        cmocka_unit_test(dims_that_are_not_there_or_out_of_order_are_refused),
        cmocka_unit_test(an_unflattening_that_does_not_fit_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
