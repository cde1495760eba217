/* How sizes depend on lengths: ops are inferred again with other lengths, and sizes that differ are
 * found to be sums of multiples of them. */
#include "ops/programs/shapes.h"

#include "ops/programs/lengths.h"
#include "ops/rows/table.h"

#include <tessera/sys/memory.h>

#include <stdio.h>
#include <string.h>

/* Shapes of all values for some lengths. */
typedef struct probe {
    const tsr_program *program;
    int64_t lengths[TSR_LENGTHS];
    int64_t (*shapes)[TSR_MAX_DIMS];
} probe;

/* The layout of a value with the sizes of the probe. */
static tsr_status make_layout(const probe *p, tsr_value value, tsr_layout **out)
{
    const tsr_layout *const own = p->program->values[value].layout;
    return tsr_layout_create(tsr_layout_mesh(own), tsr_layout_placements(own), tsr_layout_ndim(own), p->shapes[value],
                             tsr_layout_dtype(own), out);
}

static tsr_status refuse(const tsr_program_node *node, size_t index, const char *why)
{
    return tsr_status_set(TSR_ERROR_ARGUMENT, "tsr_compile: op %zu, %s, with a shorter length: %s", index,
                          node->op ? node->op->name : "move", why);
}

static bool are_placed_alike(const tsr_layout *a, const tsr_layout *b)
{
    for (int k = 0; k < tsr_mesh_ndim(tsr_layout_mesh(a)); k++)
        if (!tsr_placement_same(&tsr_layout_placements(a)[k], &tsr_layout_placements(b)[k]))
            return false;
    return true;
}

/* Takes the shapes of an op's results. */
static tsr_status take_results(const probe *p, size_t index, const tsr_op_inferred *inferred)
{
    const tsr_program_node *const node = &p->program->nodes[index];
    for (int i = 0; node->op->results[i]; i++) {
        const tsr_layout *const made = inferred->results[i];
        if (!are_placed_alike(made, p->program->values[node->results[i]].layout))
            return refuse(node, index, "the result has another layout");
        memcpy(p->shapes[node->results[i]], tsr_layout_shape(made), (size_t)tsr_layout_ndim(made) * sizeof(int64_t));
    }
    return TSR_OK;
}

static tsr_status infer(const probe *p, size_t index, tsr_layout *const *layouts)
{
    const tsr_program_node *const node = &p->program->nodes[index];
    tsr_op_inferred inferred;
    char caller[96];
    size_t count = 0;
    snprintf(caller, sizeof caller, "tsr_compile: op %zu, %.40s, with a shorter length", index, node->op->name);
    tsr_op_case c = {.caller = caller, .op = node->op, .operands = (const tsr_layout *const *)layouts};
    memcpy(c.attributes, node->attributes, sizeof c.attributes);
    while (c.attributes[count].name)
        count++;
    tsr_program_resolve(p->program->length_count, p->lengths, c.attributes, count);
    TSR_TRY(tsr_op_infer(&c, &inferred));
    const tsr_status status = take_results(p, index, &inferred);
    tsr_op_inferred_clear(&inferred);
    return status;
}

/* True if a node's operands have the sizes that were recorded, and its attributes no lengths: then
 * its results have their own, too, and inferring, which takes longest, would find them again. */
static bool is_as_recorded(const probe *p, const tsr_program_node *node)
{
    tsr_attribute attributes[TSR_OP_MOST_ATTRIBUTES + 1];
    size_t count = 0;
    for (; node->attributes[count].name; count++)
        attributes[count] = node->attributes[count];
    for (int i = 0; i < TSR_OP_MOST_OPERANDS; i++) {
        if (node->operands[i] == TSR_NONE)
            continue;
        const tsr_layout *const own = p->program->values[node->operands[i]].layout;
        if (memcmp(p->shapes[node->operands[i]], tsr_layout_shape(own),
                   (size_t)tsr_layout_ndim(own) * sizeof(int64_t)) != 0)
            return false;
    }
    return !tsr_program_resolve(p->program->length_count, p->lengths, attributes, count);
}

static void keep_results(const probe *p, const tsr_program_node *node)
{
    for (int i = 0; node->op->results[i]; i++) {
        const tsr_layout *const own = p->program->values[node->results[i]].layout;
        memcpy(p->shapes[node->results[i]], tsr_layout_shape(own), (size_t)tsr_layout_ndim(own) * sizeof(int64_t));
    }
}

/* Shapes of a node's results, from those of its operands. */
static tsr_status probe_node(const probe *p, size_t index)
{
    const tsr_program_node *const node = &p->program->nodes[index];
    tsr_layout *layouts[TSR_OP_MOST_OPERANDS] = {NULL};
    if (!node->op) {
        memcpy(p->shapes[node->results[0]], p->shapes[node->operands[0]], sizeof *p->shapes);
        return TSR_OK;
    }
    if (is_as_recorded(p, node)) {
        keep_results(p, node);
        return TSR_OK;
    }
    tsr_status status = TSR_OK;
    for (int i = 0; i < TSR_OP_MOST_OPERANDS && status == TSR_OK; i++)
        if (node->operands[i] != TSR_NONE)
            status = make_layout(p, node->operands[i], &layouts[i]);
    if (status == TSR_OK)
        status = infer(p, index, layouts);
    for (int i = 0; i < TSR_OP_MOST_OPERANDS; i++)
        tsr_layout_destroy(layouts[i]);
    return status;
}

