#include "elements.h"
#include "place.h"
#include "refused.h"

#include <tessera/sys/status.h>

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Refusals that are judged for each op and mesh. */
#define REFUSALS 4

static atomic_int proved, proposed, backward, refusals[REFUSAL_STRICT + 1];

tsr_attribute *proof_attribute(proof *p, const char *name)
{
    int i = 0;
    while (strcmp(p->attributes[i].name, name) != 0)
        i++;
    return &p->attributes[i];
}

bool proof_is_integer(const proof *p, int operand)
{
    return p->operands[operand].dtype == TSR_DTYPE_NONE ||
           tsr_dtype_get(p->operands[operand].dtype)->kind != TSR_CLASS_FLOAT;
}

static bool has_partial(const tsr_layout *layout)
{
    for (int k = 0; k < tsr_mesh_ndim(tsr_layout_mesh(layout)); k++) {
        if (tsr_layout_placements(layout)[k].kind == TSR_PARTIAL)
            return true;
    }
    return false;
}

static tsr_status differ(const proof *p, const char *what, const tsr_dtensor *got, int64_t i, double value,
                         double wanted)
{
    char placements[512], layout[160], mesh[64];
    print_placements(p, placements, sizeof placements);
    tsr_layout_print(tsr_dtensor_layout(got), layout, sizeof layout);
    tsr_mesh_print(p->mesh, mesh, sizeof mesh);
    return tsr_status_set(TSR_ERROR_INTERNAL, "%s on mesh %s with%s: element %lld of %s (%s) is %.9g instead of %.9g",
                          p->info.name, mesh, placements, (long long)i, what, layout, value, wanted);
}

/* A number of the bits of a local tensor's elements. */
static int64_t number_bits(const tsr_tensor *local, int64_t count)
{
    uint64_t hash = (uint64_t)count;
    for (int64_t i = 0; i < count; i++) {
        const double value = element_get(local->data, local->dtype, element_place(local, i));
        uint64_t bits;
        memcpy(&bits, &value, sizeof bits);
        hash = (hash ^ bits) * UINT64_C(0x9e3779b97f4a7c15);
        hash ^= hash >> 29;
    }
    return (int64_t)(hash >> 1);
}

/* Collective, and so for a fourth of the draws: along mesh dims on which a tensor is Replicate, all
 * ranks have the same bits. */
static tsr_status compare_replicas(const proof *p, const char *what, const tsr_dtensor *got)
{
    int64_t count;
    const tsr_tensor local = tsr_dtensor_to_local(got);
    TSR_TRY(tsr_tensor_count(&local, &count));
    for (int k = 0; k < tsr_mesh_ndim(p->mesh); k++) {
        char dim[16];
        if (tsr_layout_placements(tsr_dtensor_layout(got))[k].kind != TSR_REPLICATE || tsr_mesh_size(p->mesh, k) == 1)
            continue;
        snprintf(dim, sizeof dim, "%d", k);
        int64_t least[2] = {number_bits(&local, count), -number_bits(&local, count)};
        TSR_TRY(tsr_mesh_all_reduce(p->mesh, dim, least, least, 2, TSR_I64, TSR_MIN, tsr_device_host(), NULL));
        if (least[0] != -least[1])
            return differ(p, what, got, -2, 0, 0);
    }
    return TSR_OK;
}

/* Results that must be exact are so in bf16 and f16 while no sum of integers is beyond their
 * mantissa. */
static bool is_exact(tsr_dtype dtype, bool exact, double value)
{
    return exact && !((dtype == TSR_BF16 && !(value <= 64 && value >= -64)) ||
                      (dtype == TSR_F16 && !(value <= 512 && value >= -512)));
}

/* Collective: compares a dtensor with what this rank computed alone. */
static tsr_status compare(const proof *p, const char *what, const tsr_dtensor *got, const tsr_dtensor *wanted,
                          bool exact)
{
    tsr_dtensor *full;
    if (p->seed % 4 == 0)
        TSR_TRY(compare_replicas(p, what, got));
    TSR_TRY(tsr_full_tensor(got, &full));
    const tsr_tensor a = tsr_dtensor_to_local(full), b = tsr_dtensor_to_local(wanted);
    int64_t count, other;
    tsr_status status = tsr_tensor_count(&a, &count);
    if (status == TSR_OK)
        status = tsr_tensor_count(&b, &other);
    if (status == TSR_OK && (count != other || a.dtype != b.dtype || a.ndim != b.ndim))
        status = differ(p, what, got, -1, (double)count, (double)other);
    for (int64_t i = 0; i < count && status == TSR_OK; i++) {
        const double x = element_get(a.data, a.dtype, i), y = element_get(b.data, b.dtype, element_place(&b, i));
        const bool same = x == y || (x != x && y != y);
        if (!same && (is_exact(b.dtype, exact, y) || !element_near(x, y, b.dtype)))
            status = differ(p, what, got, i, x, y);
    }
    tsr_dtensor_destroy(full);
    return status;
}

