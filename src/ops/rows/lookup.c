/* Finds rows by name and by place. */
#include "ops/rows/lookup.h"

#include "ops/rows/rows.h"

#include <tessera/sys/attachment.h>
#include <tessera/sys/memory.h>
#include <tessera/sys/status.h>

#include <stdio.h>
#include <string.h>

_Static_assert(TSR_OP_MOST_OPERANDS == TSR_OP_OPERANDS && TSR_OP_MOST_RESULTS == TSR_OP_RESULTS,
               "rules and rows have as many operands");

/* All rows of the library, group by group. */
#define ROWS(group) tsr_rows_##group,
static const tsr_op *const groups[] = {TSR_ROW_GROUPS(ROWS)};
#undef ROWS

/* What a context keeps: its own rows, and where each name is found. */
typedef struct row_table {
    size_t own_count, slot_count; /* slots: a power of two, at least twice the rows */
    tsr_op *own;                  /* copies of the options' rows */
    const tsr_op *slots[];        /* by hash of the name, then onwards */
} row_table;

static const tsr_op *get_built_in(size_t index)
{
    for (size_t i = 0; i < sizeof groups / sizeof groups[0]; i++) {
        for (const tsr_op *row = groups[i]; row->name; row++) {
            if (index-- == 0)
                return row;
        }
    }
    return NULL;
}

static size_t count_built_in(void)
{
    size_t count = 0;
    while (get_built_in(count))
        count++;
    return count;
}

static bool has_name(const tsr_op *row, const char *name, size_t length)
{
    return strncmp(row->name, name, length) == 0 && !row->name[length];
}

static const tsr_op *find_built_in(const char *name, size_t length)
{
    for (size_t i = 0; i < sizeof groups / sizeof groups[0]; i++) {
        for (const tsr_op *row = groups[i]; row->name; row++) {
            if (has_name(row, name, length))
                return row;
        }
    }
    return NULL;
}

static size_t hash_name(const char *name, size_t length)
{
    uint32_t hash = 2166136261u;
    for (size_t i = 0; i < length; i++)
        hash = (hash ^ (unsigned char)name[i]) * 16777619u;
    return hash ^ hash >> 15;
}

/* The slot of a row with that name, or the free one where it would be. */
static const tsr_op **find_slot(row_table *table, const char *name, size_t length)
{
    size_t at = hash_name(name, length) & (table->slot_count - 1);
    while (table->slots[at] && !has_name(table->slots[at], name, length))
        at = (at + 1) & (table->slot_count - 1);
    return &table->slots[at];
}

/* True if a mark of the rule lets ranks meet inside the op. */
static bool exchanges(const tsr_op_rule *rule)
{
    bool found = rule->ellipsis.exchange;
    for (int i = 0; i < rule->factor_count; i++)
        found |= rule->marks[i].exchange;
    return found;
}

/* Checks that a row has as many tensors, and as much of a kernel, as its rule says. */
static tsr_status check_counts(const tsr_op *row, const tsr_op_rule *rule)
{
    int operands = 0, results = 0;
    while (row->operands[operands])
        operands++;
    while (row->results[results])
        results++;
    if (operands != rule->operand_count || results != rule->result_count)
        return tsr_status_set(
            TSR_ERROR_ARGUMENT,
            "tsr_context_options.ops: %s: the rule \"%s\" has %d operands and %d results, but the row "
            "names %d and %d",
            row->name, row->rule, rule->operand_count, rule->result_count, operands, results);
    if (exchanges(rule) == (row->exchanges > 0))
        return TSR_OK;
    return tsr_status_set(TSR_ERROR_ARGUMENT, "tsr_context_options.ops: %s: the rule \"%s\" %s, but exchanges is %d",
                          row->name, row->rule, row->exchanges ? "exchanges nothing" : "exchanges a factor",
                          row->exchanges);
}

/* Checks a row of a program. */
static tsr_status check_row(const tsr_op *row, size_t index)
{
    tsr_op_rule rule;
    if (!row || !row->name)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "tsr_context_options.ops: row %zu has no name", index);
    if (row->size != sizeof *row)
        return tsr_status_set(TSR_ERROR_ARGUMENT,
                              "tsr_context_options.ops: %s: size is %zu, but must be sizeof(struct tsr_op), %zu",
                              row->name, row->size, sizeof *row);
    const char *const missing = !row->rule                             ? "rule"
                                : !row->check                          ? "check"
                                : !row->host && !row->moves_to         ? "host"
                                : !row->results[0]                     ? "results"
                                : row->exchanges && !row->record_bytes ? "record_bytes"
                                                                       : NULL;
    if (missing)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "tsr_context_options.ops: %s has no %s", row->name, missing);
    if (find_built_in(row->name, strlen(row->name)))
        return tsr_status_set(TSR_ERROR_ARGUMENT, "tsr_context_options.ops: %s is an op of the library", row->name);
    if (!row->operands[0] || (row->optional & 1))
        return tsr_status_set(TSR_ERROR_ARGUMENT,
                              "tsr_context_options.ops: %s has no first operand that is always given", row->name);
    if (row->passes && (row->results[1] || !row->host))
        return tsr_status_set(TSR_ERROR_ARGUMENT,
                              "tsr_context_options.ops: %s passes its first operand, so it must have one result and a "
                              "host kernel",
                              row->name);
    if (row->rule_of || row->moves_to)
        return TSR_OK;
    if (tsr_op_rule_parse(row->rule, &rule) != TSR_OK)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "tsr_context_options.ops: %s: %s", row->name, tsr_status_message());
    return check_counts(row, &rule);
}

