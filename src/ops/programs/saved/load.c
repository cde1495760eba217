#include "ops/programs/saved/load.h"

#include "ops/programs/recorded/record.h"
#include "ops/programs/saved/save.h"

#include <tessera/saved.h>
#include <tessera/saved_program.h>
#include <tessera/sys/memory.h>

#include <limits.h>
#include <stdio.h>
#include <string.h>

/* Room for "tsr_executable_load: entry 12", which begins sentences. */
#define CALLER 96

typedef struct loader {
    const char *caller;
    tsr_context *context;
    tsr_reader in;
    tsr_plan *layouts; /* NULL: there are none */
    tsr_program *program;
    char place[CALLER]; /* the entry that is read */
} loader;

/* An entry: what its values are to be. */
typedef struct entry {
    uint32_t kind, count;
    tsr_value first; /* of its values */
    const tsr_layout *layouts[TSR_OP_MOST_RESULTS];
    unsigned varying[TSR_OP_MOST_RESULTS];
    bool again[TSR_OP_MOST_RESULTS];
} entry;

static tsr_status check_end(const loader *l)
{
    return l->in.ended ? tsr_status_set(TSR_ERROR_ARGUMENT, "%s: the bytes end inside it", l->place) : TSR_OK;
}

static tsr_status check_below(const loader *l, const char *what, uint32_t number, uint64_t limit)
{
    TSR_TRY(check_end(l));
    return number < limit ? TSR_OK
                          : tsr_status_set(TSR_ERROR_ARGUMENT, "%s: %s is %lu, but must be below %llu", l->place, what,
                                           (unsigned long)number, (unsigned long long)limit);
}

/* Refuses a list for which too few bytes are left. */
static tsr_status check_room(const loader *l, const char *what, int64_t count, size_t bytes)
{
    TSR_TRY(check_end(l));
    return count >= 0 && (uint64_t)count <= l->in.left / bytes
               ? TSR_OK
               : tsr_status_set(TSR_ERROR_ARGUMENT, "%s: %lld %s do not fit into the %zu bytes that follow", l->place,
                                (long long)count, what, l->in.left);
}

/* Passes on the failure of a call, whose sentence is this thread's last. */
static tsr_status tell(const loader *l, tsr_status status)
{
    tsr_kept_sentence kept;
    if (status == TSR_OK)
        return TSR_OK;
    tsr_status_keep(&kept);
    return tsr_status_set(status, "%s: %.800s", l->place, kept.text);
}

/* Passes on the program's first error. */
static tsr_status tell_program(const loader *l)
{
    const tsr_program *const program = l->program;
    return program->status == TSR_OK ? TSR_OK : tell(l, tsr_status_restore(&program->sentence, program->status));
}

static tsr_status load_layouts(loader *l)
{
    snprintf(l->place, sizeof l->place, "%s: the layouts", l->caller);
    const int64_t size = tsr_read_i64(&l->in);
    TSR_TRY(check_room(l, "bytes of layouts", size, 1));
    if (!size)
        return TSR_OK;
    return tell(
        l, tsr_plan_load(l->context, tsr_read_bytes(&l->in, (size_t)size), (size_t)size, TSR_RANK_NONE, &l->layouts));
}

static tsr_status load_lengths(loader *l)
{
    snprintf(l->place, sizeof l->place, "%s: the lengths", l->caller);
    const uint32_t count = tsr_read_u32(&l->in);
    TSR_TRY(check_below(l, "their number", count, TSR_LENGTHS + 1));
    for (uint32_t i = 0; i < count; i++) {
        const char *const name = tsr_read_text(&l->in);
        const int64_t maximum = tsr_read_i64(&l->in);
        TSR_TRY(check_end(l));
        (void)tsr_length(l->program, name, maximum);
        TSR_TRY(tell_program(l));
    }
    return TSR_OK;
}

static tsr_status load_keys(loader *l)
{
    snprintf(l->place, sizeof l->place, "%s: the keys", l->caller);
    const uint32_t count = tsr_read_u32(&l->in);
    TSR_TRY(check_below(l, "their number", count, TSR_RUN_KEYS + 1));
    for (uint32_t i = 0; i < count; i++) {
        const char *const name = tsr_read_text(&l->in);
        const uint32_t generator = tsr_read_u32(&l->in);
        TSR_TRY(check_below(l, "a generator", generator, TSR_RANDOM_PHILOX + 1));
        (void)tsr_run_key(l->program, name, (tsr_random_generator)generator);
        TSR_TRY(tell_program(l));
    }
    return TSR_OK;
}