typedef struct tensors {
    tsr_dtensor *operands[OPERANDS], *memory[OPERANDS], *results[TSR_OP_MOST_RESULTS], *dout, *dout_memory;
    tsr_dtensor *gradients[OPERANDS];
} tensors;

static void destroy_tensors(tensors *t)
{
    for (int i = 0; i < OPERANDS; i++) {
        tsr_dtensor_destroy(t->gradients[i]);
        tsr_dtensor_destroy(t->operands[i]);
        tsr_dtensor_destroy(t->memory[i]);
    }
    for (int i = 0; i < TSR_OP_MOST_RESULTS; i++)
        tsr_dtensor_destroy(t->results[i]);
    tsr_dtensor_destroy(t->dout);
    tsr_dtensor_destroy(t->dout_memory);
}

/* The layout of the first result's gradient. */
static tsr_status find_gradient_layout(const proof *p, const tsr_mesh *mesh, const tensors *t, tsr_layout **out)
{
    tsr_attribute attributes[TSR_OP_MOST_ATTRIBUTES];
    const tsr_layout *layouts[OPERANDS] = {NULL};
    for (int i = 0; i < p->operand_count; i++)
        layouts[i] = t->operands[i] ? tsr_dtensor_layout(t->operands[i]) : NULL;
    return tsr_op_gradient_layout(p->op, (size_t)p->attribute_count, attributes_on(p, mesh, attributes), layouts, out);
}

static tsr_status run(const proof *p, const tsr_mesh *mesh, const tsr_placement (*placements)[TSR_MAX_DIMS], tensors *t)
{
    for (int i = 0; i < p->operand_count; i++) {
        if (p->operands[i].dtype != TSR_DTYPE_NONE)
            TSR_TRY(place_whole(p, mesh, placements[i], &p->operands[i], p->seed + (uint64_t)(100 * i), &t->memory[i],
                                &t->operands[i]));
    }
    tsr_attribute attributes[TSR_OP_MOST_ATTRIBUTES];
    return tsr_op_call(p->op, (size_t)p->attribute_count, attributes_on(p, mesh, attributes),
                       (const tsr_dtensor *const *)t->operands, t->results);
}

static tsr_status run_backward(const proof *p, const tsr_mesh *mesh, tensors *t)
{
    tsr_layout *layout;
    whole dout = {0};
    draw d = {p->seed, 0};
    TSR_TRY(find_gradient_layout(p, mesh, t, &layout));
    dout.dtype = tsr_layout_dtype(layout);
    dout.ndim = tsr_layout_ndim(layout);
    if (dout.ndim)
        memcpy(dout.shape, tsr_layout_shape(layout), (size_t)dout.ndim * sizeof(int64_t));
    draw_values(&d, &dout);
    tsr_status status = place_whole(p, mesh, tsr_layout_placements(layout), &dout, 0, &t->dout_memory, &t->dout);
    tsr_layout_destroy(layout);
    TSR_TRY(status);
    tsr_dtensor **wanted[OPERANDS] = {NULL};
    for (int i = 0; i < p->operand_count; i++)
        wanted[i] = proof_is_integer(p, i) || p->line->constants >> i & 1 ? NULL : &t->gradients[i];
    tsr_attribute attributes[TSR_OP_MOST_ATTRIBUTES];
    return tsr_op_backward(p->op, (size_t)p->attribute_count, attributes_on(p, mesh, attributes),
                           (const tsr_dtensor *const *)t->operands, t->dout, wanted);
}

/* Layouts of gradients that are found without data are those of the gradients. */
static tsr_status compare_layouts(const proof *p, const tensors *t)
{
    const tsr_layout *operands[OPERANDS] = {NULL};
    tsr_layout *gradients[OPERANDS] = {NULL};
    bool wanted[OPERANDS] = {false};
    for (int i = 0; i < p->operand_count; i++) {
        operands[i] = t->operands[i] ? tsr_dtensor_layout(t->operands[i]) : NULL;
        wanted[i] = t->gradients[i] != NULL;
    }
    TSR_TRY(tsr_op_propagate_gradients(p->op, (size_t)p->attribute_count, p->attributes, operands, NULL, wanted,
                                       gradients));
    tsr_status status = TSR_OK;
    for (int i = 0; i < p->operand_count; i++) {
        if (wanted[i] && !tsr_layout_equal(gradients[i], tsr_dtensor_layout(t->gradients[i])))
            status = differ(p, "the gradient's layout", t->gradients[i], -1, 0, 0);
        tsr_layout_destroy(gradients[i]);
    }
    return status;
}

