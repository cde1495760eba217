#include "ops/case.h"

#include <tessera/sys/status.h>

#include <stdlib.h>
#include <string.h>

int ops_find(const char *name, const tsr_op **out)
{
    return tsr_op_find(NULL, name, out) == TSR_OK ? EXIT_DONE : complain_status(EXIT_USAGE);
}

/* Copies the text up to `end` on the heap. */
static char *copy_until(const char *text, const char *end)
{
    char *const copy = malloc((size_t)(end - text) + 1);
    if (copy) {
        memcpy(copy, text, (size_t)(end - text));
        copy[end - text] = '\0';
    }
    return copy;
}

/* Reads SHAPE and DTYPE, whose texts are on the heap, and the placements. */
static int read_parts(const ops_case *c, char *shape_text, char *dtype_text, const char *placements, tsr_layout **out)
{
    tensor_shape shape;
    tsr_dtype dtype;
    if (!shape_text || !dtype_text)
        return complain(EXIT_REFUSED, "there is no memory for an operand");
    int status = parse_shape(shape_text, &shape);
    if (status == EXIT_DONE)
        status = parse_dtype_of("--operand", dtype_text, &dtype);
    if (status == EXIT_DONE)
        status = check_placements("--operand", placements);
    return status == EXIT_DONE ? parse_layout("--operand", placements, c->mesh, &shape, dtype, out) : status;
}

/* Reads "4x8:f32:S(0),R" or "none". */
static int read_operand(const ops_case *c, const char *text, tsr_layout **out)
{
    if (strcmp(text, "none") == 0)
        return EXIT_DONE;
    const char *const first = strchr(text, ':'), *const second = first ? strchr(first + 1, ':') : NULL;
    if (!second)
        return complain(EXIT_USAGE, "--operand '%s' is not SHAPE:DTYPE:PLACEMENTS, as 4x8:f32:S(0),R, or none", text);
    char *const shape = copy_until(text, first), *const dtype = copy_until(first + 1, second);
    const int status = read_parts(c, shape, dtype, second + 1, out);
    free(shape);
    free(dtype);
    return status;
}

static int read_operands(const tool_arguments *given, ops_case *c)
{
    int count = 0;
    while (c->info.operands[c->operand_count])
        c->operand_count++;
    for (int i = 0; i < given->given_count; i++) {
        if (given->given[i].option != OPT_OPERAND)
            continue;
        if (count == c->operand_count)
            return complain(EXIT_USAGE, "%s has %d operand%s, but --operand is given more often", c->info.name,
                            c->operand_count, c->operand_count == 1 ? "" : "s");
        const int status = read_operand(c, given->given[i].value, &c->operands[count++]);
        if (status != EXIT_DONE)
            return status;
    }
    return EXIT_DONE;
}

/* Reads "2,0,1", "4x6" or "": numbers apart by commas or x. */
static int read_list(const char *name, const char *text, tsr_attribute *out)
{
    int64_t numbers[TSR_MAX_DIMS];
    int count = 0;
    for (const char *at = text; *at && strcmp(text, "scalar") != 0; at += *at == ',' || *at == 'x') {
        char *end;
        if (count == TSR_MAX_DIMS)
            return complain(EXIT_USAGE, "--attribute %s has more than %d numbers", name, TSR_MAX_DIMS);
        numbers[count++] = strtoll(at, &end, 10);
        if (end == at || (*end && *end != ',' && *end != 'x'))
            return complain(EXIT_USAGE, "--attribute %s: '%s' is not a list of numbers, as 2,0,1 or 4x6", name, text);
        at = end;
    }
    *out = tsr_attribute_ints(name, count, numbers);
    return EXIT_DONE;
}

static int read_value(const tsr_attribute *row, const char *text, tsr_attribute *out)
{
    char *end;
    *out = (tsr_attribute){.name = row->name, .kind = row->kind};
    switch (row->kind) {
    case TSR_ATTRIBUTE_INT:
        out->integer = strtoll(text, &end, 10);
        return *text && !*end ? EXIT_DONE
                              : complain(EXIT_USAGE, "--attribute %s: '%s' is not a number", row->name, text);
    case TSR_ATTRIBUTE_FLOAT:
        out->number = strtod(text, &end);
        return *text && !*end ? EXIT_DONE
                              : complain(EXIT_USAGE, "--attribute %s: '%s' is not a number", row->name, text);
    case TSR_ATTRIBUTE_DTYPE: {
        tsr_dtype dtype;
        const int status = parse_dtype_of("--attribute", text, &dtype);
        out->integer = dtype;
        return status;
    }
    case TSR_ATTRIBUTE_INTS:
        return read_list(row->name, text, out);
    default:
        out->words = text;
        return EXIT_DONE;
    }
}

static int read_attribute(ops_case *c, const char *text)
{
    const char *const value = strchr(text, '=');
    const size_t length = value ? (size_t)(value - text) : strlen(text);
    int i = 0;
    while (c->info.attributes[i].name &&
           (strncmp(c->info.attributes[i].name, text, length) != 0 || c->info.attributes[i].name[length]))
        i++;
    if (!value)
        return complain(EXIT_USAGE, "--attribute '%s' is not NAME=VALUE", text);
    if (!c->info.attributes[i].name)
        return complain(EXIT_REFUSED, "%s has no attribute %.*s; 'tessera ops %s' lists them", c->info.name,
                        (int)length, text, c->info.name);
    if (c->attribute_count == TSR_OP_MOST_ATTRIBUTES)
        return complain(EXIT_USAGE, "--attribute is given more than %d times", TSR_OP_MOST_ATTRIBUTES);
    return read_value(&c->info.attributes[i], value + 1, &c->attributes[c->attribute_count++]);
}

