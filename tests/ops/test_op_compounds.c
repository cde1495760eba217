/* Compounds of rules: dims that are products of factors. Which cuts of them are cuts of a factor is
 * compared with what coordinates own, index by index, for all small sizes and forms of cuts. */
#include "rule_cases.h"

#include <tessera/mesh.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define ATTENTION                                                                                                      \
    "... (h g) q d, ... h t d, ... h t e -> ... (h g) q e | d whole | t exchange | q t positional | (h g) positional"
#define SPLIT   "(a b) -> a b"
#define FLATTEN "a b -> (a b)"

static const rule_case accepted[] = {
    /* Queries of 8 heads share 4 of keys and values. */
    {ATTENTION, "2", {"8x5x4 S(0)", "4x6x4 S(0)", "4x6x3 S(0)"}, "S(0)"},
    {ATTENTION, "2", {"2x8x5x4 S(1)", "2x4x6x4 S(1)", "2x4x6x3 S(1)"}, "S(1)"},
    {ATTENTION, "2", {"8x5x4 S(0)", "4x6x4 R", "4x6x3 R"}, "S(0)"},
    {ATTENTION, "8", {"8x5x4 S(0)", "4x6x4 R", "4x6x3 R"}, "S(0)"},
    {ATTENTION, "3", {"8x5x4 S(0;sizes=3,3,2)", "4x6x4 R", "4x6x3 R"}, "S(0)"},
    {ATTENTION, "2x2", {"8x5x4 S(0),S(0)", "2x6x4 S(0),R", "2x6x3 S(0),R"}, "S(0),S(0)"},
    {ATTENTION, "2", {"8x5x4 R", "4x6x4 S(1)", "4x6x3 S(1)"}, "R"},
    {ATTENTION, "2", {"8x5x4 S(1)", "4x6x4 R", "4x6x3 R"}, "S(1)"},
    {"(h g) q, h t, g t -> (h g) q | t exchange", "2x2", {"8x5 S(0),S(0)", "2x3 S(0),R", "4x3 R,S(0)"}, "S(0),S(0)"},
    {"(h g) q, (h g) q, h q -> h q | g sum positional | (h g) positional", "2", {"6x5 S(0)", "6x5 S(0)", "3x5 R"}, "P"},
    /* Splitting */
    {SPLIT, "2", {"8 S(0)"}, "S(0)", {"4x2"}},
    {SPLIT, "2", {"8 S(0;interleave=4)"}, "S(1)", {"4x2"}},
    {SPLIT, "3", {"8 S(0;unit=2)"}, "S(0)", {"4x2"}},
    {SPLIT, "3", {"8 S(0;sizes=4,2,2)"}, "S(0;balanced)", {"4x2"}},
    {SPLIT, "2", {"12 S(0;sizes=9,3)"}, "S(0;unit=3)", {"4x3"}},
    {SPLIT, "2", {"8 S(0;blocks=4,4)"}, "S(1)", {"2x4"}},
    {SPLIT, "2x2", {"8 S(0),S(0)"}, "S(0),S(1)", {"2x4"}},
    {SPLIT, "2x2", {"8 S(0),S(0)"}, "S(0),S(0)", {"4x2"}},
    {SPLIT, "2x2", {"8 S(0)[1],S(0)[0]"}, "S(1),S(0)", {"2x4"}},
    {SPLIT, "2", {"4 S(0)"}, "S(1)", {"1x4"}},
    {SPLIT, "2", {"1 S(0)"}, "S(0)", {"1x1"}},
    {SPLIT, "1048576", {"4194304 S(0)"}, "S(0)", {"2097152x2"}},
    {"(a b c) -> a b c", "2x2x2", {"8 S(0),S(0),S(0)"}, "S(0),S(1),S(2)", {"2x2x2"}},
    {"(a b c) -> a b c", "2", {"24 S(0;interleave=2)"}, "S(1)", {"2x4x3"}},
    {"(a b) c -> a (b c)", "2", {"8x3 S(0;interleave=2)"}, "S(1)", {"2x12"}},
    /* Flattening */
    {FLATTEN, "2", {"4x2 S(0)"}, "S(0)"},
    {FLATTEN, "2", {"4x2 S(1)"}, "S(0;interleave=4)"},
    {FLATTEN, "2", {"5x2 S(0)"}, "S(0;unit=2)"},
    {FLATTEN, "2", {"5x2 S(0;balanced)"}, "S(0;unit=2)"},
    {FLATTEN, "3", {"5x3 S(0;sizes=1,2,2)"}, "S(0;sizes=3,6,6)"},
    {FLATTEN, "2", {"2x5 S(1)"}, "S(0;interleave=2)"},
    {FLATTEN, "2", {"2x5 S(1;sizes=4,1)"}, "S(0;interleave=2;unit=2)"},
    {FLATTEN, "2", {"5x2 S(0;interleave=2)"}, "S(0;blocks=6,4;unit=2)"},
    {FLATTEN, "2x2", {"2x4 S(0),S(1)"}, "S(0),S(0)"},
    {FLATTEN, "2x2", {"4x4 S(0),S(1)"}, "S(0),S(0;interleave=2)"},
    {FLATTEN, "2x2", {"4x4 S(1),S(0)"}, "S(0;interleave=4),S(0)"},
    {FLATTEN, "2x2", {"2x4 S(1),S(0)"}, "S(0)[1],S(0)[0]"},
    {FLATTEN, "2x2", {"3x3 S(0),S(1)"}, "S(0;unit=2)[1],S(0;interleave=3)[0]"},
    {"a b c -> (a b c)", "2x2", {"2x4x3 R,S(1)"}, "R,S(0;interleave=2)"},
    {"a b c -> (a b c)", "2x2", {"2x4x6 S(2),S(1)"}, "S(0;interleave=8),S(0;interleave=2)"},
    {"a b c, (a b) -> (a b c)", "2", {"2x3x2 S(1)", "6 S(0;interleave=2)"}, "S(0;interleave=2;unit=2)"},
    {"a b -> (a b)", "2", {"4x0 S(0)"}, "S(0)"},
    /* A compound that all tensors have as such is a factor. */
    {"(a b), (a b) -> (a b)", "4", {"6 S(0)", "6 S(0;sizes=2,2,2,0)"}, "S(0)", {"6"}},
    {"(a b) c -> c | a b sum | linear {0}", "2", {"6x4 S(0)"}, "P", {"4"}},
    {"(a b) c -> c | (a b) sum | linear {0}", "2", {"6x4 P"}, "P", {"4"}},
    /* An added operand */
    {"m k, (a b) k + (a b) -> m (a b) | k sum", "2", {"5x4 R", "6x4 S(0)", "6 S(0)"}, "S(1)", {"5x6"}},
    {"a k, b k + (a b) -> (a b) | k sum", "2", {"5x4 S(0)", "3x4 R", "15 S(0;unit=3)"}, "S(0;unit=3)"},
    /* Factors that results alone have, and results that lack "...". */
    {"... n -> ... k, ... k | n exchange | k whole", "2", {"4x6 S(1)"}, "R R", {"4x2", "4x2"}},
    {"... n -> ... k, ... k | n exchange | k whole", "2", {"4x6 S(0)"}, "S(0) S(0)", {"4x2", "4x2"}},
    {"... n -> n, n | ... sum", "2x2", {"4x6 S(0),S(1)"}, "P,S(0) P,S(0)"},
    {"... n -> n, ... | n ... sum", "2", {"4x6 S(0)"}, "P S(0)"},
    {NULL},
};

