/* The backward of a program: nodes from the last to the first, each by the formulas of its row,
 * which are applied as recorded ops. */
#include "ops/programs/forms.h"
#include "ops/programs/lengths.h"
#include "ops/programs/recorded/record.h"
#include "ops/rows/formula.h"
#include "ops/rows/gradient_layouts.h"
#include "ops/rows/lookup.h"
#include "ops/rows/table.h"

#include <tessera/sys/memory.h>

#include <stdio.h>
#include <string.h>

/* The most values that are computed again one from the other. */
#define MOST_AGAIN 256

/* Room for "the gradient of op 12, linear", which begins sentences. */
#define CALLER 128

/* A value as formulas take it. */
typedef struct handle {
    tsr_program *program;
    tsr_value value;
    struct handle *next;
} handle;

/* One call of tsr_gradients(). */
typedef struct backward {
    tsr_program *program;
    size_t value_count, node_count; /* of the forward pass */
    int round;                      /* of nodes that are computed again */
    tsr_value *gradients;           /* by value; TSR_NONE: none yet */
    tsr_value *again;               /* by value: as computed again; TSR_NONE: not yet */
    bool *depends;                  /* values that depend on those by which gradients are wanted */
    handle *handles;
    char caller[CALLER];
} backward;

static tsr_status make_handle(backward *b, tsr_value value, void **out)
{
    void *room;
    if (value == TSR_NONE) {
        *out = NULL;
        return TSR_OK;
    }
    TSR_TRY(tsr_allocate(b->program->context, sizeof(handle), &room));
    handle *const made = room;
    *made = (handle){b->program, value, b->handles};
    b->handles = made;
    *out = made;
    return TSR_OK;
}

static const tsr_layout *layout_of(const void *value)
{
    const handle *const h = value;
    return h->program->values[h->value].layout;
}

/* Handles live until the call ends. */
static void *retain(void *value)
{
    return value;
}

static void release(void *value)
{
    (void)value;
}

/* A handle from another one: formulas know no backward. */
static tsr_status derive_handle(handle *of, tsr_value value, void **out)
{
    void *room;
    TSR_TRY(tsr_allocate(of->program->context, sizeof(handle), &room));
    handle *const made = room;
    *made = (handle){of->program, value, of->next};
    of->next = made;
    *out = made;
    return TSR_OK;
}

/* The operand with other values, Replicate where it is Partial. */
static tsr_status make_like(void *operand, void **out)
{
    handle *const x = operand;
    tsr_placement placements[TSR_MAX_DIMS];
    tsr_layout *layout;
    tsr_value value;
    tsr_op_reduced(layout_of(x), placements);
    TSR_TRY(tsr_layout_with(layout_of(x), placements, &layout));
    tsr_status status = tsr_program_add_value(x->program, TSR_VALUE_LIKE, layout, &value);
    if (status == TSR_OK)
        x->program->values[value].like = x->value;
    tsr_layout_destroy(layout);
    return status == TSR_OK ? derive_handle(x, value, out) : status;
}

/* The gradient layout of a value. */
static tsr_status make_expected(const tsr_program_value *v, tsr_layout **out)
{
    tsr_placement placements[TSR_MAX_DIMS];
    tsr_op_reduced(v->layout, placements);
    for (int k = 0; k < tsr_mesh_ndim(tsr_layout_mesh(v->layout)); k++)
        if (v->varying >> k & 1)
            placements[k] = tsr_partial(TSR_SUM);
    return tsr_layout_with(v->layout, placements, out);
}

/* What a value is called in sentences. */
static const char *name_value(const backward *b, tsr_value value, char text[64])
{
    const char *const name = b->program->values[value].name;
    if (name)
        snprintf(text, 64, "\"%.60s\"", name);
    else
        snprintf(text, 64, "value %d", value);
    return text;
}