/* A value that an earlier entry made; with `may_lack`, also none. */
static tsr_status read_value(loader *l, const char *what, bool may_lack, tsr_value *out)
{
    const uint32_t number = tsr_read_u32(&l->in);
    TSR_TRY(check_end(l));
    *out = TSR_NONE;
    if (may_lack && number == (uint32_t)TSR_NONE)
        return TSR_OK;
    TSR_TRY(check_below(l, what, number, l->program->value_count));
    *out = (tsr_value)number;
    return TSR_OK;
}

/* A value that an op reads: of a state the last. */
static tsr_status read_operand(loader *l, const char *what, bool may_lack, tsr_value *out)
{
    TSR_TRY(read_value(l, what, may_lack, out));
    if (*out == TSR_NONE)
        return TSR_OK;
    const tsr_program_value *const v = &l->program->values[*out];
    return v->kind != TSR_VALUE_STATE || tsr_program_now(l->program, v->first) == *out
               ? TSR_OK
               : tsr_status_set(TSR_ERROR_ARGUMENT, "%s: %s is value %d, over which a later value of the state lies",
                                l->place, what, *out);
}

/* The value `like` of an entry, which has the entry's shape. */
static tsr_status read_like(loader *l, const entry *e, bool may_lack, tsr_value *out)
{
    TSR_TRY(read_value(l, "the value of equal shape", may_lack, out));
    const tsr_layout *const own = e->layouts[0], *const other = tsr_value_layout(l->program, *out);
    if (!other)
        return TSR_OK;
    const int ndim = tsr_layout_ndim(own);
    if (tsr_layout_dtype(own) == tsr_layout_dtype(other) && ndim == tsr_layout_ndim(other) &&
        (!ndim || memcmp(tsr_layout_shape(own), tsr_layout_shape(other), (size_t)ndim * sizeof(int64_t)) == 0))
        return TSR_OK;
    return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: value %d has another shape or dtype", l->place, *out);
}

/* Records an input, whose placements are given as text. */
static tsr_status load_input(loader *l, const entry *e)
{
    int64_t shape[TSR_MAX_DIMS];
    void *memory;
    const tsr_layout *const layout = e->layouts[0];
    const int ndim = tsr_layout_ndim(layout);
    const char *const name = tsr_read_text(&l->in);
    for (int dim = 0; dim < ndim; dim++)
        shape[dim] = tsr_read_i64(&l->in);
    TSR_TRY(check_end(l));
    const size_t length = tsr_layout_print(layout, NULL, 0);
    TSR_TRY(tsr_allocate(l->context, length + 1, &memory));
    tsr_layout_print(layout, memory, length + 1);
    (void)tsr_input(l->program, name, tsr_layout_mesh(layout), tsr_layout_dtype(layout), ndim, shape, memory);
    tsr_release(l->context, memory);
    return TSR_OK;
}

static tsr_status load_named(loader *l, const entry *e)
{
    const char *const name = tsr_read_text(&l->in);
    TSR_TRY(check_end(l));
    if (e->kind == TSR_ENTRY_PARAMETER)
        (void)tsr_parameter(l->program, name, e->layouts[0]);
    else
        (void)tsr_state(l->program, name, e->layouts[0]);
    return TSR_OK;
}

static tsr_status load_constant(loader *l, const entry *e)
{
    tsr_value like;
    const double number = tsr_read_f64(&l->in);
    TSR_TRY(read_like(l, e, true, &like));
    const tsr_value made = tsr_constant(l->program, number, e->layouts[0]);
    if (made != TSR_NONE)
        l->program->values[made].like = like;
    return TSR_OK;
}

static tsr_status load_like(loader *l, const entry *e)
{
    tsr_value like, made;
    TSR_TRY(read_like(l, e, false, &like));
    for (int k = 0; k < tsr_mesh_ndim(tsr_layout_mesh(e->layouts[0])); k++)
        if (tsr_layout_placements(e->layouts[0])[k].kind == TSR_PARTIAL)
            return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: a value that is not read is Partial", l->place);
    TSR_TRY(tsr_program_add_value(l->program, TSR_VALUE_LIKE, (tsr_layout *)e->layouts[0], &made));
    l->program->values[made].like = like;
    return TSR_OK;
}

