/* The hot paths whose instructions are counted: `guarded CASE` runs one of them RUNS times within
 * guarded_path(), after a warm-up. */
#include <tessera/sys/status.h>
#include <tessera/tessera.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Runs that are counted; guards.py reads this line and divides by it. */
#define RUNS 200

/* The exit status of a case that this build lacks, by which guards.py skips it. */
#define NOT_BUILT 77

/* The number of shapes, 8 times 2 elements along any two dims, each with a plan. */
#define PLANS (TSR_MAX_DIMS * TSR_MAX_DIMS)

typedef tsr_status path(void *arg, int run);

/* The function whose instructions are counted, by its name. */
__attribute__((noinline)) tsr_status guarded_path(path *body, void *arg, int runs);
tsr_status guarded_path(path *body, void *arg, int runs)
{
    tsr_status status = TSR_OK;
    for (int run = 0; run < runs && status == TSR_OK; run++)
        status = body(arg, run);
    return status;
}

/* Runs uncounted warm-ups, which plan, fill caches and bind symbols, then the counted runs. */
static tsr_status warm_then_count(path *body, void *arg, int warm_ups)
{
    for (int run = 0; run < warm_ups; run++)
        TSR_TRY(body(arg, run));
    return guarded_path(body, arg, RUNS);
}

/* Moves of 64 bytes, each of another shape, so that each has a plan of its own. */
typedef struct moves {
    path *call; /* the counted call */
    int ranks, count;
    tsr_dtensor *x[PLANS], *y[PLANS];
} moves;

static tsr_status make_move(const tsr_mesh *mesh, int index, moves *m)
{
    const int ndim = m->count > 1 ? TSR_MAX_DIMS : 1;
    int64_t shape[TSR_MAX_DIMS] = {1, 1, 1, 1, 1, 1, 1, 1};
    tsr_layout *from = NULL, *to = NULL;
    shape[index % TSR_MAX_DIMS] *= 8;
    shape[index / TSR_MAX_DIMS] *= 2;
    tsr_status status = tsr_layout_parse(mesh, "S(0)", ndim, shape, TSR_F32, &from);
    if (status == TSR_OK)
        status = tsr_layout_parse(mesh, "R", ndim, shape, TSR_F32, &to);
    if (status == TSR_OK)
        status = tsr_dtensor_create(from, tsr_device_host(), &m->x[index]);
    if (status == TSR_OK)
        status = tsr_dtensor_create(to, tsr_device_host(), &m->y[index]);
    size_t bytes = 0;
    if (status == TSR_OK)
        status = tsr_layout_local_bytes(from, NULL, &bytes);
    if (status == TSR_OK)
        memset(tsr_dtensor_to_local(m->x[index]).data, 0, bytes);
    tsr_layout_destroy(from);
    tsr_layout_destroy(to);
    return status;
}

static tsr_status redistribute(void *arg, int run)
{
    const moves *const m = arg;
    return tsr_redistribute_into(m->x[run % m->count], m->y[run % m->count], NULL);
}

/* Redistributes to a new result each time. */
static tsr_status redistribute_anew(void *arg, int run)
{
    const moves *const m = arg;
    const tsr_dtensor *const x = m->x[run % m->count], *const like = m->y[run % m->count];
    tsr_dtensor *y;
    TSR_TRY(tsr_redistribute(x, tsr_layout_placements(tsr_dtensor_layout(like)), &y));
    tsr_dtensor_destroy(y);
    return TSR_OK;
}

static tsr_status run_moves(tsr_comm *comm, void *arg)
{
    moves m = *(const moves *)arg;
    const int64_t ranks[1] = {m.ranks};
    tsr_mesh *mesh = NULL;
    tsr_status status = tsr_mesh_create(comm, 1, ranks, NULL, NULL, &mesh);
    for (int i = 0; i < m.count && status == TSR_OK; i++)
        status = make_move(mesh, i, &m);
    if (status == TSR_OK)
        status = warm_then_count(m.call, &m, m.count);
    for (int i = 0; i < m.count; i++) {
        tsr_dtensor_destroy(m.x[i]);
        tsr_dtensor_destroy(m.y[i]);
    }
    tsr_mesh_destroy(mesh);
    return status;
}

static tsr_status count_moves(path *call, int ranks, int plans)
{
    moves m = {.call = call, .ranks = ranks, .count = plans};
    return tsr_threads_run(ranks, run_moves, &m, NULL);
}

static tsr_status redistribute_64_bytes(void)
{
    return count_moves(redistribute, 1, 1);
}

/* Counts all instructions of both ranks; a waiting rank sleeps. */
static tsr_status redistribute_64_bytes_on_2_ranks(void)
{
    return count_moves(redistribute, 2, 1);
}

static tsr_status redistribute_among_64_plans(void)
{
    return count_moves(redistribute, 1, PLANS);
}

static tsr_status new_result_of_64_bytes(void)
{
    return count_moves(redistribute_anew, 1, 1);
}