static const rule_case refused[] = {
    {ATTENTION,
     "2",
     {"8x5x4 S(0;interleave=4)", "4x6x4 S(0)", "4x6x3 S(0)"},
     "redistribute x from \"S(0;interleave=4)\" to \"S(0)\""},
    {"(h g), h -> (h g)",
     "2",
     {"6 S(0)", "3 R"},
     "mesh dim 0 cuts dim 0 of x, which is (h g), otherwise than along one of its factors; redistribute x from "
     "\"S(0)\" to \"S(0;interleave=3)\""},
    {"(h g), h -> (h g)",
     "2",
     {"6 R", "3 S(0)"},
     "mesh dim 0 must cut dim 0 of y and dim 0 of x alike; redistribute x from \"R\" to \"S(0;unit=2)\""},
    {"(h g), h -> (h g)",
     "2",
     {"6 S(0;unit=2)", "3 R"},
     "mesh dim 0 must cut dim 0 of x and dim 0 of y alike; redistribute y from \"R\" to \"S(0)\""},
    {SPLIT, "2", {"6 S(0)"}, "redistribute x from \"S(0)\" to \"S(0;unit=2)\"", {"3x2"}},
    {SPLIT, "4", {"4 S(0)"}, "redistribute x from \"S(0)\" to \"S(0;unit=2)\"", {"2x2"}},
    {FLATTEN,
     "2x2",
     {"3x3 S(0;sizes=1,2),S(1)"},
     "no placement says how mesh dim 1 would cut dim 0 of the result, which is (a b); redistribute x from "
     "\"S(0;sizes=1,2),S(1)\" to \"S(0;sizes=1,2),R\""},
    {"(h g), h -> (h g)",
     "2",
     {"7 R", "3 R"},
     "op: dim 0 of x has size 7, but \"(h g), h -> (h g)\" wants (h g) there, which is 3 x ? by the other dims"},
    {"(h g), h, g -> (h g)",
     "2",
     {"6 R", "3 R", "3 R"},
     "op: dim 0 of x has size 6, but \"(h g), h, g -> (h g)\" wants (h g) there, which is 3 x 3 by the other dims"},
    {"(h g), h -> (h g)", "2", {"4 R", "0 R"}, "which is 0 x ? by the other dims"},
    {SPLIT, "2", {"6 R"}, "op: the size of a in \"(a b) -> a b\" does not follow from the operands' shapes"},
    {SPLIT,
     "2",
     {"6 R"},
     "op: dim 0 of x has size 6, but \"(a b) -> a b\" wants (a b) there, which is 4 x 2 by the other dims",
     {"4x2"}},
    {"m k, (a b) k + (a b) -> m (a b) | k sum",
     "2",
     {"5x4 R", "6x4 S(0)", "6 R"},
     "z is added once, and must be cut as the result is; redistribute z from \"R\" to \"S(0)\"",
     {"5x6"}},
    {NULL},
};

