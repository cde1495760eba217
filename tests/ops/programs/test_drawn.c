/* Programs that are drawn: what their steps, moves and stores make is what the same work on whole
 * tensors makes in the order of recording. All values are integers, so that sums are exact. */
#include "ways.h"
#include "wholes.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { SIDE = 6, CELLS = SIDE * SIDE, STEPS = 24, INPUTS = 2 * STEPS, OUTPUTS = 2, MOST = 2 * STEPS, TRIALS = 80 };

/* How values lie; there is a state of each kind. */
typedef enum kind { WHOLE, CUT, TERMS, KINDS } kind;

static const char *const placements[KINDS] = {"R", "S(0)", "P"};
static const int64_t shape[] = {SIDE, SIDE};

typedef struct drawn {
    tsr_value value;
    kind kind;
    double all[CELLS];
} drawn;

typedef struct drawing {
    uint64_t seed;
    const tsr_mesh *mesh;
    tsr_program *p;
    drawn values[MOST]; /* the first are states, as they are now */
    int count;
    double inputs[INPUTS][CELLS], outputs[OUTPUTS][CELLS];
    const char *input_placements[INPUTS];
    int input_count;
} drawing;

static int draw(drawing *d, int below)
{
    d->seed = d->seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (int)((d->seed >> 33) % (uint64_t)below);
}

/* A value of a kind. */
static drawn *pick(drawing *d, kind wanted)
{
    int at = draw(d, d->count);
    while (d->values[at].kind != wanted)
        at = (at + 1) % d->count;
    return &d->values[at];
}

static drawn *add(drawing *d, tsr_value value, kind of)
{
    drawn *const made = &d->values[d->count++];
    made->value = value;
    made->kind = of;
    return made;
}

static tsr_value input(drawing *d, const char *placed, const double **all)
{
    char name[16];
    const int at = d->input_count++;
    for (int i = 0; i < CELLS; i++)
        d->inputs[at][i] = draw(d, 5) - 2;
    d->input_placements[at] = placed;
    *all = d->inputs[at];
    snprintf(name, sizeof name, "x%d", at);
    return tsr_input(d->p, name, d->mesh, TSR_F64, 2, shape, placed);
}

static void multiply(drawing *d)
{
    const double *a, *b;
    const tsr_value x = input(d, "S(1)", &a), y = input(d, "S(0)", &b);
    drawn *const made = add(d, tsr_op_matmul(d->p, x, y), TERMS);
    for (int i = 0; i < CELLS; i++) {
        made->all[i] = 0;
        for (int k = 0; k < SIDE; k++)
            made->all[i] += a[i / SIDE * SIDE + k] * b[k * SIDE + i % SIDE];
    }
}

static void combine(drawing *d, kind of)
{
    const drawn *const a = pick(d, of), *const b = pick(d, of);
    const int op = of == TERMS ? 0 : draw(d, 3);
    tsr_value (*const ops[])(tsr_program *, tsr_value, tsr_value) = {tsr_op_add, tsr_op_sub, tsr_op_maximum};
    drawn *const made = add(d, ops[op](d->p, a->value, b->value), of);
    for (int i = 0; i < CELLS; i++) {
        const double x = a->all[i], y = b->all[i];
        made->all[i] = op == 0 ? x + y : op == 1 ? x - y : x > y ? x : y;
    }
}

static void move(drawing *d, kind from, kind to)
{
    const drawn *const a = pick(d, from);
    drawn *const made = add(d, tsr_op_redistribute(d->p, a->value, placements[to]), to);
    memcpy(made->all, a->all, sizeof made->all);
}

static void transpose(drawing *d)
{
    const drawn *const a = pick(d, WHOLE);
    drawn *const made = add(d, tsr_op_transpose(d->p, a->value, 0, 1), WHOLE);
    for (int i = 0; i < CELLS; i++)
        made->all[i] = a->all[i % SIDE * SIDE + i / SIDE];
}

static void store(drawing *d, kind of)
{
    drawn *const state = &d->values[of];
    const drawn *const a = pick(d, of);
    const bool adds = draw(d, 2);
    tsr_op_store(d->p, state->value, adds ? tsr_op_add(d->p, state->value, a->value) : a->value, TSR_NONE);
    for (int i = 0; i < CELLS; i++)
        state->all[i] = adds ? state->all[i] + a->all[i] : a->all[i];
}

static void take_step(drawing *d)
{
    const kind of = (kind)draw(d, KINDS);
    switch (draw(d, 7)) {
    case 0:
        combine(d, of);
        return;
    case 1:
    case 2:
        multiply(d);
        return;
    case 3:
        move(d, of, of == WHOLE ? CUT : WHOLE);
        return;
    case 4:
        transpose(d);
        return;
    default:
        store(d, of);
    }
}