static tsr_status read_list(loader *l, tsr_attribute *out)
{
    const uint32_t count = tsr_read_u32(&l->in);
    TSR_TRY(check_below(l, "the number of a list's numbers", count, TSR_MAX_DIMS + 1));
    for (uint32_t i = 0; i < count; i++)
        out->list[i] = tsr_read_i64(&l->in);
    out->count = (int)count;
    return TSR_OK;
}

static tsr_status read_attribute(loader *l, tsr_attribute *out)
{
    *out = (tsr_attribute){.name = tsr_read_text(&l->in)};
    const uint32_t kind = tsr_read_u32(&l->in);
    TSR_TRY(check_below(l, "an attribute's kind", kind, TSR_ATTRIBUTE_TEXT + 1));
    out->kind = (tsr_attribute_kind)kind;
    if (kind == TSR_ATTRIBUTE_INTS)
        TSR_TRY(read_list(l, out));
    else if (kind == TSR_ATTRIBUTE_FLOAT)
        out->number = tsr_read_f64(&l->in);
    else if (kind == TSR_ATTRIBUTE_WORD || kind == TSR_ATTRIBUTE_TEXT)
        out->words = tsr_read_text(&l->in);
    else
        out->integer = tsr_read_i64(&l->in);
    return check_end(l);
}

static tsr_status read_operands(loader *l, const tsr_op *op, tsr_value *out)
{
    uint32_t wanted = 0;
    const uint32_t count = tsr_read_u32(&l->in);
    while (op->operands[wanted])
        wanted++;
    TSR_TRY(check_end(l));
    if (count != wanted)
        return tsr_status_set(TSR_ERROR_UNSUPPORTED, "%s: %s has %lu operands, but was saved with %lu", l->place,
                              op->name, (unsigned long)wanted, (unsigned long)count);
    for (int i = 0; op->operands[i]; i++)
        TSR_TRY(read_operand(l, op->operands[i], true, &out[i]));
    return TSR_OK;
}

/* The round in which a node is recorded: within one, equal nodes are shared. */
static tsr_status read_round(loader *l)
{
    const uint32_t round = tsr_read_u32(&l->in);
    TSR_TRY(check_below(l, "its round", round, INT_MAX));
    l->program->round = (int)round;
    return TSR_OK;
}

static tsr_status load_op(loader *l)
{
    const tsr_op *op;
    tsr_attribute attributes[TSR_OP_MOST_ATTRIBUTES];
    tsr_value operands[TSR_OP_MOST_OPERANDS], made[TSR_OP_MOST_RESULTS];
    TSR_TRY(read_round(l));
    const char *const name = tsr_read_text(&l->in);
    const uint32_t count = tsr_read_u32(&l->in);
    TSR_TRY(check_below(l, "the number of attributes", count, TSR_OP_MOST_ATTRIBUTES + 1));
    TSR_TRY(tell(l, tsr_op_find(l->context, name, &op)));
    if (op->moves_to)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: %s is not saved as an op, but as a move", l->place, op->name);
    for (uint32_t i = 0; i < count; i++)
        TSR_TRY(read_attribute(l, &attributes[i]));
    TSR_TRY(read_operands(l, op, operands));
    return tell(l, tsr_program_record_fitting(l->program, op, count, attributes, operands, made));
}

static tsr_status load_move(loader *l, const entry *e)
{
    tsr_value x;
    const size_t node = l->program->node_count;
    TSR_TRY(read_operand(l, "the value that is moved", false, &x));
    TSR_TRY(read_round(l));
    const uint32_t chosen = tsr_read_u32(&l->in), cause = tsr_read_u32(&l->in);
    TSR_TRY(check_end(l));
    (void)tsr_op_to_mesh(l->program, x, e->layouts[0]);
    if (l->program->node_count > node) {
        l->program->nodes[node].chosen = chosen != 0;
        l->program->nodes[node].cause = (int)cause;
    }
    return TSR_OK;
}