/* Counts new results of moves that differ in shape, and so in layouts. */
static tsr_status new_results_among_64_plans(void)
{
    return count_moves(redistribute_anew, 1, PLANS);
}

#ifdef TSR_WITH_OPS
/* An op of two operands, into a result that there is. */
typedef struct sum {
    tsr_dtensor *x, *y, *out;
} sum;

static tsr_status add(void *arg, int run)
{
    (void)run;
    const sum *const s = arg;
    return tsr_add_into(s->x, s->y, s->out);
}

static tsr_status run_add(tsr_comm *comm, void *arg)
{
    (void)arg;
    const int64_t ranks[1] = {1}, shape[1] = {16};
    sum s = {NULL, NULL, NULL};
    tsr_dtensor **const tensors[] = {&s.x, &s.y, &s.out};
    tsr_mesh *mesh = NULL;
    tsr_layout *layout = NULL;
    tsr_status status = tsr_mesh_create(comm, 1, ranks, NULL, NULL, &mesh);
    if (status == TSR_OK)
        status = tsr_layout_parse(mesh, "S(0)", 1, shape, TSR_F32, &layout);
    for (int i = 0; i < 3 && status == TSR_OK; i++) {
        status = tsr_dtensor_create(layout, tsr_device_host(), tensors[i]);
        if (status == TSR_OK)
            memset(tsr_dtensor_to_local(*tensors[i]).data, 0, (size_t)shape[0] * sizeof(float));
    }
    if (status == TSR_OK)
        status = warm_then_count(add, &s, 2);
    for (int i = 0; i < 3; i++)
        tsr_dtensor_destroy(*tensors[i]);
    tsr_layout_destroy(layout);
    tsr_mesh_destroy(mesh);
    return status;
}

static tsr_status add_64_bytes(void)
{
    return tsr_threads_run(1, run_add, NULL, NULL);
}

/* Layers of the program that is compiled. */
#define LAYERS 2

/* A layer's weight, of `rows` rows, cut along the last mesh dim. */
static tsr_value weight(tsr_program *p, const tsr_mesh *mesh, int layer, const char *part, const char *placements,
                        int64_t rows, int64_t columns)
{
    char name[32];
    const int64_t shape[] = {rows, columns};
    tsr_layout *layout = NULL;
    snprintf(name, sizeof name, "%d.%s", layer, part);
    if (tsr_layout_parse(mesh, placements, rows > 1 ? 2 : 1, rows > 1 ? shape : shape + 1, TSR_F32, &layout) != TSR_OK)
        layout = NULL;
    const tsr_value value = tsr_parameter(p, name, layout);
    tsr_layout_destroy(layout);
    return value;
}

/* MLPs with gates and norms, of any number of tokens up to 64. */
static void record_layers(tsr_program *p, const tsr_mesh *mesh)
{
    const int64_t shape[] = {tsr_length(p, "tokens", 64), 64};
    tsr_value x = tsr_input(p, "x", mesh, TSR_F32, 2, shape, NULL);
    for (int i = 0; i < LAYERS; i++) {
        const tsr_value y = tsr_op_rms_norm(p, x, weight(p, mesh, i, "norm", "R,R", 1, 64), 1e-5);
        const tsr_value gate = tsr_op_linear(p, y, weight(p, mesh, i, "gate", "R,S(0)", 256, 64), TSR_NONE);
        const tsr_value up = tsr_op_linear(p, y, weight(p, mesh, i, "up", "R,S(0)", 256, 64), TSR_NONE);
        const tsr_value down = weight(p, mesh, i, "down", "R,S(1)", 64, 256);
        const tsr_value terms = tsr_op_linear(p, tsr_op_silu_mul(p, gate, up), down, TSR_NONE);
        x = tsr_op_add(p, x, tsr_op_redistribute(p, terms, "R,R"));
    }
    tsr_output(p, "y", x, NULL);
}

static tsr_status compile(void *arg, int run)
{
    (void)run;
    const tsr_mesh *const mesh = arg;
    tsr_compile_options options = TSR_COMPILE_OPTIONS_INIT;
    tsr_program *p;
    tsr_executable *x;
    options.rank = 12345;
    TSR_TRY(tsr_program_create(tsr_mesh_context(mesh), &p));
    record_layers(p, mesh);
    const tsr_status status = tsr_compile(p, &options, &x);
    if (status == TSR_OK)
        tsr_executable_destroy(x);
    tsr_program_destroy(p);
    return status;
}

static tsr_status compile_for_a_million_ranks(void)
{
    tsr_mesh *mesh;
    TSR_TRY(tsr_mesh_parse(NULL, NULL, "131072x8", &mesh));
    const tsr_status status = warm_then_count(compile, mesh, 1);
    tsr_mesh_destroy(mesh);
    return status;
}
#else
#define add_64_bytes                NULL
#define compile_for_a_million_ranks NULL
#endif