static bool has_backward(const proof *p, const tensors *t)
{
    tsr_layout *gradient;
    if (!p->info.has_gradient ||
        tsr_dtype_get(tsr_layout_dtype(tsr_dtensor_layout(t->results[0])))->kind != TSR_CLASS_FLOAT)
        return false;
    bool wanted = false;
    for (int i = 0; i < p->operand_count; i++)
        wanted |= !proof_is_integer(p, i);
    if (!wanted)
        return false;
    if (find_gradient_layout(p, p->mesh, t, &gradient) != TSR_OK)
        return false;
    tsr_layout_destroy(gradient);
    return true;
}

static tsr_status prove_fitting(const proof *p, tensors *sharded, tensors *dense)
{
    static const tsr_placement replicated[OPERANDS][TSR_MAX_DIMS];
    TSR_TRY(run(p, p->mesh, p->placements, sharded));
    TSR_TRY(run(p, p->alone, replicated, dense));
    bool partial = false;
    for (int i = 0; i < p->operand_count; i++)
        partial |= sharded->operands[i] && has_partial(tsr_dtensor_layout(sharded->operands[i]));
    const bool sums = p->line->inexact || partial || has_partial(tsr_dtensor_layout(sharded->results[0]));
    for (int i = 0; p->info.results[i]; i++)
        TSR_TRY(compare(p, p->info.results[i], sharded->results[i], dense->results[i], p->line->exact || !sums));
    proved += p->rank == 0;
    if (!has_backward(p, sharded))
        return TSR_OK;
    const tsr_status status = run_backward(p, p->mesh, sharded);
    /* A part of a result may lie as no placement says, though the result does not. */
    if (status != TSR_OK && strstr(tsr_status_message(), "so that no placement says which rank has what"))
        return TSR_OK;
    TSR_TRY(status);
    TSR_TRY(compare_layouts(p, sharded));
    TSR_TRY(run_backward(p, p->alone, dense));
    for (int i = 0; i < p->operand_count; i++) {
        if (sharded->gradients[i])
            TSR_TRY(
                compare(p, p->info.operands[i], sharded->gradients[i], dense->gradients[i], p->line->exact_gradients));
    }
    backward += p->rank == 0;
    return TSR_OK;
}

/* Takes over the placements that a refusal proposes: 'redistribute x from "P" to "R" and y from
 * ..'. */
static tsr_status adopt_proposal(proof *p, const char *sentence)
{
    const char *at = strstr(sentence, "; redistribute ");
    if (!at)
        return tsr_status_set(TSR_ERROR_INTERNAL, "no proposal in: %s", sentence);
    at += strlen("; redistribute ");
    while (at) {
        char name[16], from[64], to[64];
        int count;
        if (sscanf(at, "%15s from \"%63[^\"]\" to \"%63[^\"]\"", name, from, to) != 3)
            return tsr_status_set(TSR_ERROR_INTERNAL, "no proposal in: %s", sentence);
        for (int i = 0; i < p->operand_count; i++) {
            if (strcmp(name, p->info.operands[i]) == 0)
                TSR_TRY(tsr_placements_parse(to, p->placements[i], TSR_MAX_DIMS, &count, p->numbers[i], 64, NULL));
        }
        at = strstr(at, " and ");
        at = at ? at + strlen(" and ") : NULL;
    }
    return TSR_OK;
}

static tsr_status propagate(const proof *p, bool *is_layout)
{
    tsr_layout *operands[OPERANDS] = {NULL}, *results[TSR_OP_MOST_RESULTS] = {NULL};
    tsr_status status = TSR_OK;
    for (int i = 0; i < p->operand_count && status == TSR_OK; i++) {
        if (p->operands[i].dtype != TSR_DTYPE_NONE)
            status = tsr_layout_create(p->mesh, p->placements[i], p->operands[i].ndim, p->operands[i].shape,
                                       p->operands[i].dtype, &operands[i]);
    }
    *is_layout = status == TSR_OK;
    if (status == TSR_OK)
        status = tsr_op_propagate(p->op, (size_t)p->attribute_count, p->attributes, (const tsr_layout *const *)operands,
                                  results);
    if (status == TSR_OK)
        status = prove_sharding_rule(p, (const tsr_layout *const *)operands);
    for (int i = 0; i < TSR_OP_MOST_RESULTS; i++)
        tsr_layout_destroy(results[i]);
    for (int i = 0; i < OPERANDS; i++)
        tsr_layout_destroy(operands[i]);
    return status;
}

