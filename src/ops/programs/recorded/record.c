#include "ops/programs/recorded/record.h"

#include "ops/eager/attributes.h"
#include "ops/eager/mix.h"
#include "ops/layer_rule.h"
#include "ops/programs/forms.h"
#include "ops/programs/lengths.h"
#include "ops/rows/lookup.h"
#include "ops/rows/settle.h"
#include "ops/rows/table.h"
#include "ops/rules/cost.h"

#include <tessera/sys/log.h>
#include <tessera/sys/memory.h>
#include <tessera/sys/mesh_attachment.h>

#include <stdio.h>
#include <string.h>

/* Room for "op 12, linear", which begins sentences. */
#define CALLER 96

/* An op that is being recorded. */
typedef struct recording {
    tsr_program *program;
    const tsr_op *op;
    size_t count;
    const tsr_attribute *attributes;
    tsr_value operands[TSR_OP_MOST_OPERANDS];
    const tsr_layout *layouts[TSR_OP_MOST_OPERANDS];
    tsr_op_case c;
    tsr_attribute raw[TSR_OP_MOST_ATTRIBUTES + 1]; /* with lengths */
    char caller[CALLER];
    unsigned exchanged;
} recording;

/* Finds the slot of a node with this hash for which `is_same` holds, or the free one for it. */
static int *find_slot(tsr_program *program, const tsr_program_node *node,
                      bool (*is_same)(const tsr_program *program, const tsr_program_node *a, const tsr_program_node *b))
{
    size_t at = (size_t)node->hash & (program->table_room - 1);
    while (program->table[at] && !is_same(program, &program->nodes[program->table[at] - 1], node))
        at = (at + 1) & (program->table_room - 1);
    return &program->table[at];
}

static bool is_never(const tsr_program *program, const tsr_program_node *a, const tsr_program_node *b)
{
    (void)program, (void)a, (void)b;
    return false;
}

/* Keeps the table at most half full. */
static tsr_status grow_table(tsr_program *program)
{
    void *table;
    const size_t room = program->table_room ? 2 * program->table_room : 32;
    if (2 * (program->node_count + 1) < program->table_room)
        return TSR_OK;
    TSR_TRY(tsr_allocate(program->context, room * sizeof *program->table, &table));
    tsr_release(program->context, program->table);
    program->table = memset(table, 0, room * sizeof *program->table);
    program->table_room = room;
    for (size_t i = 0; i < program->node_count; i++)
        *find_slot(program, &program->nodes[i], is_never) = (int)i + 1;
    return TSR_OK;
}

static bool is_same_op(const tsr_program *program, const tsr_program_node *a, const tsr_program_node *b)
{
    (void)program;
    return a->hash == b->hash && a->round == b->round && a->op == b->op &&
           memcmp(a->operands, b->operands, sizeof a->operands) == 0 &&
           tsr_attributes_are_equal(a->attributes, b->attributes);
}

/* The new node has its layout in the value that it will make, which is the program's last. */
static bool is_same_move(const tsr_program *program, const tsr_program_node *a, const tsr_program_node *b)
{
    return a->hash == b->hash && a->round == b->round && !a->op && !a->stores && a->operands[0] == b->operands[0] &&
           tsr_op_are_layouts_equal(program->values[a->results[0]].layout, program->values[b->results[0]].layout);
}

static tsr_status add_node(tsr_program *program, const tsr_program_node *node, int *slot)
{
    program->nodes[program->node_count++] = *node;
    *slot = (int)program->node_count;
    return TSR_OK;
}

static tsr_status make_room(tsr_program *program)
{
    void *items = program->nodes;
    if (program->node_count == INT32_MAX - 1)
        return tsr_status_set(TSR_ERROR_UNSUPPORTED, "a program has at most %d nodes", INT32_MAX - 1);
    TSR_TRY(
        tsr_program_grow(program->context, sizeof *program->nodes, program->node_count, &program->node_room, &items));
    program->nodes = items;
    return grow_table(program);
}

static void none(tsr_value *values, int count)
{
    for (int i = 0; i < count; i++)
        values[i] = TSR_NONE;
}

