/* The order of an executable's steps: sums and accumulations behind the kernels that make their
 * terms, and moves that wait together spread among kernels. */
#include <tessera/tessera.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* A matrix of SIDE has as many bytes as moves that share an exchange have at most. */
enum { SIDE = 512, SMALL = 16, PARTS = 4, MATRIX_BYTES = SIDE * SIDE * 4 };

static tsr_value input(tsr_program *p, const tsr_mesh *mesh, const char *kind, int number, int64_t side,
                       const char *placements)
{
    char name[16];
    const int64_t shape[] = {side, side};
    snprintf(name, sizeof name, "%s%d", kind, number);
    return tsr_input(p, name, mesh, TSR_F32, 2, shape, placements);
}

/* A product of which each rank has a term. */
static tsr_value make_terms(tsr_program *p, const tsr_mesh *mesh, int number, int64_t side)
{
    return tsr_op_matmul(p, input(p, mesh, "a", number, side, "S(1)"), input(p, mesh, "b", number, side, "S(0)"));
}

static void give(tsr_program *p, int number, tsr_value value)
{
    char name[16];
    snprintf(name, sizeof name, "y%d", number);
    tsr_output(p, name, value, NULL);
}

/* Sums that are recorded behind all terms, as those of gradients. */
static void record_sums(tsr_program *p, const tsr_mesh *mesh)
{
    tsr_value terms[PARTS];
    for (int i = 0; i < PARTS; i++)
        terms[i] = make_terms(p, mesh, i, SIDE);
    for (int i = 0; i < PARTS; i++)
        give(p, i, tsr_op_redistribute(p, terms[i], "S(0)"));
}

/* The same, each sum in two moves that become one. */
static void record_chains(tsr_program *p, const tsr_mesh *mesh)
{
    tsr_value terms[PARTS];
    for (int i = 0; i < PARTS; i++)
        terms[i] = tsr_op_redistribute(p, make_terms(p, mesh, i, SIDE), "R");
    for (int i = 0; i < PARTS; i++)
        give(p, i, tsr_op_redistribute(p, terms[i], "S(0)"));
}

/* Weights that are gathered while earlier kernels run. */
static void record_gathers(tsr_program *p, const tsr_mesh *mesh)
{
    tsr_value w[PARTS], x = input(p, mesh, "x", 0, SIDE, "R");
    for (int i = 0; i < PARTS; i++)
        w[i] = tsr_op_redistribute(p, input(p, mesh, "w", i, SIDE, "S(0)"), "R");
    for (int i = 0; i < PARTS; i++)
        x = tsr_op_matmul(p, x, x);
    for (int i = 0; i < PARTS; i++)
        x = tsr_op_matmul(p, x, w[i]);
    give(p, 0, x);
}

/* A gather and a sum that wait together, of which a kernel reads the gather first. */
static void record_both(tsr_program *p, const tsr_mesh *mesh)
{
    const tsr_value w = tsr_op_redistribute(p, input(p, mesh, "w", 0, SMALL, "S(0)"), "R");
    const tsr_value sum = tsr_op_all_reduce(p, make_terms(p, mesh, 0, SMALL), 0);
    const tsr_value x = tsr_op_matmul(p, w, w);
    give(p, 0, tsr_op_matmul(p, x, sum));
}

/* A kernel reads both. */
static void record_shared(tsr_program *p, const tsr_mesh *mesh)
{
    const tsr_value w = tsr_op_redistribute(p, input(p, mesh, "w", 0, SMALL, "S(0)"), "R");
    const tsr_value sum = tsr_op_all_reduce(p, make_terms(p, mesh, 0, SMALL), 0);
    give(p, 0, tsr_op_matmul(p, w, sum));
}

static tsr_value keep(tsr_program *p, int number, tsr_value like)
{
    char name[16];
    snprintf(name, sizeof name, "s%d", number);
    return tsr_state(p, name, tsr_value_layout(p, like));
}