static void layouts_follow_from_compounds(void **state)
{
    (void)state;
    rule_accepted(accepted);
}

static void refusals_name_what_works(void **state)
{
    (void)state;
    rule_refused(refused);
}

static void wrong_compounds_are_pointed_at(void **state)
{
    static const char *const wrong[][2] = {
        {"(a) -> a", "rule \"(a) -> a\", character 2: expected a second factor of the compound, found \")\""},
        {"(a b -> a", "rule \"(a b -> a\", character 5: expected a factor or \")\", found \"-\""},
        {"(a ...) -> a", "rule \"(a ...) -> a\", character 3: expected a factor, found \".\""},
        {"(a a) -> a", "rule \"(a a) -> a\", character 0: expected each factor and \"...\" once, found \"(\""},
        {"(a b) a -> a", "rule \"(a b) a -> a\", character 6: expected each factor and \"...\" once, found \"a\""},
        {"a (b a) -> a", "rule \"a (b a) -> a\", character 2: expected each factor and \"...\" once, found \"(\""},
        {"(a b) -> a b | (b a) sum",
         "rule \"(a b) -> a b | (b a) sum\", character 15: expected a compound of a term, found \"(\""},
        {"a -> (a b)", "rule \"a -> (a b)\", character 8: expected a factor of an operand, found \"b\""},
        {"(a b) -> a",
         "rule \"(a b) -> a\": a result lacks the factor b, so a mark must say what becomes of it, as in \"| b sum\""},
        {"... a -> a",
         "rule \"... a -> a\": a result lacks the factor ..., so a mark must say what becomes of it, as in \"| ... "
         "sum\""},
    };
    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        tsr_op_rule rule;
        assert_int_equal(tsr_op_rule_parse(wrong[i][0], &rule), TSR_ERROR_ARGUMENT);
        assert_string_equal(tsr_status_message(), wrong[i][1]);
    }
}