static int read_attributes(const tool_arguments *given, ops_case *c)
{
    for (int i = 0; i < given->given_count; i++) {
        const int status =
            given->given[i].option == OPT_ATTRIBUTE ? read_attribute(c, given->given[i].value) : EXIT_DONE;
        if (status != EXIT_DONE)
            return status;
    }
    return EXIT_DONE;
}

/* Finds the layouts of results for operands that the rule takes. */
static tsr_status infer(ops_case *c)
{
    const tsr_layout *layouts[TSR_OP_MOST_OPERANDS];
    TSR_TRY(tsr_op_settle(c->op, (size_t)c->attribute_count, c->attributes, (const tsr_layout *const *)c->operands,
                          c->policy, 0, c->fitted));
    for (int i = 0; i < TSR_OP_MOST_OPERANDS; i++)
        layouts[i] = c->fitted[i];
    return tsr_op_propagate(c->op, (size_t)c->attribute_count, c->attributes, layouts, c->results);
}

/* True if the result has a gradient, and so perhaps operands. */
static bool has_gradient(const ops_case *c)
{
    tsr_layout *gradient;
    const tsr_layout *layouts[TSR_OP_MOST_OPERANDS];
    for (int i = 0; i < TSR_OP_MOST_OPERANDS; i++)
        layouts[i] = c->fitted[i];
    if (!c->info.has_gradient || tsr_dtype_get(tsr_layout_dtype(c->results[0]))->kind != TSR_CLASS_FLOAT ||
        tsr_op_gradient_layout(c->op, (size_t)c->attribute_count, c->attributes, layouts, &gradient) != TSR_OK)
        return false;
    tsr_layout_destroy(gradient);
    return true;
}

/* The layouts of the operands' gradients, one operand after the other, since some have none. */
static tsr_status infer_gradients(ops_case *c)
{
    const tsr_layout *layouts[TSR_OP_MOST_OPERANDS];
    for (int i = 0; i < TSR_OP_MOST_OPERANDS; i++)
        layouts[i] = c->fitted[i];
    for (int i = 0; i < c->operand_count && has_gradient(c); i++) {
        bool wanted[TSR_OP_MOST_OPERANDS] = {false};
        tsr_layout *found[TSR_OP_MOST_OPERANDS] = {NULL};
        if (!c->fitted[i] || tsr_dtype_get(tsr_layout_dtype(c->fitted[i]))->kind != TSR_CLASS_FLOAT)
            continue;
        wanted[i] = true;
        const tsr_status status =
            tsr_op_propagate_gradients(c->op, (size_t)c->attribute_count, c->attributes, layouts, NULL, wanted, found);
        if (status != TSR_OK && status != TSR_ERROR_UNSUPPORTED)
            return status;
        c->gradients[i] = found[i];
    }
    return TSR_OK;
}

static int read_result(const char *text, ops_case *c)
{
    if (!text)
        return EXIT_DONE;
    tensor_shape shape = {.ndim = tsr_layout_ndim(c->results[0])};
    if (shape.ndim)
        memcpy(shape.size, tsr_layout_shape(c->results[0]), (size_t)shape.ndim * sizeof shape.size[0]);
    const int status = check_placements("--result", text);
    return status == EXIT_DONE
               ? parse_layout("--result", text, c->mesh, &shape, tsr_layout_dtype(c->results[0]), &c->wanted)
               : status;
}

int ops_case_make(const tool_arguments *given, ops_case *out)
{
    *out = (ops_case){.op = NULL};
    int status = ops_find(given->operand[0], &out->op);
    if (status == EXIT_DONE)
        tsr_op_describe(out->op, &out->info);
    if (status == EXIT_DONE)
        status = parse_policy(given->value[OPT_POLICY], &out->policy);
    if (status == EXIT_DONE)
        status = parse_mesh(given->value[OPT_MESH], &out->mesh);
    if (status == EXIT_DONE)
        status = read_operands(given, out);
    if (status == EXIT_DONE)
        status = read_attributes(given, out);
    if (status == EXIT_DONE && infer(out) != TSR_OK)
        status = complain_status(EXIT_REFUSED);
    if (status == EXIT_DONE && infer_gradients(out) != TSR_OK)
        status = complain_status(EXIT_REFUSED);
    return status == EXIT_DONE ? read_result(given->value[OPT_RESULT], out) : status;
}

void ops_case_finish(ops_case *c)
{
    for (int i = 0; i < TSR_OP_MOST_OPERANDS; i++) {
        tsr_layout_destroy(c->operands[i]);
        tsr_layout_destroy(c->fitted[i]);
        tsr_layout_destroy(c->gradients[i]);
    }
    for (int i = 0; i < TSR_OP_MOST_RESULTS; i++)
        tsr_layout_destroy(c->results[i]);
    tsr_layout_destroy(c->wanted);
    tsr_mesh_destroy(c->mesh);
}