/* Finds the shape of a value that no node makes. It may be that of another value, recorded
 * before. */
static void probe_source(const probe *p, size_t value)
{
    const tsr_program_value *const v = &p->program->values[value];
    const int ndim = tsr_layout_ndim(v->layout);
    for (int dim = 0; dim < ndim; dim++) {
        const int length = v->kind == TSR_VALUE_INPUT ? tsr_program_length_of(p->program, v->shape[dim]) : -1;
        p->shapes[value][dim] = length < 0 ? tsr_layout_shape(v->layout)[dim] : p->lengths[length];
    }
    if (v->like != TSR_NONE)
        memcpy(p->shapes[value], p->shapes[v->like], sizeof *p->shapes);
}

/* Shapes of all values, in the order of recording. */
static tsr_status probe_all(const probe *p)
{
    for (size_t i = 0; i < p->program->value_count; i++) {
        const tsr_program_value *const v = &p->program->values[i];
        if (v->node < 0)
            probe_source(p, i);
        else if (v->result == 0)
            TSR_TRY(probe_node(p, (size_t)v->node));
    }
    return TSR_OK;
}

/* Finds how sizes depend on one length, by two numbers of it. */
static tsr_status find_factors(const tsr_program *program, size_t length, const probe *p, tsr_factors *out)
{
    const int64_t step = program->lengths[length].maximum - p->lengths[length];
    for (size_t i = 0; i < program->value_count; i++) {
        const tsr_layout *const layout = program->values[i].layout;
        for (int dim = 0; dim < tsr_layout_ndim(layout); dim++) {
            const int64_t change = tsr_layout_shape(layout)[dim] - p->shapes[i][dim];
            if (change % step)
                return tsr_status_set(
                    TSR_ERROR_UNSUPPORTED,
                    "tsr_compile: dim %d of value %zu does not grow by a multiple of length \"%.64s\"", dim, i,
                    program->lengths[length].name);
            out[i].of[dim][length] = change / step;
        }
    }
    return TSR_OK;
}

/* Checks what was found by other lengths. */
static tsr_status check_factors(const tsr_program *program, const probe *p, const tsr_factors *factors)
{
    for (size_t i = 0; i < program->value_count; i++) {
        const tsr_layout *const layout = program->values[i].layout;
        for (int dim = 0; dim < tsr_layout_ndim(layout); dim++) {
            int64_t size = tsr_layout_shape(layout)[dim];
            for (size_t j = 0; j < program->length_count; j++)
                size -= factors[i].of[dim][j] * (program->lengths[j].maximum - p->lengths[j]);
            if (size != p->shapes[i][dim])
                return tsr_status_set(TSR_ERROR_UNSUPPORTED,
                                      "tsr_compile: dim %d of value %zu is no sum of multiples of lengths", dim, i);
        }
    }
    return TSR_OK;
}

/* Sizes that depend on lengths are whole on every rank. */
static tsr_status check_whole(const tsr_program *program, const tsr_factors *factors)
{
    for (size_t i = 0; i < program->value_count; i++) {
        const tsr_layout *const layout = program->values[i].layout;
        for (int k = 0; k < tsr_mesh_ndim(tsr_layout_mesh(layout)); k++) {
            const tsr_placement *const at = &tsr_layout_placements(layout)[k];
            for (size_t j = 0; at->kind == TSR_SHARD && j < program->length_count; j++)
                if (factors[i].of[at->dim][j])
                    return tsr_status_set(TSR_ERROR_ARGUMENT,
                                          "tsr_compile: dim %d of value %zu depends on length \"%.64s\", and mesh dim "
                                          "%d cuts it; such a dim must be whole",
                                          at->dim, i, program->lengths[j].name, k);
        }
    }
    return TSR_OK;
}

static tsr_status find_all(probe *p, tsr_factors *out)
{
    const tsr_program *const program = p->program;
    for (size_t i = 0; i < program->length_count; i++) {
        if (program->lengths[i].maximum == 1)
            continue;
        for (size_t j = 0; j < program->length_count; j++)
            p->lengths[j] = program->lengths[j].maximum;
        p->lengths[i] = (program->lengths[i].maximum + 1) / 2;
        TSR_TRY(probe_all(p));
        TSR_TRY(find_factors(program, i, p, out));
    }
    for (size_t j = 0; j < program->length_count; j++)
        p->lengths[j] = (program->lengths[j].maximum + 2) / 3;
    TSR_TRY(probe_all(p));
    TSR_TRY(check_factors(program, p, out));
    return check_whole(program, out);
}

tsr_status tsr_compile_factors(const tsr_program *program, tsr_factors *out)
{
    void *memory;
    probe p = {.program = program};
    if (!program->length_count)
        return TSR_OK;
    TSR_TRY(tsr_program_array(program->context, program->value_count, sizeof *p.shapes, &memory));
    p.shapes = memory;
    const tsr_status status = find_all(&p, out);
    tsr_release(program->context, memory);
    return status;
}