/* ==== the oracle ==== */

#define COORDINATES 9
#define MOST_CUTS   60000
#define FORM        56

/* What each coordinate owns of a dim, by bits. */
typedef struct owned {
    uint32_t of[COORDINATES];
} owned;

/* A way of cutting a dim on all mesh dims. */
typedef struct cutting {
    char text[2 * FORM + 8]; /* placements, of dim 0 */
    owned owned;
} cutting;

typedef struct cuttings {
    int count;
    cutting all[MOST_CUTS];
} cuttings;

static int coordinate_count(const tsr_mesh *mesh)
{
    return (int)tsr_mesh_count(mesh);
}

static owned find_owned(const tsr_layout *layout, int dim)
{
    owned o = {{0}};
    const tsr_mesh *const mesh = tsr_layout_mesh(layout);
    for (int rank = 0; rank < coordinate_count(mesh); rank++) {
        int64_t coordinate[TSR_MAX_DIMS];
        int inside;
        tsr_interval own[32];
        size_t count;
        assert_int_equal(tsr_mesh_coordinate_of(mesh, rank, coordinate, &inside), TSR_OK);
        assert_int_equal(tsr_layout_intervals(layout, coordinate, dim, own, 32, &count), TSR_OK);
        for (size_t i = 0; i < count; i++) {
            for (int64_t index = own[i].begin; index < own[i].end; index++)
                o.of[rank] |= UINT32_C(1) << index;
        }
    }
    return o;
}

/* Writes the forms of a cut of a dim of `size` over `parts`, each once. */
static int list_forms(int size, int64_t parts, bool rich, char forms[][FORM])
{
    int count = 0;
    static const char *const dealings[] = {"", ";balanced"};
    strcpy(forms[count++], "R");
    for (int b = 0; b < 2; b++) {
        snprintf(forms[count++], FORM, "S(0%s)", dealings[b]);
        for (int k = 2; k <= size; k++) {
            snprintf(forms[count++], FORM, "S(0%s;unit=%d)", dealings[b], k);
            snprintf(forms[count++], FORM, "S(0%s;interleave=%d)", dealings[b], k);
            if (rich)
                snprintf(forms[count++], FORM, "S(0%s;interleave=%d;unit=2)", dealings[b], k);
        }
    }
    for (int a = 0; a <= size && parts == 2; a++)
        snprintf(forms[count++], FORM, "S(0;sizes=%d,%d)", a, size - a);
    for (int a = 0; a <= size && parts == 3; a++) {
        for (int b = 0; a + b <= size; b++)
            snprintf(forms[count++], FORM, "S(0;sizes=%d,%d,%d)", a, b, size - a - b);
    }
    for (int a = 1; a < size && rich; a++)
        snprintf(forms[count++], FORM, "S(0;blocks=%d,%d)", a, size - a);
    return count;
}

static void add_cutting(const tsr_mesh *mesh, int64_t size, const char *text, cuttings *out)
{
    tsr_layout *layout;
    if (tsr_layout_parse(mesh, text, 1, &size, TSR_U8, &layout) != TSR_OK)
        return;
    assert_true(out->count < MOST_CUTS);
    cutting *const c = &out->all[out->count++];
    snprintf(c->text, sizeof c->text, "%.*s", (int)sizeof c->text - 1, text);
    c->owned = find_owned(layout, 0);
    tsr_layout_destroy(layout);
}

/* All ways of cutting a dim. */
static void list_cuttings(const tsr_mesh *mesh, int size, bool rich, cuttings *out)
{
    static char first[256][FORM], second[256][FORM];
    char text[2 * FORM + 8];
    const int count = list_forms(size, tsr_mesh_size(mesh, 0), rich, first);
    out->count = 0;
    if (tsr_mesh_ndim(mesh) == 1) {
        for (int i = 0; i < count; i++)
            add_cutting(mesh, size, first[i], out);
        return;
    }
    const int others = list_forms(size, tsr_mesh_size(mesh, 1), rich, second);
    for (int i = 0; i < count; i++) {
        for (int j = 0; j < others; j++) {
            snprintf(text, sizeof text, "%.*s,%.*s", FORM, first[i], FORM, second[j]);
            add_cutting(mesh, size, text, out);
            if (i == 0 || j == 0)
                continue;
            snprintf(text, sizeof text, "%.*s[1],%.*s[0]", FORM - 4, first[i], FORM - 4, second[j]);
            add_cutting(mesh, size, text, out);
        }
    }
}

