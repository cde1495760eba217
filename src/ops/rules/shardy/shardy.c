#include "ops/rules/shardy/shardy.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Letters of factors before z_1. */
#define LETTERS 18
/* The most factors: each dim may have one of its own beside those of compounds. */
#define MOST (TSR_OP_FACTORS + (TSR_OP_OPERANDS + TSR_OP_RESULTS) * TSR_MAX_DIMS)

void tsr_shardy_append(tsr_shardy_text *text, const char *format, ...)
{
    va_list arguments;
    const size_t room = text->length < text->capacity ? text->capacity - text->length : 0;
    va_start(arguments, format);
    const int length = vsnprintf(room ? text->text + text->length : NULL, room, format, arguments);
    va_end(arguments);
    text->length += length > 0 ? (size_t)length : 0;
}

typedef enum factor_set { PASSES = 0, REDUCED, REPLICATED, PERMUTED } factor_set;

/* Factors in the order in which Shardy names them. */
typedef struct writing {
    const tsr_op_form *form;
    tsr_shardy_text *out, *lost;
    int count, number[TSR_OP_FACTORS]; /* Shardy's number + 1 of a factor; 0: none yet */
    int64_t size[MOST];
    factor_set set[MOST];
} writing;

static const char *name_factor(int number, char text[16])
{
    if (number < LETTERS)
        snprintf(text, 16, "%c", 'i' + number);
    else
        snprintf(text, 16, "z_%d", number - LETTERS + 1);
    return text;
}

static void say_lost(writing *w, const char *what, const char *factor)
{
    tsr_shardy_append(w->lost, "%s%s %s", w->lost->length ? "; " : "", factor, what);
}

/* The set of a factor; says what is lost. */
static factor_set choose_set(writing *w, int number, const tsr_op_marks *marks)
{
    char name[16];
    name_factor(number, name);
    if (marks->exchange) {
        say_lost(w, "is exchanged between ranks inside the op, but Shardy must replicate it", name);
        return REPLICATED;
    }
    if (marks->whole)
        return REPLICATED;
    if (marks->permute)
        return PERMUTED;
    if (marks->reduces && marks->reduction != TSR_SUM) {
        tsr_shardy_append(w->lost, "%s%s is reduced by %s, but Shardy reduces by sum alone, so it must replicate it",
                          w->lost->length ? "; " : "", name, tsr_reduce_op_name(marks->reduction));
        return REPLICATED;
    }
    if (marks->positional)
        say_lost(w, "is given to the op as global intervals, which Shardy does not tell", name);
    return marks->reduces ? REDUCED : PASSES;
}

/* A factor that one tensor's dim has alone. */
static int add_own(writing *w, int64_t size, factor_set set)
{
    w->size[w->count] = size;
    w->set[w->count] = set;
    return w->count++;
}

/* Shardy's number of a factor. */
static int number_factor(writing *w, int factor)
{
    if (w->number[factor] == 0) {
        const int number = add_own(w, w->form->size[factor], PASSES);
        w->number[factor] = number + 1;
        w->set[number] = choose_set(w, number, &w->form->marks[factor]);
    }
    return w->number[factor] - 1;
}

/* Writes one dim of a tensor, of `size`. */
static void write_dim(writing *w, int factor, int64_t size)
{
    char name[16];
    int factors[TSR_MAX_DIMS];
    const int count = tsr_op_form_factors(w->form, factor, factors);
    const bool same = tsr_op_form_size(w->form, factor) == size;
    if (count == 0 || (!same && w->form->marks[factors[0]].whole)) {
        tsr_shardy_append(w->out, "%s", name_factor(add_own(w, size, REPLICATED), name));
        return;
    }
    for (int i = 0; i < count; i++)
        tsr_shardy_append(w->out, "%s", name_factor(number_factor(w, factors[i]), name));
}

