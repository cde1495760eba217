/* Every row, recorded in a program, gives the bits of its call on dtensors, and so do gradients: by
 * the lists of lines of the proof (tests/ops/proof), from which operands, attributes and placements
 * are drawn. Arguments: a list's name, and how many times as many draws as usual. */
#include "../proof/place.h"
#include "elements.h"

#include <tessera/sys/status.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* Draws for each line, mesh and policy. */
#define DRAWS 6

static const char *const meshes[] = {"1", "2", "3", "2x2"};
static const tsr_policy policies[] = {TSR_POLICY_FORBID, TSR_POLICY_ALLOW};

static const struct {
    const char *name;
    const proof_case *lines;
} lists[] = {
#define LIST(name) {#name, proof_##name},
    PROOF_LISTS(LIST)
#undef LIST
};

static const proof_case *chosen;
static int times = 1;
static atomic_int ran, refused, differentiated;

/* A drawn call: on dtensors, and as a program. */
typedef struct call {
    proof *p;
    tsr_comm *comm;
    tsr_policy policy;
    const tsr_layout *layouts[OPERANDS];
    tsr_dtensor *operands[OPERANDS], *memory[OPERANDS];
    tsr_dtensor *results[TSR_OP_MOST_RESULTS];
    tsr_dtensor *dout, *dout_memory, *gradients[OPERANDS];
    bool is_backward;
} call;

static void clear(call *c)
{
    for (int i = 0; i < OPERANDS; i++) {
        tsr_dtensor_destroy(c->gradients[i]);
        tsr_dtensor_destroy(c->operands[i]);
        tsr_dtensor_destroy(c->memory[i]);
    }
    for (int i = 0; i < TSR_OP_MOST_RESULTS; i++)
        tsr_dtensor_destroy(c->results[i]);
    tsr_dtensor_destroy(c->dout);
    tsr_dtensor_destroy(c->dout_memory);
}

static bool is_wanted(const proof *p, int operand)
{
    return !proof_is_integer(p, operand) && !(p->line->constants >> operand & 1);
}

/* Puts "op on mesh 2 with x:S(0) ..: " before the last sentence. */
static tsr_status explain(const call *c, const char *what)
{
    char placements[512], mesh[64], kept[1024];
    snprintf(kept, sizeof kept, "%s", tsr_status_message());
    print_placements(c->p, placements, sizeof placements);
    tsr_mesh_print(c->p->mesh, mesh, sizeof mesh);
    return tsr_status_set(TSR_ERROR_INTERNAL, "%s on mesh %s%s with%s: %s: %s", c->p->info.name, mesh,
                          c->policy == TSR_POLICY_ALLOW ? ", moves allowed," : "", placements, what, kept);
}

/* Makes placements those of their text, by which inputs get them: it has no order of cuts where one
 * mesh dim cuts alone. */
static tsr_status normalize(proof *p)
{
    for (int i = 0; i < p->operand_count; i++) {
        char text[512];
        int count;
        tsr_placements_print(p->placements[i], tsr_mesh_ndim(p->mesh), text, sizeof text);
        TSR_TRY(tsr_placements_parse(text, p->placements[i], TSR_MAX_DIMS, &count, p->numbers[i], 64, NULL));
    }
    return TSR_OK;
}

/* True if all operands can be placed as drawn. */
static bool can_be_placed(const proof *p)
{
    for (int i = 0; i < p->operand_count; i++) {
        tsr_layout *layout;
        const whole *const w = &p->operands[i];
        if (w->dtype == TSR_DTYPE_NONE)
            continue;
        if (tsr_layout_create(p->mesh, p->placements[i], w->ndim, w->shape, w->dtype, &layout) != TSR_OK)
            return false;
        tsr_layout_destroy(layout);
    }
    return true;
}

static tsr_status place_operands(call *c)
{
    for (int i = 0; i < c->p->operand_count; i++) {
        if (c->p->operands[i].dtype == TSR_DTYPE_NONE)
            continue;
        TSR_TRY(place_whole(c->p, c->p->mesh, c->p->placements[i], &c->p->operands[i], c->p->seed + (uint64_t)(100 * i),
                            &c->memory[i], &c->operands[i]));
        c->layouts[i] = tsr_dtensor_layout(c->operands[i]);
    }
    return TSR_OK;
}