/* The product of what a coordinate owns of two factors. */
static uint32_t multiply(uint32_t a, uint32_t b, int minor)
{
    uint32_t product = 0;
    for (int i = 0; i < 32 / minor; i++)
        product |= a >> i & 1 ? b << i * minor : 0;
    return product;
}

static owned multiply_all(const owned *a, const owned *b, int minor)
{
    owned product;
    for (int i = 0; i < COORDINATES; i++)
        product.of[i] = multiply(a->of[i], b->of[i], minor);
    return product;
}

/* The projections on both factors. */
static void project(uint32_t all, int major, int minor, uint32_t *a, uint32_t *b)
{
    for (int i = 0; i < major * minor; i++) {
        *a |= (all >> i & 1) << i / minor;
        *b |= (all >> i & 1) << i % minor;
    }
}

/* The factors' own, if the mesh dims in `cut`, by bits, cut the major, and the others the minor. */
static bool split_owned(const tsr_mesh *mesh, const owned *all, int major, int minor, unsigned cut, owned *a, owned *b)
{
    const int others = tsr_mesh_ndim(mesh) == 1 ? 1 : (int)tsr_mesh_size(mesh, 1);
    uint32_t of_a[COORDINATES] = {0}, of_b[COORDINATES] = {0};
    int place_a[COORDINATES], place_b[COORDINATES];
    for (int i = 0; i < coordinate_count(mesh); i++) {
        const int first = i / others, second = i % others;
        place_a[i] = (cut & 1 ? first * others : 0) + (cut & 2 ? second : 0);
        place_b[i] = (cut & 1 ? 0 : first * others) + (cut & 2 ? 0 : second);
        project(all->of[i], major, minor, &of_a[place_a[i]], &of_b[place_b[i]]);
    }
    memset(a, 0, sizeof *a);
    memset(b, 0, sizeof *b);
    for (int i = 0; i < coordinate_count(mesh); i++) {
        a->of[i] = of_a[place_a[i]];
        b->of[i] = of_b[place_b[i]];
    }
    const owned product = multiply_all(a, b, minor);
    return memcmp(&product, all, sizeof product) == 0;
}

static bool is_sayable(const cuttings *c, const owned *o)
{
    for (int i = 0; i < c->count; i++) {
        if (memcmp(&c->all[i].owned, o, sizeof *o) == 0)
            return true;
    }
    return false;
}

static cuttings of_compound, of_major, of_minor;

static const char *const meshes[] = {"2", "3", "2x2", "3x2"};

static tsr_status give_shape(const void *arg, int result, int64_t shape[TSR_MAX_DIMS])
{
    const int *const sizes = arg;
    for (int i = 0; shape[0] < 0 && i < 2; i++)
        shape[i] = sizes[i];
    return result ? TSR_ERROR_INTERNAL : TSR_OK;
}

static tsr_status infer(const char *text, const tsr_layout *const *operands, int major, int minor, tsr_op_inferred *out)
{
    const tsr_op_names names = {.caller = "op", .op = "op", .rule = text, .operands = {"x", "y"}};
    const tsr_dtype dtypes[TSR_OP_RESULTS] = {TSR_U8};
    const int sizes[] = {major, minor};
    const tsr_op_shaping shaping = {.dtypes = dtypes, .shape_of = give_shape, .arg = sizes};
    tsr_op_rule rule;
    assert_int_equal(tsr_op_rule_parse(text, &rule), TSR_OK);
    return tsr_op_propagate_rule(&rule, &names, &shaping, operands, out);
}

typedef struct counts {
    int accepted, refused;
} counts;