tsr_status tsr_program_move(tsr_program *program, tsr_value value, const tsr_layout *layout, tsr_move_reason reason,
                            tsr_value *out)
{
    const tsr_layout *const own = program->values[value].layout;
    tsr_program_node node = {.chosen = reason.chosen, .cause = reason.cause, .round = program->round};
    if (tsr_op_are_layouts_equal(own, layout)) {
        *out = value;
        return TSR_OK;
    }
    none(node.operands, TSR_OP_MOST_OPERANDS);
    none(node.results, TSR_OP_MOST_RESULTS);
    node.operands[0] = value;
    node.hash = tsr_mix(tsr_layout_hash(layout), (uint64_t)value);
    TSR_TRY(make_room(program));
    TSR_TRY(tsr_program_add_value(program, TSR_VALUE_RESULT, (tsr_layout *)layout, &node.results[0]));
    int *const slot = find_slot(program, &node, is_same_move);
    if (*slot) {
        tsr_layout_destroy(program->values[--program->value_count].layout);
        *out = program->nodes[*slot - 1].results[0];
        return TSR_OK;
    }
    tsr_program_value *const made = &program->values[node.results[0]];
    made->node = (int)program->node_count;
    /* Mesh dims mean the same on one mesh alone. */
    const bool is_on_one =
        tsr_op_are_on_one_mesh(tsr_layout_mesh(program->values[value].layout), tsr_layout_mesh(layout));
    for (int k = 0; is_on_one && k < tsr_mesh_ndim(tsr_layout_mesh(layout)); k++) {
        if (tsr_layout_placements(layout)[k].kind == TSR_REPLICATE && program->values[value].varying >> k & 1)
            made->varying |= 1u << k;
    }
    *out = node.results[0];
    return add_node(program, &node, slot);
}

/* True if a policy lets a value be redistributed. */
static bool is_allowed(tsr_policy policy, const tsr_layout *from, const tsr_layout *to)
{
    if (policy != TSR_POLICY_PARTIALS)
        return policy != TSR_POLICY_FORBID;
    for (int k = 0; k < tsr_mesh_ndim(tsr_layout_mesh(from)); k++) {
        const tsr_placement *const a = &tsr_layout_placements(from)[k], *const b = &tsr_layout_placements(to)[k];
        if (!tsr_placement_same(a, b) && (a->kind != TSR_PARTIAL || b->kind == TSR_PARTIAL))
            return false;
    }
    return true;
}

static void warn(const tsr_program *program, const char *what, const tsr_layout *from, const tsr_layout *to)
{
    char ours[256], theirs[256];
    if (tsr_context_policy(program->context, NULL) != TSR_POLICY_WARN)
        return;
    tsr_layout_print(from, ours, sizeof ours);
    tsr_layout_print(to, theirs, sizeof theirs);
    tsr_log(program->context, TSR_LOG_WARN, "%s is redistributed from \"%s\" to \"%s\"", what, ours, theirs);
}

/* Refuses a move that takes a rank more bytes than the policy's limit. */
static tsr_status check_limit(const tsr_program *program, const char *what, const tsr_layout *from,
                              const tsr_layout *to)
{
    int64_t limit;
    tsr_move_cost cost = {0};
    if (tsr_context_policy(program->context, &limit) == TSR_POLICY_FORBID || limit == 0)
        return TSR_OK;
    TSR_TRY(tsr_move_cost_add(from, to, &cost));
    if (cost.busiest <= limit)
        return TSR_OK;
    return tsr_status_set(TSR_ERROR_ARGUMENT,
                          "%s: a rank would receive %lld bytes, more than the policy's limit of %lld; write the "
                          "redistribution, or raise tsr_context_options.policy_bytes",
                          what, (long long)cost.busiest, (long long)limit);
}

static tsr_status refuse_move(const char *what, const tsr_layout *from, const tsr_layout *to)
{
    char ours[256], theirs[256];
    tsr_layout_print(from, ours, sizeof ours);
    tsr_layout_print(to, theirs, sizeof theirs);
    return tsr_status_set(TSR_ERROR_ARGUMENT,
                          "%s: the value is \"%s\", and the policy does not let it be brought to \"%s\"; write "
                          "tsr_op_redistribute(program, value, \"%s\")",
                          what, ours, theirs, theirs);
}