static tsr_status refuse_terms(const backward *b, tsr_value value, const tsr_layout *made)
{
    char name[64], text[256];
    const tsr_layout *const own = b->program->values[value].layout;
    bool reduces = false;
    for (int k = 0; k < tsr_mesh_ndim(tsr_layout_mesh(own)); k++)
        reduces |=
            tsr_layout_placements(made)[k].kind == TSR_PARTIAL && tsr_layout_placements(own)[k].kind == TSR_PARTIAL;
    tsr_layout_print(made, text, sizeof text);
    return tsr_status_set(TSR_ERROR_ARGUMENT,
                          "%s leaves terms of the gradient by %s, \"%s\", which is %s: every rank needs the sum; "
                          "give the op %s(program, %s%s) instead, whose backward adds the terms",
                          b->caller, name_value(b, value, name), text, reduces ? "Partial itself" : "invariant",
                          reduces ? "tsr_op_all_reduce" : "tsr_op_vary", name, reduces ? ", 1" : "");
}

/* The layout to which a made gradient must be brought: the value's gradient layout, but Replicate,
 * or terms of a mean, may stay where terms are expected, which are then added later. */
static tsr_status make_wanted(const tsr_program_value *v, const tsr_layout *made, tsr_layout **out)
{
    tsr_placement placements[TSR_MAX_DIMS];
    tsr_op_reduced(v->layout, placements);
    for (int k = 0; k < tsr_mesh_ndim(tsr_layout_mesh(v->layout)); k++) {
        const tsr_placement *const own = &tsr_layout_placements(made)[k];
        const bool stays = own->kind == TSR_REPLICATE || (own->kind == TSR_PARTIAL && own->op == TSR_AVG);
        if (v->varying >> k & 1)
            placements[k] = stays ? *own : tsr_partial(TSR_SUM);
    }
    return tsr_layout_with(v->layout, placements, out);
}

/* True if the gradient differs from what is wanted by terms alone. */
static bool has_terms(const tsr_layout *made, const tsr_layout *wanted)
{
    bool found = false;
    for (int k = 0; k < tsr_mesh_ndim(tsr_layout_mesh(made)); k++) {
        const tsr_placement *const a = &tsr_layout_placements(made)[k], *const b = &tsr_layout_placements(wanted)[k];
        if (a->kind == TSR_PARTIAL && b->kind == TSR_REPLICATE)
            found = true;
        else if (a->kind != b->kind)
            return false;
    }
    return found;
}

/* Brings a gradient that was made for a value to the value's gradient layout. */
static tsr_status bring(backward *b, tsr_value value, tsr_value *gradient)
{
    tsr_layout *wanted;
    bool alike;
    const tsr_layout *const made = b->program->values[*gradient].layout;
    const tsr_policy policy = tsr_context_policy(b->program->context, NULL);
    TSR_TRY(make_wanted(&b->program->values[value], made, &wanted));
    tsr_status status = tsr_program_compare(made, wanted, &alike);
    if (status == TSR_OK && !alike && policy == TSR_POLICY_FORBID && has_terms(made, wanted))
        status = refuse_terms(b, value, made);
    if (status == TSR_OK)
        status = tsr_program_bring(b->program, b->caller, *gradient, wanted, gradient);
    tsr_layout_destroy(wanted);
    return status;
}

/* The layout of two gradients of a value: Partial where one is. */
static tsr_status join_layouts(const tsr_layout *x, const tsr_layout *y, tsr_layout **out)
{
    tsr_placement placements[TSR_MAX_DIMS];
    for (int k = 0; k < tsr_mesh_ndim(tsr_layout_mesh(x)); k++)
        placements[k] = tsr_layout_placements(tsr_layout_placements(x)[k].kind == TSR_PARTIAL ? x : y)[k];
    return tsr_layout_with(x, placements, out);
}