/* A sum does not go before the store of which it reads the result. */
static void record_store(tsr_program *p, const tsr_mesh *mesh)
{
    const tsr_value x = input(p, mesh, "x", 0, SMALL, "S(1)"), first = make_terms(p, mesh, 0, SMALL);
    const tsr_value state = keep(p, 0, x);
    tsr_op_store(p, state, x, TSR_NONE);
    const tsr_value second = tsr_op_matmul(p, state, input(p, mesh, "w", 0, SMALL, "S(0)"));
    give(p, 0, tsr_op_all_reduce(p, second, 0));
    give(p, 1, tsr_op_all_reduce(p, first, 0));
}

/* A move of a state is made before a store into it, and not before a store into another one. */
static void record_overwritten(tsr_program *p, const tsr_mesh *mesh)
{
    const tsr_value x = input(p, mesh, "x", 0, SMALL, "S(1)");
    const tsr_value state = keep(p, 0, x), other = keep(p, 1, x), old = tsr_op_redistribute(p, state, "R");
    tsr_op_store(p, other, x, TSR_NONE);
    const tsr_value y = tsr_op_matmul(p, input(p, mesh, "w", 0, SMALL, "R"), input(p, mesh, "w", 1, SMALL, "R"));
    tsr_op_store(p, state, x, TSR_NONE);
    give(p, 0, tsr_op_matmul(p, old, y));
}

/* Terms that are added to states behind all of them. */
static void record_accumulation(tsr_program *p, const tsr_mesh *mesh)
{
    tsr_value terms[PARTS];
    for (int i = 0; i < PARTS; i++)
        terms[i] = make_terms(p, mesh, i, SMALL);
    for (int i = 0; i < PARTS; i++) {
        const tsr_value state = keep(p, i, terms[i]);
        tsr_op_store(p, state, tsr_op_add(p, state, terms[i]), TSR_NONE);
    }
}

/* The same where something else reads the state as it was. */
static void record_read(tsr_program *p, const tsr_mesh *mesh)
{
    const tsr_value terms = make_terms(p, mesh, 0, SMALL), more = make_terms(p, mesh, 1, SMALL);
    const tsr_value state = keep(p, 0, terms);
    give(p, 0, tsr_op_add(p, more, state));
    tsr_op_store(p, state, tsr_op_add(p, state, terms), TSR_NONE);
}

/* What reads a sum, which is made behind its terms, does not go before a kernel behind these. */
static void record_late(tsr_program *p, const tsr_mesh *mesh)
{
    const tsr_value terms = make_terms(p, mesh, 0, SMALL), w = input(p, mesh, "w", 0, SMALL, "R");
    const tsr_value late = tsr_op_matmul(p, w, w), sum = tsr_op_all_reduce(p, terms, 0), state = keep(p, 0, sum);
    tsr_op_store(p, state, tsr_op_add(p, state, tsr_op_mul(p, sum, late)), TSR_NONE);
}

/* What reads a state before a store is not made behind it. */
static void record_changed(tsr_program *p, const tsr_mesh *mesh)
{
    const tsr_value x = input(p, mesh, "x", 0, SMALL, "R"), state = keep(p, 0, x), early = tsr_op_add(p, state, x);
    tsr_op_store(p, state, x, TSR_NONE);
    tsr_op_store(p, state, tsr_op_add(p, state, early), TSR_NONE);
}

/* Moves do not become one where a store into what the first one reads lies between. */
static void record_passed(tsr_program *p, const tsr_mesh *mesh)
{
    const tsr_value terms = make_terms(p, mesh, 0, SMALL), state = keep(p, 0, terms);
    const tsr_value whole = tsr_op_redistribute(p, state, "R");
    tsr_op_store(p, state, terms, TSR_NONE);
    give(p, 0, tsr_op_redistribute(p, whole, "S(0)"));
}

/* Terms of two kernels are added to one state behind both. */
static void record_twice(tsr_program *p, const tsr_mesh *mesh)
{
    const tsr_value first = make_terms(p, mesh, 0, SMALL), second = make_terms(p, mesh, 1, SMALL);
    const tsr_value state = keep(p, 0, first);
    tsr_op_store(p, state, tsr_op_add(p, state, first), TSR_NONE);
    tsr_op_store(p, state, tsr_op_add(p, state, second), TSR_NONE);
}