tsr_status tsr_program_bring(tsr_program *program, const char *what, tsr_value value, const tsr_layout *layout,
                             tsr_value *out)
{
    const tsr_layout *const own = program->values[value].layout;
    bool alike;
    TSR_TRY(tsr_program_compare(own, layout, &alike));
    if (!alike && !is_allowed(tsr_context_policy(program->context, NULL), own, layout))
        return refuse_move(what, own, layout);
    if (!alike) {
        TSR_TRY(check_limit(program, what, own, layout));
        warn(program, what, own, layout);
    }
    return tsr_program_move(program, value, layout, (tsr_move_reason){true, -1}, out);
}

/* Copies the texts of a node's attributes, whose own text is the caller's. */
static tsr_status keep_texts(tsr_program *program, tsr_program_node *node)
{
    void *room;
    const size_t bytes = tsr_attributes_text_bytes(node->attributes);
    if (!bytes)
        return TSR_OK;
    TSR_TRY(tsr_allocate(program->context, bytes, &room));
    node->texts = room;
    tsr_attributes_keep_texts(node->attributes, node->texts);
    return TSR_OK;
}

/* The mesh dims on which a result varies: those on which an operand does, or the row says so. */
static unsigned find_varying(const recording *r, const tsr_layout *result)
{
    unsigned varying = r->op->varies ? r->op->varies(&r->c) : 0, whole = 0;
    for (int i = 0; r->op->operands[i]; i++)
        varying |= tsr_value_varying(r->program, r->operands[i]);
    for (int k = 0; k < tsr_mesh_ndim(tsr_layout_mesh(result)); k++)
        whole |= tsr_layout_placements(result)[k].kind == TSR_REPLICATE ? 1u << k : 0;
    return varying & whole;
}

/* Refuses a row of one's own that does not pass its first operand as it says. */
static tsr_status check_passing(const recording *r, tsr_layout *const *layouts)
{
    const tsr_layout *const from = r->c.operands[0], *const to = layouts[0];
    if (!r->op->passes)
        return TSR_OK;
    bool alike = tsr_layout_dtype(from) == tsr_layout_dtype(to) && tsr_layer_same_shape(from, to);
    if (alike)
        TSR_TRY(tsr_program_compare(from, to, &alike));
    if (alike)
        return TSR_OK;
    return tsr_status_set(TSR_ERROR_ARGUMENT,
                          "%s: the row passes its first operand, but its rule or its check give the result another "
                          "layout; leave `passes` out of the row",
                          r->c.caller);
}

static tsr_status add_results(recording *r, tsr_layout *const *layouts, tsr_program_node *node)
{
    tsr_program *const program = r->program;
    for (int i = 0; r->op->results[i]; i++) {
        TSR_TRY(tsr_program_add_value(program, TSR_VALUE_RESULT, layouts[i], &node->results[i]));
        tsr_program_value *const made = &program->values[node->results[i]];
        made->node = (int)program->node_count;
        made->result = i;
        made->varying = find_varying(r, layouts[i]);
    }
    return TSR_OK;
}

/* Adds the node of a case whose results' layouts are known, or finds it. */
static tsr_status add_case(recording *r, tsr_layout *const *layouts, tsr_value *results)
{
    tsr_program *const program = r->program;
    tsr_program_node node = {.op = r->op, .exchanged = r->exchanged, .cause = -1, .round = program->round};
    none(node.operands, TSR_OP_MOST_OPERANDS);
    none(node.results, TSR_OP_MOST_RESULTS);
    node.hash = tsr_mix_attributes((uint64_t)(uintptr_t)r->op, r->raw);
    memcpy(node.attributes, r->raw, sizeof node.attributes);
    for (int i = 0; r->op->operands[i]; i++) {
        node.operands[i] = r->operands[i];
        node.hash = tsr_mix(node.hash, (uint64_t)(int64_t)r->operands[i]);
    }
    TSR_TRY(check_passing(r, layouts));
    TSR_TRY(make_room(program));
    int *const slot = find_slot(program, &node, is_same_op);
    if (*slot) {
        memcpy(results, program->nodes[*slot - 1].results, sizeof node.results);
        return TSR_OK;
    }
    TSR_TRY(keep_texts(program, &node));
    const tsr_status status = add_results(r, layouts, &node);
    if (status != TSR_OK) {
        tsr_release(program->context, node.texts);
        return status;
    }
    memcpy(results, node.results, sizeof node.results);
    return add_node(program, &node, slot);
}