/* Adds a gradient to those that a value has. */
static tsr_status accumulate(backward *b, tsr_value value, tsr_value gradient)
{
    tsr_program *const program = b->program;
    tsr_value *const sum = &b->gradients[value];
    tsr_value made[TSR_OP_MOST_RESULTS], both[2] = {*sum, gradient};
    tsr_layout *joint;
    const tsr_move_reason reason = {true, -1};
    if (*sum == TSR_NONE) {
        *sum = gradient;
        return TSR_OK;
    }
    TSR_TRY(join_layouts(program->values[both[0]].layout, program->values[both[1]].layout, &joint));
    tsr_status status = tsr_program_move(program, both[0], joint, reason, &both[0]);
    if (status == TSR_OK)
        status = tsr_program_move(program, both[1], joint, reason, &both[1]);
    tsr_layout_destroy(joint);
    TSR_TRY(status);
    TSR_TRY(tsr_program_record(program, tsr_op_lookup(NULL, "add", 3), 0, NULL, both, made));
    *sum = made[0];
    return TSR_OK;
}

/* The gradient of a move: the move back, terms left as they are where the operand varies. */
static tsr_status reverse_move(backward *b, tsr_value operand, tsr_value gradient)
{
    tsr_placement placements[TSR_MAX_DIMS];
    tsr_layout *back;
    const tsr_program_value *const x = &b->program->values[operand];
    const tsr_layout *const own = b->program->values[gradient].layout;
    const bool is_on_one = tsr_op_are_on_one_mesh(tsr_layout_mesh(own), tsr_layout_mesh(x->layout));
    tsr_op_reduced(x->layout, placements);
    for (int k = 0; is_on_one && k < tsr_mesh_ndim(tsr_layout_mesh(own)); k++)
        if (x->varying >> k & 1)
            placements[k] = tsr_layout_placements(own)[k].kind == TSR_PARTIAL ? tsr_partial(TSR_SUM) : tsr_replicate();
    TSR_TRY(tsr_layout_with(x->layout, placements, &back));
    tsr_status status = tsr_program_move(b->program, gradient, back, (tsr_move_reason){false, -1}, &gradient);
    tsr_layout_destroy(back);
    return status == TSR_OK ? accumulate(b, operand, gradient) : status;
}

static tsr_status refuse_result(const backward *b, const tsr_op *op, int result)
{
    return tsr_status_set(TSR_ERROR_UNSUPPORTED,
                          "%s: the loss depends on %s, and gradients go through %s, the first result, alone", b->caller,
                          op->results[result], op->results[0]);
}

/* Finds which gradients of a node's operands are wanted; false: none. */
static bool want(const backward *b, const tsr_program_node *node, bool *wanted)
{
    bool any = false;
    for (int i = 0; node->op->operands[i]; i++) {
        wanted[i] = node->operands[i] != TSR_NONE && b->depends[node->operands[i]];
        any |= wanted[i];
    }
    return any;
}

static tsr_status compute_again(backward *b, tsr_value value, int depth, tsr_value *out);

/* Refuses a value of a state over which a later store wrote: formulas read what the op read. */
static tsr_status check_now(const char *caller, const tsr_program *program, tsr_value value)
{
    const tsr_program_value *const v = &program->values[value];
    if (v->kind != TSR_VALUE_STATE || tsr_program_now(program, v->first) == value)
        return TSR_OK;
    return tsr_status_set(TSR_ERROR_UNSUPPORTED,
                          "%s: the gradient reads state \"%.64s\" as it was before a store; record the store after "
                          "tsr_gradients()",
                          caller, program->values[v->first].name);
}

/* Records a node once more, on operands that are computed again where they are marked. */
static tsr_status record_again(backward *b, const tsr_program_node *given, int depth, tsr_value *results)
{
    const tsr_program_node node = *given;
    tsr_value operands[TSR_OP_MOST_OPERANDS];
    size_t count = 0;
    tsr_attribute attributes[TSR_OP_MOST_ATTRIBUTES + 1];
    for (int i = 0; i < TSR_OP_MOST_OPERANDS; i++) {
        operands[i] = node.operands[i];
        if (operands[i] == TSR_NONE)
            continue;
        TSR_TRY(check_now(b->caller, b->program, operands[i]));
        TSR_TRY(compute_again(b, node.operands[i], depth + 1, &operands[i]));
    }
    if (!node.op)
        return tsr_program_move(b->program, operands[0], b->program->values[node.results[0]].layout,
                                (tsr_move_reason){node.chosen, node.cause}, &results[0]);
    for (; node.attributes[count].name; count++)
        attributes[count] = tsr_attribute_given(&node.attributes[count]);
    return tsr_program_record(b->program, node.op, count, attributes, operands, results);
}

