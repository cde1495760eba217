#include "ops/programs/saved/save.h"

#include <tessera/cost.h>
#include <tessera/saved.h>
#include <tessera/saved_program.h>
#include <tessera/sys/memory.h>
#include <tessera/sys/mesh_attachment.h>

#include <string.h>

/* A program with its distinct layouts. */
typedef struct saving {
    const tsr_program *program;
    const tsr_layout **layouts;
    size_t layout_count;
    uint32_t *of;     /* by value: which of the layouts */
    void *plan;       /* the layouts as a saved plan */
    size_t plan_size; /* bytes of the plan */
} saving;

static bool are_names_same(const tsr_mesh *a, const tsr_mesh *b)
{
    for (int k = 0; k < tsr_mesh_ndim(a); k++) {
        const char *const x = tsr_mesh_name(a, k), *const y = tsr_mesh_name(b, k);
        if (!x != !y || (x && strcmp(x, y) != 0))
            return false;
    }
    return true;
}

/* True if meshes are equal in all that is saved: in dims of size 1, names and nodes, too. */
static bool are_meshes_same(const tsr_mesh *a, const tsr_mesh *b)
{
    const tsr_nodes x = tsr_mesh_nodes(a), y = tsr_mesh_nodes(b);
    if (a == b)
        return true;
    if (tsr_mesh_ndim(a) != tsr_mesh_ndim(b) || !tsr_mesh_equal(a, b) || !are_names_same(a, b))
        return false;
    for (int k = 0; k < tsr_mesh_ndim(a); k++)
        if (tsr_mesh_size(a, k) != tsr_mesh_size(b, k))
            return false;
    return x.ranks_per_node == y.ranks_per_node && x.count == y.count &&
           (!x.count || memcmp(x.node, y.node, (size_t)x.count * sizeof *x.node) == 0);
}

/* True if mesh dim `k` cuts a tensor dim before mesh dim `other` does. */
static bool cuts_before(const tsr_placement *placements, int k, int other)
{
    const int own = placements[k].order, its = placements[other].order;
    return (own == TSR_ORDER_DEFAULT ? k : own) < (its == TSR_ORDER_DEFAULT ? other : its);
}

/* True if layouts are equal in all that is saved. */
static bool are_layouts_same(const tsr_layout *a, const tsr_layout *b)
{
    if (a == b)
        return true;
    if (tsr_layout_hash(a) != tsr_layout_hash(b) || !tsr_layout_equal(a, b) ||
        !are_meshes_same(tsr_layout_mesh(a), tsr_layout_mesh(b)))
        return false;
    const tsr_placement *const x = tsr_layout_placements(a), *const y = tsr_layout_placements(b);
    for (int k = 0; k < tsr_mesh_ndim(tsr_layout_mesh(a)); k++) {
        if (!tsr_placement_same(&x[k], &y[k]))
            return false;
        for (int before = 0; before < k; before++)
            if (x[k].kind == TSR_SHARD && x[before].kind == TSR_SHARD && x[k].dim == x[before].dim &&
                cuts_before(x, k, before) != cuts_before(y, k, before))
                return false;
    }
    return true;
}

static tsr_status list_layouts(saving *s)
{
    void *memory;
    const size_t count = s->program->value_count;
    TSR_TRY(tsr_allocate(s->program->context, count * sizeof(tsr_layout *), &memory));
    s->layouts = memory;
    TSR_TRY(tsr_allocate(s->program->context, count * sizeof *s->of, &memory));
    s->of = memory;
    for (size_t i = 0; i < count; i++) {
        size_t at = 0;
        const tsr_layout *const own = s->program->values[i].layout;
        while (at < s->layout_count && !are_layouts_same(s->layouts[at], own))
            at++;
        if (at == s->layout_count)
            s->layouts[s->layout_count++] = own;
        s->of[i] = (uint32_t)at;
    }
    return TSR_OK;
}

/* Saves the layouts as a plan in which each is moved to itself. All that a machine, its context or
 * its engine would choose is said, so that every rank gets the same bytes. */