static tsr_status begin(recording *r)
{
    for (int i = 0; r->op->operands[i]; i++) {
        r->layouts[i] = tsr_value_layout(r->program, r->operands[i]);
        if (r->operands[i] != TSR_NONE && !r->layouts[i])
            return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: %s is value %d, which is not one of the program's",
                                  r->caller, r->op->operands[i], r->operands[i]);
    }
    TSR_TRY(tsr_op_begin(r->caller, r->op, r->count, r->attributes, r->layouts, &r->c));
    size_t count = 0;
    for (; r->c.attributes[count].name; count++) {
        /* The caller's names go with the call. */
        r->c.attributes[count].name = r->op->attributes[count].name;
        r->raw[count] = r->c.attributes[count];
    }
    TSR_TRY(tsr_program_check_key(r->program, r->caller, r->raw));
    tsr_program_resolve_largest(r->program, r->c.attributes, count);
    return TSR_OK;
}

/* Puts in the redistributions that the policy allows. */
static tsr_status settle(recording *r)
{
    int64_t bytes;
    tsr_layout *fitted[TSR_OP_MOST_OPERANDS] = {NULL};
    const tsr_policy policy = tsr_context_policy(r->program->context, &bytes);
    const tsr_move_reason reason = {true, -1};
    TSR_TRY(tsr_op_settle_case(&r->c, policy, bytes, fitted));
    tsr_status status = TSR_OK;
    for (int i = 0; r->op->operands[i] && status == TSR_OK; i++) {
        if (!fitted[i])
            continue;
        if (!tsr_layout_equal(fitted[i], r->layouts[i]))
            warn(r->program, r->op->operands[i], r->layouts[i], fitted[i]);
        status = tsr_program_move(r->program, r->operands[i], fitted[i], reason, &r->operands[i]);
    }
    for (int i = 0; i < TSR_OP_MOST_OPERANDS; i++)
        tsr_layout_destroy(fitted[i]);
    return status == TSR_OK ? begin(r) : status;
}

/* Records a move that an op says. */
static tsr_status record_move(recording *r, tsr_layout *const *layouts, tsr_value *results)
{
    none(results, TSR_OP_MOST_RESULTS);
    TSR_TRY(tsr_program_move(r->program, r->operands[0], layouts[0], (tsr_move_reason){false, -1}, &results[0]));
    /* The value may be the operand itself. */
    if (results[0] != r->operands[0])
        r->program->values[results[0]].varying |= find_varying(r, layouts[0]);
    return TSR_OK;
}

tsr_status tsr_program_record(tsr_program *program, const tsr_op *op, size_t count, const tsr_attribute *attributes,
                              const tsr_value *operands, tsr_value *results)
{
    recording r = {.program = program, .op = op, .count = count, .attributes = attributes};
    tsr_op_inferred inferred;
    const size_t first = program->node_count;
    snprintf(r.caller, sizeof r.caller, "op %zu, %.60s", program->node_count, op->name);
    none(r.operands, TSR_OP_MOST_OPERANDS);
    for (int i = 0; op->operands[i]; i++)
        r.operands[i] = tsr_program_now(program, operands[i]);
    TSR_TRY(begin(&r));
    tsr_status status = tsr_op_infer(&r.c, &inferred);
    if (status == TSR_ERROR_ARGUMENT) {
        TSR_TRY(settle(&r));
        status = tsr_op_infer(&r.c, &inferred);
    }
    TSR_TRY(status);
    r.exchanged = op->exchanges ? inferred.exchanged : 0;
    status = op->moves_to ? record_move(&r, inferred.results, results) : add_case(&r, inferred.results, results);
    tsr_op_inferred_clear(&inferred);
    for (size_t i = first; i + 1 < program->node_count && status == TSR_OK && !op->moves_to; i++)
        program->nodes[i].cause = program->values[results[0]].node;
    return status;
}