static tsr_status record(drawing *d)
{
    char name[16];
    for (int i = 0; i < KINDS; i++) {
        tsr_layout *layout;
        TSR_TRY(tsr_layout_parse(d->mesh, placements[i], 2, shape, TSR_F64, &layout));
        snprintf(name, sizeof name, "s%d", i);
        memset(add(d, tsr_state(d->p, name, layout), (kind)i)->all, 0, sizeof d->values[i].all);
        tsr_layout_destroy(layout);
    }
    for (int i = 0; i < STEPS; i++)
        take_step(d);
    for (int i = 0; i < OUTPUTS; i++) {
        const drawn *const a = pick(d, (kind)draw(d, KINDS));
        snprintf(name, sizeof name, "y%d", i);
        tsr_output(d->p, name, tsr_op_redistribute(d->p, a->value, "R"), NULL);
        memcpy(d->outputs[i], a->all, sizeof a->all);
    }
    return tsr_program_status(d->p, NULL);
}

static tsr_status expect_all(const char *what, const double *got, const double *wanted)
{
    for (int i = 0; i < CELLS; i++)
        TSR_TRY(support_expect_held(got[i] == wanted[i], what, i, got[i], wanted[i]));
    return TSR_OK;
}

static tsr_status run(drawing *d, tsr_comm *comm, tsr_executable *x, tsr_dtensor *const *states)
{
    tsr_dtensor *given[INPUTS];
    tsr_tensor in[INPUTS], out[OUTPUTS];
    double made[OUTPUTS][CELLS], kept[CELLS];
    void *workspace;
    const size_t bytes = tsr_executable_workspace_bytes(x);
    for (int i = 0; i < d->input_count; i++) {
        TSR_TRY(support_distribute(d->mesh, d->input_placements[i], TSR_F64, 2, shape, d->inputs[i], &given[i]));
        in[i] = tsr_dtensor_to_local(given[i]);
    }
    for (int i = 0; i < OUTPUTS; i++)
        out[i] = tsr_tensor_contiguous(made[i], TSR_F64, 2, shape);
    TSR_TRY(tsr_comm_alloc(comm, bytes, &workspace));
    if (bytes)
        memset(workspace, 0xff, bytes);
    TSR_TRY(tsr_executable_run(x, comm, in, out, workspace, bytes, NULL));
    tsr_comm_free(comm, workspace, bytes);
    for (int i = 0; i < OUTPUTS; i++)
        TSR_TRY(expect_all("output", made[i], d->outputs[i]));
    for (int i = 0; i < KINDS; i++) {
        TSR_TRY(support_read(states[i], kept));
        TSR_TRY(expect_all(placements[i], kept, d->values[i].all));
    }
    for (int i = 0; i < d->input_count; i++)
        tsr_dtensor_destroy(given[i]);
    return TSR_OK;
}

static tsr_status run_with_states(drawing *d, tsr_comm *comm, tsr_executable *x)
{
    tsr_dtensor *states[KINDS];
    char name[16];
    for (int i = 0; i < KINDS; i++) {
        tsr_layout *layout;
        TSR_TRY(tsr_layout_parse(d->mesh, placements[i], 2, shape, TSR_F64, &layout));
        TSR_TRY(tsr_dtensor_create(layout, tsr_device_host(), &states[i]));
        TSR_TRY(tsr_dtensor_fill(states[i], 0, NULL));
        snprintf(name, sizeof name, "s%d", i);
        TSR_TRY(tsr_executable_bind(x, name, states[i]));
        tsr_layout_destroy(layout);
    }
    TSR_TRY(tsr_executable_prepare(x, comm));
    const tsr_status status = run(d, comm, x, states);
    for (int i = 0; i < KINDS; i++)
        tsr_dtensor_destroy(states[i]);
    return status;
}

static tsr_status try_program(tsr_comm *comm, const tsr_mesh *mesh, uint64_t seed)
{
    drawing d = {.seed = seed, .mesh = mesh};
    tsr_executable *x;
    TSR_TRY(tsr_program_create(tsr_mesh_context(mesh), &d.p));
    TSR_TRY(record(&d));
    TSR_TRY(tsr_compile(d.p, NULL, &x));
    const tsr_status status = run_with_states(&d, comm, x);
    tsr_executable_destroy(x);
    tsr_program_destroy(d.p);
    return status;
}

static tsr_status try_programs(tsr_comm *comm, void *arg)
{
    tsr_mesh *mesh;
    char text[8];
    (void)arg;
    snprintf(text, sizeof text, "%d", tsr_comm_size(comm));
    TSR_TRY(tsr_mesh_parse(comm, NULL, text, &mesh));
    for (int i = 0; i < TRIALS; i++) {
        char why[512];
        if (try_program(comm, mesh, (uint64_t)i) == TSR_OK)
            continue;
        snprintf(why, sizeof why, "%s", tsr_status_message());
        return tsr_status_set(TSR_ERROR_INTERNAL, "program %d on %s ranks: %s", i, text, why);
    }
    tsr_mesh_destroy(mesh);
    return TSR_OK;
}

static void programs_make_what_was_recorded(void **state)
{
    (void)state;
    for (int how = 0; how < WAYS; how++)
        for (int ranks = 2; ranks <= 3; ranks++)
            if (way_run((way)how, ranks, try_programs, NULL, NULL) != TSR_OK)
                fail_msg("%s: %s", way_names[how], tsr_status_message());
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(programs_make_what_was_recorded)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