static tsr_status load_store(loader *l)
{
    tsr_value state, value, position;
    TSR_TRY(read_operand(l, "the state", false, &state));
    TSR_TRY(read_operand(l, "the value that is stored", false, &value));
    TSR_TRY(read_operand(l, "the position", true, &position));
    if (l->program->values[state].kind != TSR_VALUE_STATE)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: value %d is not a state", l->place, state);
    tsr_op_store(l->program, l->program->values[state].first, value, position);
    return TSR_OK;
}

static tsr_status load_kind(loader *l, const entry *e)
{
    switch (e->kind) {
    case TSR_ENTRY_INPUT:
        return load_input(l, e);
    case TSR_ENTRY_PARAMETER:
    case TSR_ENTRY_STATE:
        return load_named(l, e);
    case TSR_ENTRY_CONSTANT:
        return load_constant(l, e);
    case TSR_ENTRY_LIKE:
        return load_like(l, e);
    case TSR_ENTRY_OP:
        return load_op(l);
    case TSR_ENTRY_MOVE:
        return load_move(l, e);
    default:
        return load_store(l);
    }
}

static bool are_placed_alike(const tsr_layout *a, const tsr_layout *b)
{
    if (!tsr_op_are_layouts_equal(a, b))
        return false;
    for (int k = 0; k < tsr_mesh_ndim(tsr_layout_mesh(a)); k++)
        if (!tsr_placement_same(&tsr_layout_placements(a)[k], &tsr_layout_placements(b)[k]))
            return false;
    return true;
}

static tsr_status refuse_layout(const loader *l, const tsr_layout *made, const tsr_layout *saved)
{
    char ours[256], theirs[256];
    tsr_layout_print(made, ours, sizeof ours);
    tsr_layout_print(saved, theirs, sizeof theirs);
    return tsr_status_set(TSR_ERROR_UNSUPPORTED,
                          "%s: the value is \"%s\" by this library's rules, but was saved as \"%s\", or in another "
                          "shape or dtype: the program was saved by another version; record it again",
                          l->place, ours, theirs);
}

/* Gives a value what was saved of it beside what makes it. */
static tsr_status finish_value(const loader *l, tsr_program_value *v, const entry *e, uint32_t result)
{
    unsigned whole = 0;
    const tsr_layout *const layout = e->layouts[result];
    if (!are_placed_alike(v->layout, layout))
        return refuse_layout(l, v->layout, layout);
    for (int k = 0; k < tsr_mesh_ndim(tsr_layout_mesh(layout)); k++)
        whole |= tsr_layout_placements(layout)[k].kind == TSR_REPLICATE ? 1u << k : 0;
    if (e->varying[result] & ~whole)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: a value varies on mesh dims on which it is not Replicate",
                              l->place);
    tsr_layout_destroy(v->layout);
    v->layout = tsr_layout_retain((tsr_layout *)layout);
    v->varying = e->varying[result];
    v->again = e->again[result] && v->kind == TSR_VALUE_RESULT;
    return TSR_OK;
}

static tsr_status read_entry(loader *l, entry *e)
{
    const size_t layout_count = l->layouts ? tsr_plan_count(l->layouts) : 0;
    e->first = (tsr_value)l->program->value_count;
    e->kind = tsr_read_u32(&l->in);
    e->count = tsr_read_u32(&l->in);
    TSR_TRY(check_below(l, "its kind", e->kind, TSR_ENTRY_KINDS));
    TSR_TRY(check_below(l, "the number of its values", e->count, TSR_OP_MOST_RESULTS + 1));
    if (!e->count)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: it makes no value", l->place);
    for (uint32_t i = 0; i < e->count; i++) {
        const tsr_layout *to;
        const uint32_t number = tsr_read_u32(&l->in);
        e->varying[i] = tsr_read_u32(&l->in);
        e->again[i] = tsr_read_u32(&l->in) != 0;
        TSR_TRY(check_below(l, "a layout", number, layout_count));
        TSR_TRY(tsr_plan_layouts(l->layouts, number, &e->layouts[i], &to));
    }
    return TSR_OK;
}