/* The value, computed again if it is marked. */
static tsr_status compute_again(backward *b, tsr_value value, int depth, tsr_value *out)
{
    tsr_value results[TSR_OP_MOST_RESULTS];
    const tsr_program_value *const v = &b->program->values[value];
    *out = value;
    if (!v->again || (size_t)value >= b->value_count)
        return TSR_OK;
    if (depth > MOST_AGAIN)
        return tsr_status_set(TSR_ERROR_UNSUPPORTED,
                              "%s: more than %d marked values follow one another; leave every so many unmarked",
                              b->caller, MOST_AGAIN);
    if (b->again[value] == TSR_NONE) {
        const int result = v->result, round = b->program->round;
        b->program->round = b->round;
        const tsr_status status = record_again(b, &b->program->nodes[v->node], depth, results);
        b->program->round = round;
        TSR_TRY(status);
        b->again[value] = results[result];
    }
    *out = b->again[value];
    return TSR_OK;
}

/* Records a row of a formula. */
static tsr_status apply(void *user, const char *caller, const tsr_op *op, size_t count, const tsr_attribute *attributes,
                        void *const *operands, void **results)
{
    backward *const b = user;
    tsr_value taken[TSR_OP_MOST_OPERANDS], made[TSR_OP_MOST_RESULTS];
    for (int i = 0; op->operands[i]; i++) {
        const handle *const h = operands[i];
        if (h)
            TSR_TRY(check_now(caller, b->program, h->value));
        taken[i] = h ? h->value : TSR_NONE;
    }
    const tsr_status status = tsr_program_record(b->program, op, count, attributes, taken, made);
    if (status != TSR_OK) {
        tsr_kept_sentence kept;
        tsr_status_keep(&kept);
        return tsr_status_set(status, "%s: %s", caller, kept.text);
    }
    for (int i = 0; op->results[i]; i++) {
        TSR_TRY(compute_again(b, made[i], 0, &made[i]));
        TSR_TRY(make_handle(b, made[i], &results[i]));
    }
    return TSR_OK;
}

/* The attributes of a case, with the maxima of lengths. */
static void resolve(const tsr_program *program, const tsr_attribute *attributes, tsr_op_case *c)
{
    size_t count = 0;
    memcpy(c->attributes, attributes, sizeof c->attributes);
    while (c->attributes[count].name)
        count++;
    tsr_program_resolve_largest(program, c->attributes, count);
}

/* Makes the gradients of an op's operands; the program's arrays may move meanwhile. */
static tsr_status reverse_op(backward *b, const tsr_program_node *given)
{
    const tsr_program_node node = *given;
    bool wanted[TSR_OP_MOST_OPERANDS] = {false};
    void *operands[TSR_OP_MOST_OPERANDS] = {NULL}, *made[TSR_OP_MOST_OPERANDS] = {NULL}, *gradient;
    const tsr_layout *layouts[TSR_OP_MOST_OPERANDS] = {NULL};
    tsr_op_case c = {.caller = b->caller, .op = node.op, .operands = layouts};
    tsr_layout *invariant;
    if (!want(b, &node, wanted))
        return TSR_OK;
    for (int i = 1; i < TSR_OP_MOST_RESULTS && node.op->results[i]; i++)
        if (b->gradients[node.results[i]] != TSR_NONE)
            return refuse_result(b, node.op, i);
    if (b->gradients[node.results[0]] == TSR_NONE)
        return TSR_OK;
    resolve(b->program, node.attributes, &c);
    for (int i = 0; node.op->operands[i]; i++) {
        tsr_value operand = node.operands[i];
        if (operand != TSR_NONE)
            TSR_TRY(compute_again(b, operand, 0, &operand));
        layouts[i] = tsr_value_layout(b->program, operand);
        TSR_TRY(make_handle(b, operand, &operands[i]));
    }
    TSR_TRY(tsr_op_result_gradient(&c, b->program->values[node.results[0]].layout, &invariant));
    tsr_layout_destroy(invariant);
    /* Formulas give attributes to rows that are recorded, with lengths. */
    memcpy(c.attributes, node.attributes, sizeof c.attributes);
    TSR_TRY(make_handle(b, b->gradients[node.results[0]], &gradient));
    const tsr_formula_values recorded = {layout_of, retain, release, make_like, apply, b};
    TSR_TRY(tsr_formula_gradients(&recorded, &c, operands, gradient, wanted, made));
    for (int i = 0; node.op->operands[i]; i++) {
        if (!made[i])
            continue;
        tsr_value value = ((handle *)made[i])->value;
        TSR_TRY(bring(b, node.operands[i], &value));
        TSR_TRY(accumulate(b, node.operands[i], value));
    }
    return TSR_OK;
}