/* Shows that a refusal is right, on meshes of one dim and for the first few of a line. */
static tsr_status judge(proof *p)
{
    refusal verdict;
    char what[64] = "", placements[512], mesh[64];
    if (tsr_mesh_ndim(p->mesh) != 1 || tsr_mesh_size(p->mesh, 0) == 1 || p->refusals >= REFUSALS * p->times)
        return TSR_OK;
    TSR_TRY(judge_refusal(p, &verdict, what));
    p->refusals += verdict != REFUSAL_UNJUDGED;
    refusals[verdict] += p->rank == 0;
    if (verdict != REFUSAL_STRICT || p->line->strict)
        return TSR_OK;
    print_placements(p, placements, sizeof placements);
    tsr_mesh_print(p->mesh, mesh, sizeof mesh);
    return tsr_status_set(TSR_ERROR_INTERNAL, "%s on mesh %s refuses%s, where what ranks compute is right as %s",
                          p->info.name, mesh, placements, what);
}

static tsr_status prove(proof *p)
{
    bool is_layout;
    if (propagate(p, &is_layout) != TSR_OK) {
        const char *const sentence = tsr_status_message();
        if (!is_layout || strstr(sentence, " takes ") || strstr(sentence, ": dim is "))
            return TSR_OK;
        char kept[1024];
        snprintf(kept, sizeof kept, "%s", sentence);
        TSR_TRY(judge(p));
        TSR_TRY(adopt_proposal(p, kept));
        if (propagate(p, &is_layout) != TSR_OK)
            return tsr_status_set(TSR_ERROR_INTERNAL, "the proposal does not work: %s", kept);
        proposed += p->rank == 0;
    }
    tensors sharded = {{NULL}}, dense = {{NULL}};
    tsr_status status = prove_fitting(p, &sharded, &dense);
    destroy_tensors(&sharded);
    destroy_tensors(&dense);
    return status;
}

/* What ranks of a mesh prove. */
typedef struct assignment {
    const proof_case *lines;
    const char *mesh;
    int times;
} assignment;

/* Sanitizers find errors that many draws share. */
static int thinned(int draws)
{
    const char *const thin = getenv("TSR_TEST_THIN");
    const int by = thin ? atoi(thin) == 2 ? 16 : 4 : 1;
    return (draws + by - 1) / by;
}

static tsr_status prove_line(proof *p, draw *d)
{
    TSR_TRY(tsr_op_find(NULL, p->line->op, &p->op));
    tsr_op_describe(p->op, &p->info);
    for (p->operand_count = 0; p->info.operands[p->operand_count];)
        p->operand_count++;
    p->refusals = 0;
    for (int n = 0; n < thinned(p->times * (p->line->draws ? p->line->draws : PROOF_DRAWS)); n++) {
        p->seed = draw_next(d);
        p->before.state = draw_next(d);
        draw_case(p, 0);
        draw_placements(d, p);
        TSR_TRY(prove(p));
    }
    return TSR_OK;
}

static tsr_status prove_all(tsr_comm *comm, void *arg)
{
    static const int64_t one = 1;
    const assignment *const a = arg;
    const int64_t rank = tsr_comm_rank(comm);
    proof p = {.rank = (int)rank, .line = a->lines, .times = a->times};
    TSR_TRY(tsr_mesh_parse(comm, NULL, a->mesh, &p.mesh));
    TSR_TRY(tsr_mesh_create(comm, 1, &one, NULL, &rank, &p.alone));
    tsr_status status = TSR_OK;
    for (; p.line->op && status == TSR_OK; p.line++) {
        draw d = {strlen(a->mesh) * 31 + (uint64_t)tsr_comm_size(comm), 0};
        for (const char *at = p.line->op; *at; at++)
            d.state = d.state * 31 + (uint64_t)*at;
        status = prove_line(&p, &d);
    }
    tsr_mesh_destroy(p.alone);
    tsr_mesh_destroy(p.mesh);
    return status;
}

/* "2x2@[3,1,0,2]" is of 4 ranks. */
static int ranks_of(const char *mesh)
{
    int count = 1;
    for (; *mesh && *mesh != '@'; mesh++)
        count *= *mesh == 'x' ? 1 : *mesh - '0';
    return count;
}

tsr_status prove_lines(const proof_case *lines, const char *mesh, int times, proof_counts *counts)
{
    assignment a = {lines, mesh, times};
    proved = proposed = backward = 0;
    for (int i = 0; i <= REFUSAL_STRICT; i++)
        refusals[i] = 0;
    const tsr_status status = tsr_threads_run(ranks_of(mesh), prove_all, &a, NULL);
    counts->proved += proved;
    counts->backward += backward;
    counts->proposed += proposed;
    counts->refused_wrong += refusals[REFUSAL_WRONG];
    counts->refused_impossible += refusals[REFUSAL_IMPOSSIBLE];
    counts->refused_strictly += refusals[REFUSAL_STRICT];
    return status;
}