static tsr_status load_entry(loader *l)
{
    entry e;
    tsr_program *const program = l->program;
    TSR_TRY(read_entry(l, &e));
    TSR_TRY(load_kind(l, &e));
    l->program->round = 0;
    TSR_TRY(tell_program(l));
    if (program->value_count != (size_t)e.first + e.count)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: it makes %zu values, but was saved with %lu", l->place,
                              program->value_count - (size_t)e.first, (unsigned long)e.count);
    for (uint32_t i = 0; i < e.count; i++)
        TSR_TRY(finish_value(l, &program->values[(size_t)e.first + i], &e, i));
    return TSR_OK;
}

/* The fewest bytes of an entry: a value with a name of one letter. */
#define LEAST_ENTRY_BYTES 22

static tsr_status load_entries(loader *l)
{
    snprintf(l->place, sizeof l->place, "%s: the entries", l->caller);
    const int64_t count = tsr_read_i64(&l->in);
    TSR_TRY(check_room(l, "entries", count, LEAST_ENTRY_BYTES));
    for (int64_t i = 0; i < count; i++) {
        snprintf(l->place, sizeof l->place, "%s: entry %lld", l->caller, (long long)i);
        TSR_TRY(load_entry(l));
    }
    for (size_t i = 0; i < l->program->node_count; i++) {
        const int cause = l->program->nodes[i].cause;
        if (cause < -1 || (cause >= 0 && (size_t)cause >= l->program->node_count))
            return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: op %zu is there for op %d, which is not", l->caller, i,
                                  cause);
    }
    return TSR_OK;
}

static tsr_status load_outputs(loader *l)
{
    snprintf(l->place, sizeof l->place, "%s: the outputs", l->caller);
    const uint32_t count = tsr_read_u32(&l->in);
    for (uint32_t i = 0; i < count; i++) {
        tsr_value value;
        const char *const name = tsr_read_text(&l->in);
        TSR_TRY(read_value(l, "a value", false, &value));
        const tsr_value_kind kind = l->program->values[value].kind;
        if (kind == TSR_VALUE_STATE || kind == TSR_VALUE_LIKE)
            return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: value %d cannot be an output", l->place, value);
        tsr_output(l->program, name, value, NULL);
        TSR_TRY(tell_program(l));
    }
    TSR_TRY(check_end(l));
    return l->in.left ? tsr_status_set(TSR_ERROR_ARGUMENT, "%s: %zu bytes follow the last one", l->place, l->in.left)
                      : TSR_OK;
}

/* Refuses a program that would not be saved as these bytes: a program has one form, so then the
 * bytes say something else. */
static tsr_status check_form(const loader *l, const void *bytes, size_t size)
{
    size_t own_size;
    tsr_writer writer = {.expected = bytes, .capacity = size};
    TSR_TRY(tsr_program_write(l->program, &writer, &own_size));
    if (!writer.differs && own_size == size)
        return TSR_OK;
    return tsr_status_set(TSR_ERROR_ARGUMENT,
                          "%s: the bytes are not those that tsr_program_save() writes of this program", l->caller);
}

static tsr_status load(loader *l, const void *bytes, size_t size)
{
    TSR_TRY(tsr_read_frame(l->caller, &tsr_program_frame, bytes, size, NULL, &l->in));
    TSR_TRY(load_layouts(l));
    TSR_TRY(load_lengths(l));
    TSR_TRY(load_keys(l));
    TSR_TRY(load_entries(l));
    TSR_TRY(load_outputs(l));
    return check_form(l, bytes, size);
}

tsr_status tsr_program_from_bytes(const char *caller, tsr_context *context, const void *bytes, size_t size,
                                  tsr_program **out)
{
    loader l = {.caller = caller, .context = context};
    TSR_TRY(tsr_program_create(context, &l.program));
    const tsr_status status = load(&l, bytes, size);
    tsr_plan_destroy(l.layouts);
    if (status == TSR_OK) {
        *out = l.program;
        return TSR_OK;
    }
    tsr_program_destroy(l.program);
    return status;
}

tsr_status tsr_program_load(tsr_context *context, const void *bytes, size_t size, tsr_program **out)
{
    if (!context || !bytes || !out)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "tsr_program_load: %s is NULL",
                              !context ? "context"
                              : bytes  ? "out"
                                       : "bytes");
    return tsr_program_from_bytes("tsr_program_load", context, bytes, size, out);
}