/* Splits a dim that is cut in some way. */
static void try_split(const tsr_mesh *mesh, const cutting *c, int major, int minor, counts *n)
{
    tsr_layout *x;
    tsr_op_inferred inferred;
    owned a, b;
    const int64_t size = (int64_t)major * minor;
    assert_int_equal(tsr_layout_parse(mesh, c->text, 1, &size, TSR_U8, &x), TSR_OK);
    if (infer(SPLIT, (const tsr_layout *const[]){x}, major, minor, &inferred) == TSR_OK) {
        a = find_owned(inferred.results[0], 0);
        b = find_owned(inferred.results[0], 1);
        const owned product = multiply_all(&a, &b, minor);
        if (memcmp(&product, &c->owned, sizeof product) != 0)
            fail_msg("%s of %dx%d is not what it was", c->text, major, minor);
        tsr_op_inferred_clear(&inferred);
        n->accepted++;
    } else {
        for (unsigned cut = 0; cut < 1u << tsr_mesh_ndim(mesh); cut++) {
            if (split_owned(mesh, &c->owned, major, minor, cut, &a, &b) && is_sayable(&of_major, &a) &&
                is_sayable(&of_minor, &b))
                fail_msg("%s of %dx%d can be split: %s", c->text, major, minor, tsr_status_message());
        }
        n->refused++;
    }
    tsr_layout_destroy(x);
}

/* Flattens two dims, of which mesh dims cut either. */
static void try_flatten(const tsr_mesh *mesh, const cutting *a, const cutting *b, int major, int minor, counts *n)
{
    tsr_layout *x, *y;
    tsr_op_inferred inferred;
    tsr_placement placements[2];
    const int64_t shape[] = {major, minor};
    assert_int_equal(tsr_layout_parse(mesh, a->text, 1, &shape[0], TSR_U8, &x), TSR_OK);
    assert_int_equal(tsr_layout_parse(mesh, b->text, 1, &shape[1], TSR_U8, &y), TSR_OK);
    bool apart = true;
    for (int k = 0; k < tsr_mesh_ndim(mesh); k++) {
        const tsr_placement *const p = &tsr_layout_placements(x)[k], *const q = &tsr_layout_placements(y)[k];
        apart = apart && (p->kind == TSR_REPLICATE || q->kind == TSR_REPLICATE);
        placements[k] = p->kind == TSR_SHARD ? *p : *q;
        placements[k].dim = p->kind != TSR_SHARD;
    }
    tsr_layout *both = NULL;
    if (apart)
        assert_int_equal(tsr_layout_create(mesh, placements, 2, shape, TSR_U8, &both), TSR_OK);
    const owned product = multiply_all(&a->owned, &b->owned, minor);
    if (apart && infer(FLATTEN, (const tsr_layout *const[]){both}, major, minor, &inferred) == TSR_OK) {
        const owned found = find_owned(inferred.results[0], 0);
        if (memcmp(&product, &found, sizeof product) != 0)
            fail_msg("%s and %s of %dx%d are not what they were", a->text, b->text, major, minor);
        tsr_op_inferred_clear(&inferred);
        n->accepted++;
    } else if (apart) {
        if (is_sayable(&of_compound, &product))
            fail_msg("%s and %s of %dx%d can be flattened: %s", a->text, b->text, major, minor, tsr_status_message());
        n->refused++;
    }
    tsr_layout_destroy(both);
    tsr_layout_destroy(y);
    tsr_layout_destroy(x);
}