static tsr_status save_layouts(saving *s)
{
    tsr_plan *plan;
    tsr_plan_options options = TSR_PLAN_OPTIONS_INIT;
    const tsr_cost_profile profile = tsr_cost_default();
    if (!s->layout_count)
        return TSR_OK;
    options.rank = TSR_RANK_NONE;
    options.mode = TSR_MODE_MESSAGE;
    options.nodes.ranks_per_node = 1;
    options.profile = &profile;
    TSR_TRY(tsr_plan_create_batch(s->layout_count, s->layouts, s->layouts, &options, &plan));
    tsr_status status = tsr_plan_save(plan, NULL, 0, &s->plan_size);
    if (status == TSR_OK)
        status = tsr_allocate(s->program->context, s->plan_size, &s->plan);
    if (status == TSR_OK)
        status = tsr_plan_save(plan, s->plan, s->plan_size, &s->plan_size);
    tsr_plan_destroy(plan);
    return status;
}

/* Writes a word, which an attribute has by its place among all, apart by `|`. */
static void write_word(tsr_writer *out, const char *words, int64_t place)
{
    for (; place > 0 && strchr(words, '|'); place--)
        words = strchr(words, '|') + 1;
    tsr_write_bytes(out, words, strcspn(words, "|"));
    tsr_write_bytes(out, "", 1);
}

static void write_attribute(tsr_writer *out, const tsr_attribute *a)
{
    tsr_write_text(out, a->name);
    tsr_write_u32(out, (uint32_t)a->kind);
    switch (a->kind) {
    case TSR_ATTRIBUTE_FLOAT:
        tsr_write_f64(out, a->number);
        break;
    case TSR_ATTRIBUTE_WORD:
        write_word(out, a->words, a->integer);
        break;
    case TSR_ATTRIBUTE_TEXT:
        tsr_write_text(out, a->words);
        break;
    case TSR_ATTRIBUTE_INTS:
        tsr_write_u32(out, (uint32_t)a->count);
        for (int i = 0; i < a->count; i++)
            tsr_write_i64(out, a->list[i]);
        break;
    default:
        tsr_write_i64(out, a->integer);
    }
}

/* A list that was not given and has no default is not written. */
static bool is_given(const tsr_attribute *a)
{
    return a->kind != TSR_ATTRIBUTE_INTS || a->count >= 0;
}

static void write_value(tsr_writer *out, tsr_value value)
{
    tsr_write_u32(out, (uint32_t)value);
}

static void write_op(tsr_writer *out, const tsr_program_node *node)
{
    uint32_t attributes = 0, operands = 0;
    for (int i = 0; node->attributes[i].name; i++)
        attributes += is_given(&node->attributes[i]);
    while (node->op->operands[operands])
        operands++;
    tsr_write_text(out, node->op->name);
    tsr_write_u32(out, attributes);
    for (int i = 0; node->attributes[i].name; i++)
        if (is_given(&node->attributes[i]))
            write_attribute(out, &node->attributes[i]);
    tsr_write_u32(out, operands);
    for (uint32_t i = 0; i < operands; i++)
        write_value(out, node->operands[i]);
}

static void write_node(tsr_writer *out, const tsr_program_node *node)
{
    if (node->op) {
        tsr_write_u32(out, (uint32_t)node->round);
        write_op(out, node);
        return;
    }
    write_value(out, node->operands[0]);
    if (node->stores) {
        write_value(out, node->operands[1]);
        write_value(out, node->operands[2]);
        return;
    }
    tsr_write_u32(out, (uint32_t)node->round);
    tsr_write_u32(out, node->chosen);
    write_value(out, node->cause);
}

static void write_source(tsr_writer *out, const tsr_program_value *v)
{
    if (v->kind == TSR_VALUE_CONSTANT)
        tsr_write_f64(out, v->constant);
    if (v->kind == TSR_VALUE_CONSTANT || v->kind == TSR_VALUE_LIKE) {
        write_value(out, v->like);
        return;
    }
    tsr_write_text(out, v->name);
    for (int dim = 0; v->kind == TSR_VALUE_INPUT && dim < tsr_layout_ndim(v->layout); dim++)
        tsr_write_i64(out, v->shape[dim]);
}

