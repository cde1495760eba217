#include "ops/answer.h"

#include "cli/report.h"

#include <tessera/explain.h>
#include <tessera/sys/status.h>

#include <stdlib.h>
#include <string.h>

/* What one move takes: bytes over all ranks, and seconds of the busiest. */
typedef struct cost {
    tsr_plan_sum bytes;
    double seconds;
} cost;

/* What a case takes: its moves, and what ranks exchange inside the op. */
typedef struct answer {
    const ops_case *c;
    bool moved[TSR_OP_MOST_OPERANDS];
    cost moves[TSR_OP_MOST_OPERANDS], result, exchange, all;
} answer;

static tsr_status survey(const tsr_layout *from, const tsr_layout *to, cost *out)
{
    tsr_plan *plan;
    tsr_plan_survey figures;
    tsr_plan_options options = TSR_PLAN_OPTIONS_INIT;
    options.rank = TSR_RANK_NONE;
    TSR_TRY(tsr_plan_create(from, to, &options, &plan));
    const tsr_status status = tsr_plan_survey_of(plan, &figures);
    if (status == TSR_OK)
        *out = (cost){figures.bytes_received, figures.seconds};
    tsr_plan_destroy(plan);
    return status;
}

/* Counts what ranks exchange inside the op, which the cost model takes for messages of equal
 * size. */
static tsr_status count_exchange(const ops_case *c, cost *out)
{
    int64_t coordinate[TSR_MAX_DIMS] = {0}, bytes;
    *out = (cost){{0, 0}, 0};
    do {
        TSR_TRY(tsr_op_exchange_bytes(c->op, (size_t)c->attribute_count, c->attributes,
                                      (const tsr_layout *const *)c->fitted, coordinate, &bytes));
        out->bytes.total += bytes;
        out->bytes.max = bytes > out->bytes.max ? bytes : out->bytes.max;
    } while (next_coordinate(c->mesh, coordinate));
    if (out->bytes.max > 0)
        out->seconds =
            tsr_context_exchange_seconds(tsr_mesh_context(c->mesh), tsr_mesh_count(c->mesh), 1, (double)out->bytes.max);
    return TSR_OK;
}

static void add(cost *all, const cost *one)
{
    all->bytes.max += one->bytes.max;
    all->bytes.total += one->bytes.total;
    all->seconds += one->seconds;
}

static tsr_status count(const ops_case *c, answer *a)
{
    *a = (answer){.c = c};
    for (int i = 0; i < c->operand_count; i++) {
        a->moved[i] = c->operands[i] && !tsr_layout_equal(c->operands[i], c->fitted[i]);
        if (a->moved[i])
            TSR_TRY(survey(c->operands[i], c->fitted[i], &a->moves[i]));
        add(&a->all, &a->moves[i]);
    }
    if (c->wanted)
        TSR_TRY(survey(c->results[0], c->wanted, &a->result));
    TSR_TRY(count_exchange(c, &a->exchange));
    if (c->info.moves) {
        a->moved[0] = true;
        TSR_TRY(survey(c->operands[0], c->results[0], &a->moves[0]));
        add(&a->all, &a->moves[0]);
    }
    add(&a->all, &a->result);
    add(&a->all, &a->exchange);
    return TSR_OK;
}

/* To where an operand that is moved goes. */
static const tsr_layout *target(const ops_case *c, int operand)
{
    return c->info.moves && operand == 0 ? c->results[0] : c->fitted[operand];
}

static json_t *sum_to_json(const tsr_plan_sum *sum)
{
    return json_pack("{sI sI}", "max", (json_int_t)sum->max, "total", (json_int_t)sum->total);
}

static json_t *layout_to_json(const tsr_layout *layout)
{
    if (!layout)
        return json_null();
    json_t *object = json_object();
    object = json_with_field(object, "shape", sizes_to_json(tsr_layout_shape(layout), tsr_layout_ndim(layout)));
    object = json_with_field(object, "dtype", json_string(tsr_dtype_name(tsr_layout_dtype(layout))));
    return json_with_field(object, "placements", placements_to_json(layout));
}

static json_t *layouts_to_json(tsr_layout *const *layouts, int count)
{
    json_t *array = json_array();
    for (int i = 0; i < count; i++)
        array = json_with_item(array, layout_to_json(layouts[i]));
    return array;
}

static json_t *move_to_json(const char *what, const char *name, const tsr_layout *from, const tsr_layout *to,
                            const cost *taken)
{
    json_t *object = json_object();
    object = json_with_field(object, what, json_string(name));
    object = json_with_field(object, "from", placements_to_json(from));
    object = json_with_field(object, "to", placements_to_json(to));
    return json_with_field(object, "bytes_received", sum_to_json(&taken->bytes));
}

static json_t *moves_to_json(const answer *a)
{
    const ops_case *const c = a->c;
    json_t *array = json_array();
    for (int i = 0; i < c->operand_count; i++) {
        if (a->moved[i])
            array = json_with_item(
                array, move_to_json("operand", c->info.operands[i], c->operands[i], target(c, i), &a->moves[i]));
    }
    if (a->exchange.bytes.total > 0)
        array = json_with_item(
            array, json_pack("{ss so}", "exchange", c->info.name, "bytes_received", sum_to_json(&a->exchange.bytes)));
    if (c->wanted && !tsr_layout_equal(c->results[0], c->wanted))
        array = json_with_item(array, move_to_json("result", c->info.results[0], c->results[0], c->wanted, &a->result));
    return array;
}