typedef struct pair {
    tsr_layout *from, *to;
    tsr_plan_options options;
} pair;

static tsr_status plan(void *arg, int run)
{
    (void)run;
    const pair *const p = arg;
    tsr_plan *made;
    TSR_TRY(tsr_plan_create(p->from, p->to, &p->options, &made));
    tsr_plan_destroy(made);
    return TSR_OK;
}

static tsr_status plan_on(const char *mesh_text, const char *from, const char *to, int ndim, int64_t size, int64_t rank)
{
    int64_t shape[TSR_MAX_DIMS];
    pair p = {.options = TSR_PLAN_OPTIONS_INIT};
    tsr_mesh *mesh = NULL;
    for (int d = 0; d < ndim; d++)
        shape[d] = size;
    p.options.rank = rank;
    tsr_status status = tsr_mesh_parse(NULL, NULL, mesh_text, &mesh);
    if (status == TSR_OK)
        status = tsr_layout_parse(mesh, from, ndim, shape, TSR_F32, &p.from);
    if (status == TSR_OK)
        status = tsr_layout_parse(mesh, to, ndim, shape, TSR_F32, &p.to);
    if (status == TSR_OK)
        status = warm_then_count(plan, &p, 1);
    tsr_layout_destroy(p.from);
    tsr_layout_destroy(p.to);
    tsr_mesh_destroy(mesh);
    return status;
}

static tsr_status plan_on_16_ranks(void)
{
    return plan_on("4x4", "S(0),S(1)", "S(1),S(0)", 2, 4096, 7);
}

static tsr_status plan_on_a_million_ranks(void)
{
    return plan_on("128x64x128", "S(0),S(1),S(2)", "S(1),S(2),S(0)", 4, 1024, 524288);
}

static tsr_status parse(void *arg, int run)
{
    (void)run;
    const char *const text = arg;
    tsr_placement placements[TSR_MAX_DIMS];
    int64_t numbers[16];
    int count;
    return tsr_placements_parse(text, placements, TSR_MAX_DIMS, &count, numbers, 16, NULL);
}

static tsr_status parse_placements(void)
{
    static char text[] = "R,P(max),S(1;blocks=64,16,16;unit=8)[1],S(1;balanced)[0]";
    return warm_then_count(parse, text, 1);
}

/* Three tensors go to DLPack and back, as the operands and the result of an op. */
typedef struct lending {
    tsr_context *context;
    tsr_tensor tensors[3];
} lending;

static tsr_status lend(void *arg, int run)
{
    const lending *const l = arg;
    (void)run;
    for (int i = 0; i < 3; i++) {
        struct DLManagedTensorVersioned *managed;
        tsr_dlpack_view view;
        TSR_TRY(tsr_tensor_to_dlpack_versioned(l->context, &l->tensors[i], 0, NULL, NULL, &managed));
        const tsr_status status = tsr_tensor_from_dlpack_versioned(managed, NULL, &view);
        tsr_dlpack_release_versioned(managed);
        TSR_TRY(status);
    }
    return TSR_OK;
}

static tsr_status lend_three_tensors(void)
{
    static float numbers[64];
    const int64_t shape[] = {8, 8};
    lending l;
    TSR_TRY(tsr_context_create(NULL, &l.context));
    for (int i = 0; i < 3; i++)
        l.tensors[i] = tsr_tensor_contiguous(numbers, TSR_F32, 2, shape);
    const tsr_status status = warm_then_count(lend, &l, 1);
    tsr_context_destroy(l.context);
    return status;
}

static const struct {
    const char *name;
    tsr_status (*run)(void);
} cases[] = {
    {"redistribute-64-bytes", redistribute_64_bytes},
    {"redistribute-64-bytes-on-2-ranks", redistribute_64_bytes_on_2_ranks},
    {"redistribute-among-64-plans", redistribute_among_64_plans},
    {"new-result-of-64-bytes", new_result_of_64_bytes},
    {"new-results-among-64-plans", new_results_among_64_plans},
    {"add-64-bytes", add_64_bytes},
    {"plan-on-16-ranks", plan_on_16_ranks},
    {"plan-on-a-million-ranks", plan_on_a_million_ranks},
    {"compile-for-a-million-ranks", compile_for_a_million_ranks},
    {"parse-placements", parse_placements},
    {"lend-three-tensors", lend_three_tensors},
};

int main(int argc, char **argv)
{
    for (size_t i = 0; argc == 2 && i < sizeof cases / sizeof *cases; i++) {
        if (strcmp(cases[i].name, argv[1]) != 0)
            continue;
        if (!cases[i].run)
            return NOT_BUILT;
        if (cases[i].run() == TSR_OK)
            return 0;
        fprintf(stderr, "%s: %s\n", argv[1], tsr_status_message());
        return 1;
    }
    fprintf(stderr, "usage: guarded CASE\n");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        fprintf(stderr, "  %s\n", cases[i].name);
    return 2;
}
