#include "cli/report.h"
#include "program/count.h"

static json_t *sum_to_json(const program_count *c, const tsr_plan_sum *sum)
{
    json_t *object = json_object();
    object = json_with_field(object, "max", json_integer(sum->max));
    return json_with_field(object, "total", c->has_totals ? json_integer(sum->total) : json_null());
}

static json_t *name_to_json(const program_count *c, tsr_value value)
{
    char name[VALUE_NAME_BYTES];
    if (value == TSR_NONE)
        return json_null();
    print_value(c->request->program, value, name);
    return json_string(name);
}

static json_t *names_to_json(const program_count *c, const tsr_value *values, int count)
{
    json_t *array = json_array();
    for (int i = 0; i < count; i++)
        array = json_with_item(array, name_to_json(c, values[i]));
    return array;
}

static json_t *step_to_json(const program_count *c, const program_step *step)
{
    const tsr_executable_step *const what = &step->what;
    json_t *object = json_object(), *placements = json_array(), *gradients = json_array();
    for (int i = 0; i < what->result_count; i++) {
        placements = json_with_item(placements, placements_to_json(what->result_layouts[i]));
        gradients =
            json_with_item(gradients, json_string(is_varying(c->request->program, what->results[i]) ? "P" : "R"));
    }
    object = json_with_field(object, "op", json_string(what->op));
    object = json_with_field(object, "inputs", names_to_json(c, what->operands, what->operand_count));
    object = json_with_field(object, "outputs", names_to_json(c, what->results, what->result_count));
    object = json_with_field(object, "placements", placements);
    object = json_with_field(object, "gradient", gradients);
    object = json_with_field(object, "bytes_received", sum_to_json(c, &step->bytes));
    object = json_with_field(object, "view", json_boolean(what->is_view));
    object = json_with_field(object, "group", what->group < 0 ? json_null() : json_integer(what->group));
    return json_with_field(object, "seconds", json_real(step->seconds));
}

/* `before` is the index, among the ops, of the one that it comes before. */
static json_t *move_to_json(const program_count *c, const program_step *step, size_t before)
{
    const tsr_executable_step *const what = &step->what;
    json_t *object = json_object();
    object = json_with_field(object, "value", name_to_json(c, what->operands[0]));
    object = json_with_field(object, "from", placements_to_json(what->operand_layouts[0]));
    object = json_with_field(object, "to", placements_to_json(what->result_layouts[0]));
    object = json_with_field(object, "output", name_to_json(c, what->results[0]));
    object = json_with_field(object, "before", json_integer((json_int_t)before));
    object = json_with_field(object, "shares", json_boolean(what->shares));
    object = json_with_field(object, "cause", what->cause ? json_string(what->cause) : json_null());
    object = json_with_field(object, "bytes_received", sum_to_json(c, &step->bytes));
    return json_with_field(object, "seconds", json_real(step->seconds));
}

/* What the memory of the rank that has most is for; all fields but the last add up to
 * peak_bytes. */
static json_t *memory_to_json(const tsr_executable_memory *m)
{
    memory_part parts[MEMORY_PARTS];
    json_t *object = json_object();
    memory_parts(m, parts);
    for (size_t i = 0; i < MEMORY_PARTS; i++)
        object = json_with_field(object, parts[i].name, json_integer((json_int_t)parts[i].bytes));
    return json_with_field(object, "executable", json_integer((json_int_t)m->kept));
}

static json_t *answer_to_json(const program_count *c)
{
    json_t *object = json_object(), *ops = json_array(), *moves = json_array(), *peak = json_object();
    json_t *flops = json_object();
    for (size_t i = 0; i < c->count; i++) {
        if (is_move(&c->steps[i].what))
            moves = json_with_item(moves, move_to_json(c, &c->steps[i], json_array_size(ops)));
        else
            ops = json_with_item(ops, step_to_json(c, &c->steps[i]));
    }
    peak = json_with_field(peak, "max", json_integer(c->peak_bytes));
    flops = json_with_field(flops, "max", json_integer(c->flops));
    object = json_with_field(object, "mesh", mesh_to_json(c->request->mesh));
    if (c->request->one_rank)
        object = json_with_field(object, "rank", json_integer(c->request->rank));
    object = json_with_field(object, "ops", ops);
    object = json_with_field(object, "moves", moves);
    object = json_with_field(object, "bytes_received", sum_to_json(c, &c->bytes));
    object = json_with_field(object, "peak_bytes", peak);
    object = json_with_field(object, "memory", memory_to_json(&c->memory));
    object = json_with_field(object, "flops", flops);
    return json_with_field(object, "seconds", json_real(c->seconds));
}

int program_to_json(const program_count *c, text_buffer *to)
{
    return write_json(answer_to_json(c), to);
}