tsr_status tsr_program_record_fitting(tsr_program *program, const tsr_op *op, size_t count,
                                      const tsr_attribute *attributes, const tsr_value *operands, tsr_value *results)
{
    recording r = {.program = program, .op = op, .count = count, .attributes = attributes};
    tsr_op_inferred inferred;
    snprintf(r.caller, sizeof r.caller, "op %zu, %.60s", program->node_count, op->name);
    none(r.operands, TSR_OP_MOST_OPERANDS);
    for (int i = 0; op->operands[i]; i++)
        r.operands[i] = operands[i];
    TSR_TRY(begin(&r));
    TSR_TRY(tsr_op_infer(&r.c, &inferred));
    r.exchanged = op->exchanges ? inferred.exchanged : 0;
    const tsr_status status = add_case(&r, inferred.results, results);
    tsr_op_inferred_clear(&inferred);
    return status;
}

tsr_value tsr_program_apply(tsr_program *program, const char *op, size_t count, const tsr_attribute *attributes,
                            const tsr_value *operands, tsr_value *results)
{
    tsr_value made[TSR_OP_MOST_RESULTS];
    const tsr_op *row;
    if (results)
        none(results, TSR_OP_MOST_RESULTS);
    if (!tsr_program_records(program))
        return TSR_NONE;
    if (!op || !operands)
        return tsr_program_fail(
            program, tsr_status_set(TSR_ERROR_ARGUMENT, "tsr_program_apply: %s is NULL", op ? "operands" : "op"));
    if (strcmp(op, "recompute") == 0)
        return tsr_op_recompute(program, operands[0]);
    tsr_status status = tsr_op_find(program->context, op, &row);
    if (status == TSR_OK)
        status = tsr_program_record(program, row, count, attributes, operands, made);
    if (status != TSR_OK)
        return tsr_program_fail(program, status);
    if (results)
        memcpy(results, made, sizeof made);
    return made[0];
}

tsr_value tsr_program_now(const tsr_program *program, tsr_value value)
{
    const tsr_program_value *const v = tsr_program_value_at(program, value);
    return v && v->now != TSR_NONE ? v->now : value;
}

static tsr_status refuse_store(const tsr_program *program, const char *why, tsr_value state, tsr_value value)
{
    char ours[256], theirs[256];
    tsr_layout_print(program->values[state].layout, ours, sizeof ours);
    tsr_layout_print(program->values[value].layout, theirs, sizeof theirs);
    return tsr_status_set(TSR_ERROR_ARGUMENT, "op %zu, store: %s; state \"%.64s\" is \"%s\", value is \"%s\"",
                          program->node_count, why, program->values[state].name, ours, theirs);
}

/* Checks the shapes of a store. */
static tsr_status check_store(const tsr_program *program, tsr_value state, tsr_value value, tsr_value position)
{
    const tsr_layout *const to = program->values[state].layout, *const from = program->values[value].layout;
    int differing = 0;
    if (tsr_layout_dtype(to) != tsr_layout_dtype(from) || tsr_layout_ndim(to) != tsr_layout_ndim(from))
        return refuse_store(program, "value must have the state's dtype and number of dims", state, value);
    for (int dim = 0; dim < tsr_layout_ndim(to); dim++) {
        differing += tsr_layout_shape(to)[dim] != tsr_layout_shape(from)[dim];
        if (tsr_layout_shape(from)[dim] > tsr_layout_shape(to)[dim])
            return refuse_store(program, "value is longer than the state", state, value);
    }
    if (differing > (position != TSR_NONE))
        return refuse_store(program, "value must have the state's shape, but for one dim if there is a position", state,
                            value);
    if (position == TSR_NONE)
        return TSR_OK;
    const tsr_layout *const at = program->values[position].layout;
    const bool is_integer = tsr_layout_dtype(at) == TSR_I64 || tsr_layout_dtype(at) == TSR_I32;
    bool is_one = is_integer;
    for (int dim = 0; dim < tsr_layout_ndim(at); dim++)
        is_one &= tsr_layout_shape(at)[dim] == 1;
    for (int k = 0; k < tsr_mesh_ndim(tsr_layout_mesh(at)); k++)
        is_one &= tsr_layout_placements(at)[k].kind == TSR_REPLICATE;
    return is_one ? TSR_OK
                  : tsr_status_set(TSR_ERROR_ARGUMENT,
                                   "op %zu, store: position must be one integer, i32 or i64, Replicate",
                                   program->node_count);
}