static void write_tensor(writing *w, const tsr_op_dims *dims, const int64_t *shape, bool first)
{
    tsr_shardy_append(w->out, first ? "[" : ", [");
    for (int dim = 0; dim < dims->ndim; dim++) {
        tsr_shardy_append(w->out, dim ? ", " : "");
        write_dim(w, dims->factor[dim], shape[dim]);
    }
    tsr_shardy_append(w->out, "]");
}

static void write_set(writing *w, const char *name, factor_set set)
{
    char factor[16];
    bool any = false;
    for (int i = 0; i < w->count; i++) {
        if (w->set[i] != set)
            continue;
        tsr_shardy_append(w->out, "%s%s%s%s", any ? "" : " ", any ? "" : name, any ? ", " : "={",
                          name_factor(i, factor));
        any = true;
    }
    tsr_shardy_append(w->out, any ? "}" : "");
}

/* Says what the operands' placements lose. */
static void lose_placements(writing *w, const tsr_op_names *names, const tsr_layout *const *operands)
{
    for (int i = 0; i < w->form->rule->operand_count; i++) {
        bool plain = true;
        char text[128];
        for (int k = 0; operands[i] && k < tsr_mesh_ndim(tsr_layout_mesh(operands[i])); k++) {
            tsr_placement p = tsr_layout_placements(operands[i])[k];
            const bool partial = p.kind == TSR_PARTIAL;
            p.dim = 0;
            plain = plain && !partial &&
                    (p.kind == TSR_REPLICATE || tsr_placement_same(&p, &(tsr_placement){.kind = TSR_SHARD}));
        }
        if (plain)
            continue;
        tsr_layout_print(operands[i], text, sizeof text);
        tsr_shardy_append(w->lost, "%s%s is \"%s\", but Shardy cuts in chunks alone, and has no Partial",
                          w->lost->length ? "; " : "", names->operands[i], text);
    }
}

static void lose_marks(writing *w, const tsr_op_names *names)
{
    const tsr_op_rule *const rule = w->form->rule;
    bool reduces = false;
    for (int i = 0; i < w->count; i++)
        reduces = reduces || w->set[i] == REDUCED;
    for (int i = 0; i < rule->operand_count; i++) {
        if (w->form->operands[i].present && w->form->operands[i].added && reduces)
            say_lost(w, "is added once, but under Shardy by each rank that has a term of the sum", names->operands[i]);
    }
    if (rule->linear_count || rule->monotone || rule->antitone)
        say_lost(w, "marks of Partial operands (linear, monotone, antitone) are not said", "the");
}

void tsr_shardy_write(const tsr_op_form *form, const tsr_op_names *names, const tsr_layout *const *operands,
                      const int64_t (*shapes)[TSR_MAX_DIMS], tsr_shardy_text *out, tsr_shardy_text *lost)
{
    char name[16];
    bool first = true;
    writing w = {.form = form, .out = out, .lost = lost};
    tsr_shardy_append(out, "#sdy.op_sharding_rule<(");
    for (int i = 0; i < form->rule->operand_count; i++) {
        if (!form->operands[i].present)
            continue;
        write_tensor(&w, &form->operands[i], tsr_layout_shape(operands[i]), first);
        first = false;
    }
    tsr_shardy_append(out, ")->(");
    for (int i = 0; i < form->rule->result_count; i++)
        write_tensor(&w, &form->results[i], shapes[i], i == 0);
    tsr_shardy_append(out, ")");
    for (int i = 0; i < w.count; i++)
        tsr_shardy_append(out, "%s%s=%lld", i ? ", " : " {", name_factor(i, name), (long long)w.size[i]);
    tsr_shardy_append(out, w.count ? "}" : "");
    write_set(&w, "reduction", REDUCED);
    write_set(&w, "need_replication", REPLICATED);
    write_set(&w, "permutation", PERMUTED);
    if (form->sizes_vary)
        write_set(&w, "blocked_propagation", PERMUTED);
    tsr_shardy_append(out, ", custom>");
    lose_marks(&w, names);
    lose_placements(&w, names, operands);
}