/* A compound beside an operand that has the major factor. */
static void try_alike(const tsr_mesh *mesh, const cutting *c, const cutting *a, int major, int minor, counts *n)
{
    tsr_layout *x, *y;
    tsr_op_inferred inferred;
    owned own_a, own_b;
    unsigned cut = 0, dims = 0;
    const int64_t size = (int64_t)major * minor, part = major;
    assert_int_equal(tsr_layout_parse(mesh, c->text, 1, &size, TSR_U8, &x), TSR_OK);
    assert_int_equal(tsr_layout_parse(mesh, a->text, 1, &part, TSR_U8, &y), TSR_OK);
    for (int k = 0; k < tsr_mesh_ndim(mesh); k++) {
        cut |= tsr_layout_placements(y)[k].kind == TSR_SHARD ? 1u << k : 0;
        dims |= tsr_layout_placements(x)[k].kind == TSR_SHARD ? 1u << k : 0;
    }
    const bool splits = (cut & ~dims) == 0 && split_owned(mesh, &c->owned, major, minor, cut, &own_a, &own_b);
    const owned product = multiply_all(&a->owned, &own_b, minor);
    const bool alike = splits && memcmp(&product, &c->owned, sizeof product) == 0 && is_sayable(&of_minor, &own_b);
    if (infer("(a b), a -> (a b)", (const tsr_layout *const[]){x, y}, major, minor, &inferred) == TSR_OK) {
        const owned found = find_owned(inferred.results[0], 0);
        if (!alike || memcmp(&found, &c->owned, sizeof found) != 0)
            fail_msg("%s of %dx%d is not %s of its major", c->text, major, minor, a->text);
        tsr_op_inferred_clear(&inferred);
        n->accepted++;
    } else {
        if (alike && memcmp(&own_a, &a->owned, sizeof own_a) == 0)
            fail_msg("%s of %dx%d is %s of its major: %s", c->text, major, minor, a->text, tsr_status_message());
        n->refused++;
    }
    tsr_layout_destroy(y);
    tsr_layout_destroy(x);
}

/* Goes on by steps that meet all pairs in the end, of which `most` are tried. */
static int step_for(int64_t pairs, int most)
{
    const int64_t step = pairs / most;
    return (int)(step < 2 ? 1 : step | 1);
}

/* Tries ways of cutting: with TSR_EXHAUSTIVE set all, else of each kind some. */
static void try_sizes(const tsr_mesh *mesh, int major, int minor, counts n[3])
{
    const int most = getenv("TSR_EXHAUSTIVE") ? 1 << 30 : 150;
    list_cuttings(mesh, major * minor, true, &of_compound);
    list_cuttings(mesh, major, true, &of_major);
    list_cuttings(mesh, minor, true, &of_minor);
    const int64_t flat = (int64_t)of_major.count * of_minor.count, beside = (int64_t)of_major.count * of_compound.count;
    for (int i = 0; i < of_compound.count; i += step_for(of_compound.count, most))
        try_split(mesh, &of_compound.all[i], major, minor, &n[0]);
    for (int64_t i = 0; i < flat; i += step_for(flat, most))
        try_flatten(mesh, &of_major.all[i / of_minor.count], &of_minor.all[i % of_minor.count], major, minor, &n[1]);
    for (int64_t i = 0; i < beside; i += step_for(beside, most))
        try_alike(mesh, &of_compound.all[i % of_compound.count], &of_major.all[i / of_compound.count], major, minor,
                  &n[2]);
}

static void cuts_are_decided_on_what_is_owned(void **state)
{
    counts n[3] = {{0}};
    (void)state;
    for (size_t i = 0; i < sizeof meshes / sizeof meshes[0]; i++) {
        tsr_mesh *mesh;
        assert_int_equal(tsr_mesh_parse(NULL, NULL, meshes[i], &mesh), TSR_OK);
        for (int major = 1; major <= 4; major++) {
            for (int minor = 1; minor <= (tsr_mesh_ndim(mesh) == 1 ? 4 : 3) && major * minor <= 12; minor++)
                try_sizes(mesh, major, minor, n);
        }
        tsr_mesh_destroy(mesh);
    }
    print_message("split %d of %d, flattened %d of %d, alike %d of %d\n", n[0].accepted, n[0].accepted + n[0].refused,
                  n[1].accepted, n[1].accepted + n[1].refused, n[2].accepted, n[2].accepted + n[2].refused);
    for (int i = 0; i < 3; i++)
        assert_true(n[i].accepted > 100 && n[i].refused > 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(layouts_follow_from_compounds),
        cmocka_unit_test(refusals_name_what_works),
        cmocka_unit_test(wrong_compounds_are_pointed_at),
        cmocka_unit_test(cuts_are_decided_on_what_is_owned),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