/* True if the policy lets the op take its operands. */
static bool is_taken(const call *c)
{
    tsr_layout *fitted[OPERANDS] = {NULL};
    const tsr_status status =
        tsr_op_settle(c->p->op, (size_t)c->p->attribute_count, c->p->attributes, c->layouts, c->policy, 0, fitted);
    for (int i = 0; i < OPERANDS; i++)
        tsr_layout_destroy(fitted[i]);
    return status == TSR_OK;
}

/* The mesh dims, by bits, on which the gradient of the call is Partial and the operand is of
 * `kind`. */
static unsigned find_terms(const call *c, int operand, tsr_placement_kind kind)
{
    unsigned found = 0;
    const tsr_placement *const of = tsr_layout_placements(tsr_dtensor_layout(c->gradients[operand])),
                               *const own = c->p->placements[operand];
    for (int k = 0; k < tsr_mesh_ndim(c->p->mesh); k++)
        found |= of[k].kind == TSR_PARTIAL && own[k].kind == kind ? 1u << k : 0;
    return found;
}

/* True if a program can say under the policy forbid what the call's backward does. It cannot where
 * a Partial operand has terms of its gradient, which is Replicate in programs; and "vary" takes no
 * operand that is Partial along another mesh dim. */
static bool can_be_said(const call *c)
{
    for (int i = 0; i < c->p->operand_count; i++) {
        bool is_partial = false;
        for (int k = 0; k < tsr_mesh_ndim(c->p->mesh); k++)
            is_partial |= c->p->placements[i][k].kind == TSR_PARTIAL;
        if (c->gradients[i] && is_partial && (find_terms(c, i, TSR_PARTIAL) || find_terms(c, i, TSR_REPLICATE)))
            return false;
    }
    return true;
}

/* The gradients, where the op has some in these layouts. */
static tsr_status run_backward(call *c)
{
    tsr_layout *layout;
    whole dout = {.dtype = TSR_F32};
    draw d = {c->p->seed, 0};
    bool any = false;
    tsr_dtensor **wanted[OPERANDS] = {NULL};
    const tsr_layout *const result = tsr_dtensor_layout(c->results[0]);
    for (int i = 0; i < c->p->operand_count; i++) {
        wanted[i] = is_wanted(c->p, i) ? &c->gradients[i] : NULL;
        any |= wanted[i] != NULL;
    }
    if (!any || !c->p->info.has_gradient || tsr_dtype_get(tsr_layout_dtype(result))->kind != TSR_CLASS_FLOAT)
        return TSR_OK;
    if (tsr_op_gradient_layout(c->p->op, (size_t)c->p->attribute_count, c->p->attributes, c->layouts, &layout) !=
        TSR_OK)
        return TSR_OK;
    dout.dtype = tsr_layout_dtype(layout);
    set_shape(&dout, tsr_layout_ndim(layout), tsr_layout_shape(layout));
    draw_values(&d, &dout);
    const tsr_status status =
        place_whole(c->p, c->p->mesh, tsr_layout_placements(layout), &dout, 0, &c->dout_memory, &c->dout);
    tsr_layout_destroy(layout);
    TSR_TRY(status);
    c->is_backward = tsr_op_backward(c->p->op, (size_t)c->p->attribute_count, c->p->attributes,
                                     (const tsr_dtensor *const *)c->operands, c->dout, wanted) == TSR_OK;
    c->is_backward = c->is_backward && (c->policy != TSR_POLICY_FORBID || can_be_said(c));
    return TSR_OK;
}

/* A program's executable, and what it is given. */
typedef struct recorded {
    tsr_program *program;
    tsr_value operands[OPERANDS], results[TSR_OP_MOST_RESULTS], gradients[OPERANDS];
    tsr_executable *x;
    tsr_tensor inputs[OPERANDS + 1], outputs[TSR_OP_MOST_RESULTS + OPERANDS];
    tsr_dtensor *made[TSR_OP_MOST_RESULTS + OPERANDS];
    void *workspace;
} recorded;