/* True if a gradient has a term on each rank where its operand has none of its own. */
static bool is_varying(const tsr_layout *operand, const tsr_layout *gradient)
{
    for (int k = 0; k < tsr_mesh_ndim(tsr_layout_mesh(operand)); k++) {
        if (tsr_layout_placements(operand)[k].kind == TSR_REPLICATE &&
            tsr_layout_placements(gradient)[k].kind == TSR_PARTIAL)
            return true;
    }
    return false;
}

static json_t *gradients_to_json(const ops_case *c)
{
    json_t *array = json_array();
    for (int i = 0; i < c->operand_count; i++) {
        if (!c->gradients[i])
            continue;
        json_t *object = json_object();
        object = json_with_field(object, "operand", json_string(c->info.operands[i]));
        object = json_with_field(object, "placements", placements_to_json(c->gradients[i]));
        object =
            json_with_field(object, "gradient", json_string(is_varying(c->fitted[i], c->gradients[i]) ? "P" : "R"));
        array = json_with_item(array, object);
    }
    return array;
}

/* Room for texts of Shardy. */
enum { SHARDY_BYTES = 4096 };

/* Writes the op's rule as Shardy has it, and what that leaves out; false if it cannot be
 * written. */
static bool write_shardy(const ops_case *c, char rule[SHARDY_BYTES], char lost[SHARDY_BYTES])
{
    const tsr_text_room whole = {rule, SHARDY_BYTES}, rest = {lost, SHARDY_BYTES};
    size_t rule_length = 0, lost_length = 0;
    const tsr_status status =
        tsr_op_sharding_rule(c->op, (size_t)c->attribute_count, c->attributes, (const tsr_layout *const *)c->fitted,
                             whole, rest, &rule_length, &lost_length);
    return status == TSR_OK && rule_length < SHARDY_BYTES && lost_length < SHARDY_BYTES;
}

/* Adds the rule for compilers; null for an op that redistributes. */
static json_t *with_shardy(const ops_case *c, json_t *object)
{
    char rule[SHARDY_BYTES], lost[SHARDY_BYTES];
    const bool written = write_shardy(c, rule, lost);
    object = json_with_field(object, "sdy", written ? json_string(rule) : json_null());
    return json_with_field(object, "sdy_lost", written ? json_string(lost) : json_null());
}

static json_t *answer_to_json(const answer *a)
{
    const ops_case *const c = a->c;
    int results = 0;
    while (c->results[results])
        results++;
    json_t *object = json_object();
    object = json_with_field(object, "op", json_string(c->info.name));
    object = json_with_field(object, "mesh", mesh_to_json(c->mesh));
    object = json_with_field(object, "operands", layouts_to_json(c->operands, c->operand_count));
    object = json_with_field(object, "results", layouts_to_json(c->results, results));
    object = json_with_field(object, "moves", moves_to_json(a));
    object = json_with_field(object, "gradients", gradients_to_json(c));
    object = json_with_field(object, "bytes_received", sum_to_json(&a->all.bytes));
    object = json_with_field(object, "seconds", json_real(a->all.seconds));
    return with_shardy(c, object);
}

static void say_layout(const char *name, const tsr_layout *layout, const char *behind)
{
    char shape[SHAPE_TEXT_BYTES];
    char *const text = layout ? layout_text(layout) : NULL;
    if (layout)
        print_shape(tsr_layout_ndim(layout), tsr_layout_shape(layout), shape);
    if (!layout)
        say("%s: left out\n", name);
    else if (!text)
        say_memory_is_short();
    else
        say("%s: %s %s \"%s\"%s\n", name, shape, tsr_dtype_name(tsr_layout_dtype(layout)), text, behind);
    free(text);
}

static void say_move(const char *name, const tsr_layout *to, const cost *taken)
{
    char *const text = layout_text(to);
    say("  %s moves to \"%s\": %lld bytes received, at most %lld by one rank, %.3g s\n", name, text ? text : "",
        (long long)taken->bytes.total, (long long)taken->bytes.max, taken->seconds);
    free(text);
}

static void say_answer(const answer *a)
{
    const ops_case *const c = a->c;
    for (int i = 0; i < c->operand_count; i++) {
        say_layout(c->info.operands[i], c->operands[i], "");
        if (a->moved[i])
            say_move(c->info.operands[i], target(c, i), &a->moves[i]);
    }
    if (a->exchange.bytes.total > 0)
        say("  ranks exchange %lld bytes inside %s, at most %lld received by one rank\n",
            (long long)a->exchange.bytes.total, c->info.name, (long long)a->exchange.bytes.max);
    for (int i = 0; c->results[i]; i++)
        say_layout(c->info.results[i], c->results[i], "");
    if (c->wanted && !tsr_layout_equal(c->results[0], c->wanted))
        say_move(c->info.results[0], c->wanted, &a->result);
    for (int i = 0; i < c->operand_count; i++) {
        char name[64];
        snprintf(name, sizeof name, "gradient of %s", c->info.operands[i]);
        if (c->gradients[i])
            say_layout(name, c->gradients[i], "");
    }
}

int ops_explain(const tool_arguments *given, const ops_case *c)
{
    answer a;
    if (count(c, &a) != TSR_OK)
        return complain_status(EXIT_REFUSED);
    if (given->value[OPT_JSON])
        return print_json(answer_to_json(&a));
    say_answer(&a);
    return EXIT_DONE;
}