/* Brings the value to the state's placements, and adds the node. */
static tsr_status record_store(tsr_program *program, tsr_value state, tsr_value value, tsr_value position)
{
    tsr_layout *placed;
    char what[48];
    tsr_program_node node = {.stores = true, .cause = -1, .dim = -1};
    const size_t first = program->node_count;
    TSR_TRY(check_store(program, state, value, position));
    const tsr_layout *const to = program->values[state].layout, *const from = program->values[value].layout;
    TSR_TRY(tsr_layout_create(tsr_layout_mesh(to), tsr_layout_placements(to), tsr_layout_ndim(from),
                              tsr_layout_shape(from), tsr_layout_dtype(from), &placed));
    snprintf(what, sizeof what, "op %zu, store", program->node_count);
    tsr_status status = tsr_program_bring(program, what, value, placed, &value);
    tsr_layout_destroy(placed);
    TSR_TRY(status);
    none(node.operands, TSR_OP_MOST_OPERANDS);
    none(node.results, TSR_OP_MOST_RESULTS);
    node.operands[0] = tsr_program_now(program, state);
    node.operands[1] = value;
    node.operands[2] = position;
    node.hash = tsr_mix((uint64_t)node.operands[0], 1);
    TSR_TRY(make_room(program));
    TSR_TRY(tsr_program_add_value(program, TSR_VALUE_STATE, program->values[state].layout, &node.results[0]));
    program->values[node.results[0]].node = (int)program->node_count;
    program->values[node.results[0]].first = state;
    program->values[state].now = node.results[0];
    for (size_t i = first; i < program->node_count; i++)
        program->nodes[i].cause = (int)program->node_count;
    return add_node(program, &node, find_slot(program, &node, is_never));
}

void tsr_op_store(tsr_program *program, tsr_value state, tsr_value value, tsr_value position)
{
    if (!tsr_program_records(program))
        return;
    tsr_status status = TSR_OK;
    const tsr_program_value *const s = tsr_program_value_at(program, state);
    if (!s || s->kind != TSR_VALUE_STATE || s->first != state)
        status = tsr_status_set(TSR_ERROR_ARGUMENT, "tsr_op_store: state is value %d, which is not one of tsr_state()",
                                state);
    else if (!tsr_program_value_at(program, value) ||
             (position != TSR_NONE && !tsr_program_value_at(program, position)))
        status = tsr_status_set(TSR_ERROR_ARGUMENT, "tsr_op_store: value %d or position %d is not one of the program's",
                                value, position);
    else
        status = record_store(program, state, tsr_program_now(program, value), tsr_program_now(program, position));
    if (status != TSR_OK)
        (void)tsr_program_fail(program, status);
}

tsr_value tsr_op_recompute(tsr_program *program, tsr_value x)
{
    if (!tsr_program_records(program))
        return TSR_NONE;
    tsr_program_value *const v = tsr_program_value_at(program, x);
    if (!v)
        return tsr_program_fail(program, tsr_status_set(TSR_ERROR_ARGUMENT,
                                                        "tsr_op_recompute: x is value %d, which is not one of the "
                                                        "program's",
                                                        x));
    v->again = v->kind == TSR_VALUE_RESULT;
    return x;
}

tsr_value tsr_op_to_mesh(tsr_program *program, tsr_value x, const tsr_layout *layout)
{
    tsr_value out;
    if (!tsr_program_records(program))
        return TSR_NONE;
    const tsr_layout *const own = tsr_value_layout(program, x);
    if (!layout || !own)
        return tsr_program_fail(program,
                                tsr_status_set(TSR_ERROR_ARGUMENT, "tsr_op_to_mesh: %s",
                                               layout ? "x is not one of the program's values" : "layout is NULL"));
    const bool is_same =
        tsr_layout_dtype(own) == tsr_layout_dtype(layout) && tsr_layout_ndim(own) == tsr_layout_ndim(layout) &&
        (tsr_layout_ndim(own) == 0 ||
         memcmp(tsr_layout_shape(own), tsr_layout_shape(layout), (size_t)tsr_layout_ndim(own) * sizeof(int64_t)) == 0);
    if (!is_same)
        return tsr_program_fail(
            program, tsr_status_set(TSR_ERROR_ARGUMENT, "tsr_op_to_mesh: layout has another shape or dtype than x"));
    x = tsr_program_now(program, x);
    const tsr_status status = tsr_program_move(program, x, layout, (tsr_move_reason){false, -1}, &out);
    return status == TSR_OK ? out : tsr_program_fail(program, status);
}