/* Operands are inputs and parameters by turns. */
static tsr_status record_operands(const call *c, recorded *r)
{
    for (int i = 0; i < c->p->operand_count; i++) {
        char text[512];
        const tsr_layout *const layout = c->layouts[i];
        r->operands[i] = TSR_NONE;
        if (!layout)
            continue;
        tsr_layout_print(layout, text, sizeof text);
        if (i % 2)
            r->operands[i] = tsr_parameter(r->program, c->p->info.operands[i], layout);
        else
            r->operands[i] = tsr_input(r->program, c->p->info.operands[i], c->p->mesh, tsr_layout_dtype(layout),
                                       tsr_layout_ndim(layout), tsr_layout_shape(layout), text);
        if (c->is_backward && c->policy == TSR_POLICY_FORBID && is_wanted(c->p, i) && find_terms(c, i, TSR_REPLICATE))
            r->operands[i] = tsr_op_vary(r->program, r->operands[i]);
    }
    return TSR_OK;
}

/* The sum of the result times dout has the gradient dout. */
static void record_gradients(const call *c, recorded *r)
{
    tsr_value wanted[OPERANDS], made[OPERANDS], y = r->results[0];
    size_t count = 0;
    char name[80], text[512];
    const tsr_layout *const layout = tsr_dtensor_layout(c->dout);
    tsr_layout_print(layout, text, sizeof text);
    const tsr_value dout = tsr_input(r->program, "dout.of", c->p->mesh, tsr_layout_dtype(layout),
                                     tsr_layout_ndim(layout), tsr_layout_shape(layout), text);
    for (int i = 0; i < c->p->operand_count; i++) {
        if (is_wanted(c->p, i))
            wanted[count++] = r->operands[i];
    }
    y = tsr_op_all_reduce(r->program, y, 0);
    const tsr_value loss = tsr_op_sum(r->program, tsr_op_mul(r->program, y, dout), 0, NULL, 0);
    tsr_gradients(r->program, loss, count, wanted, made);
    count = 0;
    for (int i = 0; i < c->p->operand_count; i++) {
        r->gradients[i] = is_wanted(c->p, i) ? made[count++] : TSR_NONE;
        snprintf(name, sizeof name, "d.%s", c->p->info.operands[i]);
        if (is_wanted(c->p, i))
            tsr_output(r->program, name, r->gradients[i], NULL);
    }
}

/* Records the call; `*took`: the program took the op. */
static tsr_status record(const call *c, recorded *r, bool *took)
{
    TSR_TRY(tsr_program_create(tsr_mesh_context(c->p->mesh), &r->program));
    TSR_TRY(record_operands(c, r));
    TSR_TRY(tsr_program_status(r->program, NULL));
    *took = tsr_program_apply(r->program, c->p->info.name, (size_t)c->p->attribute_count, c->p->attributes, r->operands,
                              r->results) != TSR_NONE;
    if (!*took)
        return TSR_OK;
    for (int i = 0; c->p->info.results[i]; i++) {
        char name[80];
        snprintf(name, sizeof name, "r.%s", c->p->info.results[i]);
        tsr_output(r->program, name, r->results[i], NULL);
    }
    if (c->is_backward)
        record_gradients(c, r);
    return TSR_OK;
}

static tsr_status give(const call *c, recorded *r)
{
    size_t inputs = 0;
    for (int i = 0; i < c->p->operand_count; i++) {
        if (c->operands[i] && i % 2)
            TSR_TRY(tsr_executable_bind(r->x, c->p->info.operands[i], c->operands[i]));
        else if (c->operands[i])
            r->inputs[inputs++] = tsr_dtensor_to_local(c->operands[i]);
    }
    if (c->is_backward)
        r->inputs[inputs++] = tsr_dtensor_to_local(c->dout);
    for (size_t i = 0; i < tsr_executable_output_count(r->x); i++) {
        TSR_TRY(tsr_dtensor_create(tsr_executable_output_layout(r->x, i), tsr_device_host(), &r->made[i]));
        r->outputs[i] = tsr_dtensor_to_local(r->made[i]);
    }
    return TSR_OK;
}