static void add_row(row_table *table, const tsr_op *row)
{
    *find_slot(table, row->name, strlen(row->name)) = row;
}

/* Copies the context's rows, and finds a place for each name. */
static tsr_status fill_table(tsr_context *context, row_table *table)
{
    const struct tsr_op *const *const rows = tsr_context_ops(context, &table->own_count);
    for (size_t i = 0; get_built_in(i); i++)
        add_row(table, get_built_in(i));
    for (size_t i = 0; i < table->own_count; i++) {
        TSR_TRY(check_row(rows[i], i));
        if (*find_slot(table, rows[i]->name, strlen(rows[i]->name)))
            return tsr_status_set(TSR_ERROR_ARGUMENT, "tsr_context_options.ops: two rows are called %s", rows[i]->name);
        table->own[i] = *rows[i];
        add_row(table, &table->own[i]);
    }
    return TSR_OK;
}

static tsr_status make_table(tsr_context *context, void **out)
{
    size_t own, slots = 64;
    void *memory;
    tsr_context_ops(context, &own);
    while (slots < 2 * (own + count_built_in()))
        slots *= 2;
    const size_t bytes = sizeof(row_table) + slots * sizeof(tsr_op *);
    TSR_TRY(tsr_allocate(context, bytes + own * sizeof(tsr_op), &memory));
    row_table *const table = memset(memory, 0, bytes);
    table->slot_count = slots;
    table->own = (tsr_op *)(void *)((char *)memory + bytes);
    const tsr_status status = fill_table(context, table);
    if (status == TSR_OK)
        *out = table;
    else
        tsr_release(context, table);
    return status;
}

static void destroy_table(tsr_context *context, void *made)
{
    tsr_release(context, made);
}

static tsr_status find_table(tsr_context *context, row_table **out)
{
    static const tsr_attachment_kind kind = {make_table, destroy_table};
    void *made;
    TSR_TRY(tsr_context_attachment(context, &kind, &made));
    *out = made;
    return TSR_OK;
}

const tsr_op *tsr_op_lookup(tsr_context *context, const char *name, size_t length)
{
    row_table *table;
    if (!context || find_table(context, &table) != TSR_OK)
        return find_built_in(name, length);
    return *find_slot(table, name, length);
}

const tsr_op *tsr_op_get(tsr_context *context, size_t index)
{
    row_table *table;
    const tsr_op *const built_in = get_built_in(index);
    if (built_in || !context || find_table(context, &table) != TSR_OK)
        return built_in;
    const size_t own = index - count_built_in();
    return own < table->own_count ? &table->own[own] : NULL;
}

/* Names of PyTorch and NumPy, and what has them here (docs/pytorch-ops.md). */
static const struct {
    const char *name, *ours;
} known[] = {
    {"mm", "matmul"},
    {"bmm", "matmul"},
    {"dot", "matmul"},
    {"mv", "matmul"},
    {"addmm", "linear, or add of a matmul"},
    {"baddbmm", "add of a matmul"},
    {"cat", "concat"},
    {"concatenate", "concat"},
    {"vstack", "concat"},
    {"hstack", "concat"},
    {"stack", "tsr_stack()"},
    {"split", "tsr_split()"},
    {"chunk", "tsr_split()"},
    {"sum_to_size", "sum_to"},
    {"amax", "max"},
    {"amin", "min"},
    {"view", "reshape"},
    {"flatten", "reshape"},
    {"ravel", "reshape"},
    {"t", "transpose"},
    {"swapaxes", "transpose"},
    {"movedim", "permute"},
    {"expand_dims", "unsqueeze"},
    {"broadcast_to", "expand"},
    {"repeat", "unsqueeze, expand and reshape"},
    {"select", "narrow and squeeze"},
    {"take", "index_select"},
    {"subtract", "sub"},
    {"multiply", "mul"},
    {"divide", "div"},
    {"true_divide", "div"},
    {"negative", "neg"},
    {"absolute", "abs"},
    {"power", "pow"},
    {"clip", "clamp"},
    {"astype", "cast"},
    {"to", "cast for another dtype, redistribute for another layout"},
    {"scaled_dot_product_attention", "attention"},
    {"nll_loss", "cross_entropy, of logits"},
    {"swish", "silu"},
};

static tsr_status refuse_known(const char *name, const char *ours)
{
    return tsr_status_set(TSR_ERROR_ARGUMENT, "no op is called \"%.64s\"; use %s", name, ours);
}

/* Names another name for the op, or those that begin as `name` does, of which there are few. */
static tsr_status refuse_name(tsr_context *context, const char *name)
{
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (strcmp(name, known[i].name) == 0)
            return refuse_known(name, known[i].ours);
    }
    char names[256] = "";
    size_t length = 0;
    for (size_t i = 0; tsr_op_get(context, i) && length < sizeof names; i++) {
        const char *const other = tsr_op_get(context, i)->name;
        if (strncmp(name, other, 2) == 0)
            length += (size_t)snprintf(names + length, sizeof names - length, "%s%s", length ? ", " : "", other);
    }
    return tsr_status_set(TSR_ERROR_ARGUMENT, "no op is called \"%.64s\"%s%s; tsr_op_get() lists all", name,
                          length ? "; there are " : "", names);
}

tsr_status tsr_op_find(tsr_context *context, const char *name, const tsr_op **out)
{
    row_table *table;
    if (!name || !out)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "tsr_op_find: %s is NULL", name ? "out" : "name");
    if (context)
        TSR_TRY(find_table(context, &table));
    const tsr_op *const op = tsr_op_lookup(context, name, strlen(name));
    if (op) {
        *out = op;
        return TSR_OK;
    }
    return refuse_name(context, name);
}