static tsr_status reverse_node(backward *b, size_t index)
{
    const tsr_program_node *const node = &b->program->nodes[index];
    snprintf(b->caller, sizeof b->caller, "tsr_gradients: op %zu, %.60s", index,
             node->op       ? node->op->name
             : node->stores ? "store"
                            : "move");
    if (node->op)
        return reverse_op(b, node);
    if (node->stores)
        return b->depends[node->results[0]] && b->gradients[node->results[0]] != TSR_NONE
                   ? tsr_status_set(TSR_ERROR_UNSUPPORTED,
                                    "%s: the loss depends on a state that was stored from a value by which a gradient "
                                    "is wanted; gradients do not go through stores",
                                    b->caller)
                   : TSR_OK;
    if (!b->depends[node->operands[0]] || b->gradients[node->results[0]] == TSR_NONE)
        return TSR_OK;
    return reverse_move(b, node->operands[0], b->gradients[node->results[0]]);
}

static tsr_status check_loss(const backward *b, tsr_value loss)
{
    const tsr_layout *const layout = tsr_value_layout(b->program, loss);
    int64_t count = 1;
    if (!layout)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "tsr_gradients: loss is value %d, which is not one of the program's",
                              loss);
    for (int dim = 0; dim < tsr_layout_ndim(layout); dim++)
        count *= tsr_layout_shape(layout)[dim];
    if (count != 1)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "tsr_gradients: loss has %lld elements, but must have 1",
                              (long long)count);
    for (int k = 0; k < tsr_mesh_ndim(tsr_layout_mesh(layout)); k++) {
        const tsr_placement *const p = &tsr_layout_placements(layout)[k];
        if (p->kind == TSR_SHARD || (p->kind == TSR_PARTIAL && p->op != TSR_SUM))
            return tsr_status_set(TSR_ERROR_ARGUMENT,
                                  "tsr_gradients: loss is neither Replicate nor Partial(sum) on mesh dim %d", k);
    }
    return TSR_OK;
}

/* True of integers and bools, such as ids of topk: gradients do not go through them. */
static bool is_discrete(const backward *b, tsr_value value)
{
    const tsr_dtype_class kind = tsr_dtype_get(tsr_layout_dtype(b->program->values[value].layout))->kind;
    return kind == TSR_CLASS_SIGNED || kind == TSR_CLASS_UNSIGNED || kind == TSR_CLASS_BOOL;
}

/* Marks the values on which gradients are wanted, and all that depend on them smoothly. */
static tsr_status mark(backward *b, size_t count, const tsr_value *values)
{
    for (size_t i = 0; i < count; i++) {
        if (!tsr_program_value_at(b->program, values[i]))
            return tsr_status_set(TSR_ERROR_ARGUMENT,
                                  "tsr_gradients: values[%zu] is %d, which is not one of the program's values", i,
                                  values[i]);
        b->depends[values[i]] = true;
    }
    for (size_t i = 0; i < b->node_count; i++) {
        const tsr_program_node *const node = &b->program->nodes[i];
        bool depends = false;
        for (int j = 0; j < TSR_OP_MOST_OPERANDS; j++)
            depends |= node->operands[j] != TSR_NONE && b->depends[node->operands[j]];
        for (int j = 0; depends && j < TSR_OP_MOST_RESULTS; j++)
            if (node->results[j] != TSR_NONE && !is_discrete(b, node->results[j]))
                b->depends[node->results[j]] = true;
    }
    return TSR_OK;
}