static tsr_status run_recorded(const call *c, recorded *r)
{
    TSR_TRY(tsr_compile(r->program, NULL, &r->x));
    TSR_TRY(give(c, r));
    TSR_TRY(tsr_executable_prepare(r->x, c->comm));
    const size_t bytes = tsr_executable_workspace_bytes(r->x);
    r->workspace = aligned_alloc(64, (bytes / 64 + 1) * 64);
    memset(r->workspace, 0xa5, bytes);
    return tsr_executable_run(r->x, c->comm, r->inputs, r->outputs, r->workspace, bytes, NULL);
}

static void clear_recorded(recorded *r)
{
    for (int i = 0; i < TSR_OP_MOST_RESULTS + OPERANDS; i++)
        tsr_dtensor_destroy(r->made[i]);
    tsr_executable_destroy(r->x);
    tsr_program_destroy(r->program);
    free(r->workspace);
}

/* Compares the elements of this rank. */
static tsr_status compare(const char *what, const tsr_dtensor *got, const tsr_dtensor *wanted)
{
    char ours[512], theirs[512];
    int64_t count;
    const tsr_tensor a = tsr_dtensor_to_local(got), b = tsr_dtensor_to_local(wanted);
    const size_t bytes = tsr_dtype_get(a.dtype)->bytes;
    if (!tsr_layout_equal(tsr_dtensor_layout(got), tsr_dtensor_layout(wanted))) {
        tsr_layout_print(tsr_dtensor_layout(got), ours, sizeof ours);
        tsr_layout_print(tsr_dtensor_layout(wanted), theirs, sizeof theirs);
        return tsr_status_set(TSR_ERROR_INTERNAL, "%s is \"%s\" instead of \"%s\"", what, ours, theirs);
    }
    TSR_TRY(tsr_tensor_count(&a, &count));
    for (int64_t i = 0; i < count; i++) {
        const char *const x = (const char *)a.data + (size_t)element_place(&a, i) * bytes, *const y =
                                                                                               (const char *)b.data +
                                                                                               (size_t)element_place(
                                                                                                   &b, i) *
                                                                                                   bytes;
        const double own = element_get(x, a.dtype, 0), other = element_get(y, a.dtype, 0);
        if (memcmp(x, y, bytes) != 0 && (own == own || other == other))
            return tsr_status_set(TSR_ERROR_INTERNAL, "element %lld of %s is %.17g instead of %.17g", (long long)i,
                                  what, own, other);
    }
    return TSR_OK;
}

/* Gradients of varying and moved operands lie otherwise than those of calls, which are then
 * moved. */
static tsr_status compare_gradient(const char *what, const tsr_dtensor *got, const tsr_dtensor *wanted)
{
    tsr_dtensor *moved;
    TSR_TRY(tsr_redistribute(wanted, tsr_layout_placements(tsr_dtensor_layout(got)), &moved));
    const tsr_status status = compare(what, got, moved);
    tsr_dtensor_destroy(moved);
    return status;
}

static tsr_status compare_all(const call *c, const recorded *r)
{
    size_t at = 0;
    for (int i = 0; c->p->info.results[i]; i++)
        TSR_TRY(compare(c->p->info.results[i], r->made[at++], c->results[i]));
    for (int i = 0; i < c->p->operand_count; i++) {
        char name[80];
        snprintf(name, sizeof name, "the gradient of %s", c->p->info.operands[i]);
        if (c->is_backward && is_wanted(c->p, i))
            TSR_TRY(compare_gradient(name, r->made[at++], c->gradients[i]));
    }
    return TSR_OK;
}