static tsr_entry_kind find_kind(const tsr_program *program, const tsr_program_value *v)
{
    static const tsr_entry_kind kinds[] = {[TSR_VALUE_INPUT] = TSR_ENTRY_INPUT,
                                           [TSR_VALUE_PARAMETER] = TSR_ENTRY_PARAMETER,
                                           [TSR_VALUE_STATE] = TSR_ENTRY_STATE,
                                           [TSR_VALUE_CONSTANT] = TSR_ENTRY_CONSTANT,
                                           [TSR_VALUE_LIKE] = TSR_ENTRY_LIKE};
    if (v->node < 0)
        return kinds[v->kind];
    if (program->nodes[v->node].stores)
        return TSR_ENTRY_STORE;
    return program->nodes[v->node].op ? TSR_ENTRY_OP : TSR_ENTRY_MOVE;
}

/* Writes the entry whose first value is `first`; returns the number of its values. */
static size_t write_entry(const saving *s, tsr_writer *out, size_t first)
{
    size_t count = 1;
    const tsr_program_value *const v = &s->program->values[first];
    while (v->node >= 0 && first + count < s->program->value_count && s->program->values[first + count].node == v->node)
        count++;
    tsr_write_u32(out, find_kind(s->program, v));
    tsr_write_u32(out, (uint32_t)count);
    for (size_t i = first; i < first + count; i++) {
        tsr_write_u32(out, s->of[i]);
        tsr_write_u32(out, s->program->values[i].varying);
        tsr_write_u32(out, s->program->values[i].again);
    }
    if (v->node < 0)
        write_source(out, v);
    else
        write_node(out, &s->program->nodes[v->node]);
    return count;
}

static size_t count_entries(const tsr_program *program)
{
    size_t count = program->node_count;
    for (size_t i = 0; i < program->value_count; i++)
        count += program->values[i].node < 0;
    return count;
}

/* Writes the program, with `bytes` as the number of its bytes in all. */
static void write_program(const saving *s, tsr_writer *out, size_t bytes)
{
    const tsr_program *const program = s->program;
    tsr_write_frame(out, &tsr_program_frame, TSR_SAVED_PROGRAM_VERSION, bytes);
    tsr_write_i64(out, (int64_t)s->plan_size);
    tsr_write_bytes(out, s->plan, s->plan_size);
    tsr_write_u32(out, (uint32_t)program->length_count);
    for (size_t i = 0; i < program->length_count; i++) {
        tsr_write_text(out, program->lengths[i].name);
        tsr_write_i64(out, program->lengths[i].maximum);
    }
    tsr_write_u32(out, (uint32_t)program->key_count);
    for (size_t i = 0; i < program->key_count; i++) {
        tsr_write_text(out, program->keys[i].name);
        tsr_write_u32(out, (uint32_t)program->keys[i].generator);
    }
    tsr_write_i64(out, (int64_t)count_entries(program));
    for (size_t i = 0; i < program->value_count;)
        i += write_entry(s, out, i);
    tsr_write_u32(out, (uint32_t)program->output_count);
    for (size_t i = 0; i < program->output_count; i++) {
        tsr_write_text(out, program->outputs[i].name);
        write_value(out, program->outputs[i].value);
    }
    tsr_write_frame_end(out);
}

static tsr_status save(saving *s, tsr_writer *writer, size_t *size)
{
    tsr_writer count = {.buffer = NULL};
    TSR_TRY(list_layouts(s));
    TSR_TRY(save_layouts(s));
    write_program(s, &count, 0);
    if (writer->capacity)
        write_program(s, writer, count.length);
    *size = count.length;
    return TSR_OK;
}

tsr_status tsr_program_write(const tsr_program *program, tsr_writer *writer, size_t *size)
{
    saving s = {.program = program};
    const tsr_status status = save(&s, writer, size);
    tsr_release(program->context, (void *)s.layouts);
    tsr_release(program->context, s.of);
    tsr_release(program->context, s.plan);
    return status;
}

tsr_status tsr_program_save(const tsr_program *program, void *buffer, size_t capacity, size_t *bytes)
{
    tsr_writer writer = {.buffer = buffer, .capacity = capacity};
    if (!program || !bytes)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "tsr_program_save: %s is NULL", program ? "bytes" : "program");
    if (!buffer && capacity > 0)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "tsr_program_save: buffer is NULL, but its capacity is %zu",
                              capacity);
    if (program->status != TSR_OK)
        return tsr_status_restore(&program->sentence, program->status);
    return tsr_program_write(program, &writer, bytes);
}