/* Sums of states and terms. */
static void record_totals(tsr_program *p, const tsr_mesh *mesh)
{
    tsr_value terms[PARTS];
    for (int i = 0; i < PARTS; i++)
        terms[i] = make_terms(p, mesh, i, SIDE);
    for (int i = 0; i < PARTS; i++)
        give(p, i, tsr_op_redistribute(p, tsr_op_add(p, keep(p, i, terms[i]), terms[i]), "S(0)"));
}

/* The steps of rank 0 of two: ops, "sum" and "gather"; + before a move that shares an exchange. */
static void tell(const tsr_executable *x, char *text, size_t room)
{
    size_t length = 0;
    for (size_t i = 0; i < tsr_executable_step_count(x); i++) {
        tsr_executable_step step;
        assert_int_equal(tsr_executable_step_at(x, i, &step), TSR_OK);
        const char *word = step.op;
        if (strcmp(word, "move") == 0)
            word = tsr_layout_placements(step.operand_layouts[0])[0].kind == TSR_PARTIAL ? "sum" : "gather";
        length += (size_t)snprintf(text + length, room - length, "%s%s%s", i ? " " : "", step.shares ? "+" : "", word);
    }
}

static tsr_executable *compile(void (*record)(tsr_program *, const tsr_mesh *))
{
    tsr_compile_options options = TSR_COMPILE_OPTIONS_INIT;
    tsr_context *context;
    tsr_mesh *mesh;
    tsr_program *p;
    tsr_executable *x = NULL;
    options.rank = 0;
    assert_int_equal(tsr_context_create(NULL, &context), TSR_OK);
    assert_int_equal(tsr_mesh_parse(NULL, context, "2", &mesh), TSR_OK);
    assert_int_equal(tsr_program_create(context, &p), TSR_OK);
    record(p, mesh);
    if (tsr_compile(p, &options, &x) != TSR_OK)
        fail_msg("%s", tsr_status_message());
    tsr_program_destroy(p);
    tsr_mesh_destroy(mesh);
    tsr_context_destroy(context);
    return x;
}

static void moves_have_their_places(void **state)
{
    static const struct {
        void (*record)(tsr_program *, const tsr_mesh *);
        const char *steps;
    } programs[] = {
        {record_sums, "matmul matmul matmul sum matmul sum sum sum"},
        {record_chains, "matmul matmul matmul sum matmul sum sum sum"},
        {record_gathers, "matmul gather matmul gather matmul gather matmul matmul matmul matmul gather matmul"},
        {record_both, "matmul gather matmul sum matmul"},
        {record_shared, "matmul gather +sum matmul"},
        {record_store, "matmul store matmul sum +sum"},
        {record_overwritten, "store matmul gather store matmul"},
        {record_accumulation, "matmul add store matmul add store matmul add store matmul add store"},
        {record_read, "matmul matmul add add store"},
        {record_passed, "matmul sum store gather"},
        {record_changed, "add store add store"},
        {record_twice, "matmul add store matmul add store"},
        {record_late, "matmul matmul sum mul add store"},
        {record_totals, "matmul add matmul add matmul sum add matmul sum add sum sum"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof programs / sizeof programs[0]; i++) {
        char text[256];
        tsr_executable *const x = compile(programs[i].record);
        tell(x, text, sizeof text);
        assert_string_equal(text, programs[i].steps);
        tsr_executable_destroy(x);
    }
}

/* Terms need memory until they are added up: of four, three are there at one time. */
static void terms_are_dropped_when_they_are_summed(void **state)
{
    (void)state;
    tsr_executable *const x = compile(record_sums);
    assert_in_range(tsr_executable_workspace_bytes(x), 3 * MATRIX_BYTES, 4 * MATRIX_BYTES - 1);
    tsr_executable_destroy(x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(moves_have_their_places),
        cmocka_unit_test(terms_are_dropped_when_they_are_summed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