static tsr_status prove(call *c)
{
    recorded r = {.program = NULL};
    bool took = false;
    TSR_TRY(place_operands(c));
    const bool taken = is_taken(c);
    if (taken) {
        if (tsr_op_call(c->p->op, (size_t)c->p->attribute_count, c->p->attributes,
                        (const tsr_dtensor *const *)c->operands, c->results) != TSR_OK)
            return explain(c, "the call");
        TSR_TRY(run_backward(c));
    }
    tsr_status status = record(c, &r, &took);
    if (status == TSR_OK && took != taken) {
        const char *sentence = "";
        tsr_program_status(r.program, &sentence);
        status = tsr_status_set(TSR_ERROR_INTERNAL, "the call is %s, and the program's op is not: %s",
                                taken ? "taken" : "refused", sentence ? sentence : "");
    }
    if (status == TSR_OK && took)
        status = run_recorded(c, &r);
    if (status == TSR_OK && took)
        status = compare_all(c, &r);
    if (status != TSR_OK)
        status = explain(c, "the program");
    ran += c->p->rank == 0 && took;
    refused += c->p->rank == 0 && !took;
    differentiated += c->p->rank == 0 && c->is_backward;
    clear_recorded(&r);
    return status;
}

/* What ranks of a mesh prove. */
typedef struct assignment {
    const char *mesh;
    tsr_policy policy;
} assignment;

static tsr_status prove_line(proof *p, draw *d, tsr_comm *comm, tsr_policy policy)
{
    TSR_TRY(tsr_op_find(NULL, p->line->op, &p->op));
    tsr_op_describe(p->op, &p->info);
    for (p->operand_count = 0; p->info.operands[p->operand_count];)
        p->operand_count++;
    const char *const thin = getenv("TSR_TEST_THIN");
    const int draws = thin ? atoi(thin) == 2 ? 1 : DRAWS / 4 + 1 : DRAWS * times;
    for (int n = 0; n < draws; n++) {
        p->seed = draw_next(d);
        p->before.state = draw_next(d);
        draw_case(p, 0);
        draw_placements(d, p);
        TSR_TRY(normalize(p));
        call c = {.p = p, .comm = comm, .policy = policy};
        const tsr_status status = can_be_placed(p) ? prove(&c) : TSR_OK;
        clear(&c);
        TSR_TRY(status);
    }
    return TSR_OK;
}

static tsr_status prove_all(tsr_comm *comm, void *arg)
{
    const assignment *const a = arg;
    proof p = {.rank = (int)tsr_comm_rank(comm), .line = chosen, .times = times};
    TSR_TRY(tsr_mesh_parse(comm, NULL, a->mesh, &p.mesh));
    tsr_status status = TSR_OK;
    for (; p.line->op && status == TSR_OK; p.line++) {
        draw d = {strlen(a->mesh) * 31 + (uint64_t)tsr_comm_size(comm) + a->policy, 0};
        for (const char *at = p.line->op; *at; at++)
            d.state = d.state * 31 + (uint64_t)*at;
        status = prove_line(&p, &d, comm, a->policy);
    }
    tsr_mesh_destroy(p.mesh);
    return status;
}

static int ranks_of(const char *mesh)
{
    int count = 1;
    for (; *mesh; mesh++)
        count *= *mesh == 'x' ? 1 : *mesh - '0';
    return count;
}

static void programs_give_the_bits_of_calls(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof meshes / sizeof meshes[0]; i++) {
        for (size_t j = 0; j < sizeof policies / sizeof policies[0]; j++) {
            tsr_context_options options = TSR_CONTEXT_OPTIONS_INIT;
            tsr_threads_options threads = TSR_THREADS_OPTIONS_INIT;
            assignment a = {meshes[i], policies[j]};
            options.policy = policies[j];
            assert_int_equal(tsr_context_create(&options, &threads.context), TSR_OK);
            if (tsr_threads_run(ranks_of(meshes[i]), prove_all, &a, &threads) != TSR_OK)
                fail_msg("%s", tsr_status_message());
            tsr_context_destroy(threads.context);
        }
    }
    print_message("%d programs ran, %d with gradients; %d ops were refused, as calls are\n", (int)ran,
                  (int)differentiated, (int)refused);
    assert_true(ran > 0);
}

int main(int count, char **arguments)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(programs_give_the_bits_of_calls)};
    for (size_t i = 0; count >= 2 && i < sizeof lists / sizeof lists[0]; i++) {
        if (strcmp(lists[i].name, arguments[1]) == 0)
            chosen = lists[i].lines;
    }
    if (count == 3)
        times = atoi(arguments[2]);
    if (!chosen || times < 1)
        return 2;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