/* Records a constant of a value's shape in its layout, Replicate where that is Partial. */
static tsr_status make_constant(backward *b, tsr_value like, double value, tsr_value *out)
{
    tsr_placement placements[TSR_MAX_DIMS];
    tsr_layout *layout;
    const tsr_layout *const own = b->program->values[like].layout;
    tsr_op_reduced(own, placements);
    TSR_TRY(tsr_layout_with(own, placements, &layout));
    *out = tsr_constant(b->program, value, layout);
    tsr_layout_destroy(layout);
    if (*out != TSR_NONE)
        b->program->values[*out].like = like;
    return b->program->status;
}

/* Gives out the gradients by the values that are wanted, in their gradient layouts. */
static tsr_status give(backward *b, size_t count, const tsr_value *values, tsr_value *out)
{
    for (size_t i = 0; i < count; i++) {
        tsr_layout *expected;
        tsr_value gradient = b->gradients[values[i]];
        if (gradient == TSR_NONE)
            TSR_TRY(make_constant(b, values[i], 0, &gradient));
        TSR_TRY(make_expected(&b->program->values[values[i]], &expected));
        const tsr_status status =
            tsr_program_move(b->program, gradient, expected, (tsr_move_reason){true, -1}, &out[i]);
        tsr_layout_destroy(expected);
        TSR_TRY(status);
    }
    return TSR_OK;
}

static tsr_status reverse_all(backward *b, tsr_value loss, size_t count, const tsr_value *values, tsr_value *out)
{
    void *room;
    TSR_TRY(check_loss(b, loss));
    TSR_TRY(tsr_allocate(b->program->context, b->value_count * sizeof *b->gradients, &room));
    b->gradients = room;
    for (size_t i = 0; i < b->value_count; i++)
        b->gradients[i] = TSR_NONE;
    TSR_TRY(tsr_allocate(b->program->context, b->value_count * sizeof *b->depends, &room));
    b->depends = memset(room, 0, b->value_count * sizeof *b->depends);
    TSR_TRY(tsr_allocate(b->program->context, b->value_count * sizeof *b->again, &room));
    b->again = room;
    for (size_t i = 0; i < b->value_count; i++)
        b->again[i] = TSR_NONE;
    TSR_TRY(mark(b, count, values));
    TSR_TRY(make_constant(b, loss, 1, &b->gradients[loss]));
    for (size_t i = b->node_count; i > 0; i--)
        TSR_TRY(reverse_node(b, i - 1));
    return give(b, count, values, out);
}

void tsr_gradients(tsr_program *program, tsr_value loss, size_t count, const tsr_value *values, tsr_value *out)
{
    for (size_t i = 0; out && i < count; i++)
        out[i] = TSR_NONE;
    if (!tsr_program_records(program))
        return;
    if (count && (!values || !out)) {
        (void)tsr_program_fail(
            program, tsr_status_set(TSR_ERROR_ARGUMENT, "tsr_gradients: %s is NULL", values ? "out" : "values"));
        return;
    }
    backward b = {.program = program, .value_count = program->value_count, .node_count = program->node_count};
    for (size_t i = 0; i < program->node_count; i++)
        b.round = program->nodes[i].round >= b.round ? program->nodes[i].round + 1 : b.round;
    const tsr_status status = reverse_all(&b, loss, count, values, out);
    tsr_release(program->context, b.gradients);
    tsr_release(program->context, b.depends);
    tsr_release(program->context, b.again);
    while (b.handles) {
        handle *const h = b.handles;
        b.handles = h->next;
        tsr_release(program->context, h);
    }
    if (status != TSR_OK)
        (void)tsr_program_fail(program, status);
}
