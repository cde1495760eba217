#include "cli/report.h"
#include "ops/answer.h"

#include <string.h>

/* Rows that libtessera-cuda has kernels for; the tool opens it for other commands alone. */
static const char *const cuda_rows[] = {
    "abs",
    "adamw_update",
    "add",
    "bias_correction",
    "cast",
    "ceil",
    "clamp",
    "clamp_gradient",
    "div",
    "drop",
    "einsum",
    "einsum_gradient_a",
    "einsum_gradient_b",
    "einsum_gradient_c",
    "einsum_gradient_d",
    "elu",
    "elu_gradient",
    "embedding",
    "embedding_gradient",
    "eq",
    "exp",
    "expm1",
    "floor",
    "floor_divide",
    "gather",
    "gather_gradient",
    "ge",
    "gelu",
    "gelu_gradient",
    "gt",
    "index_select",
    "index_select_gradient",
    "isfinite",
    "isinf",
    "isnan",
    "keep",
    "layer_norm",
    "layer_norm_gradient",
    "le",
    "leaky_relu",
    "leaky_relu_gradient",
    "linear",
    "linear_gradient_b",
    "linear_gradient_w",
    "linear_gradient_x",
    "lion_update",
    "log",
    "log1p",
    "log1p_gradient",
    "log_softmax",
    "log_softmax_gradient",
    "logical_and",
    "logical_not",
    "logical_or",
    "lt",
    "masked_fill",
    "matmul",
    "matmul_gradient_a",
    "matmul_gradient_b",
    "maximum",
    "minimum",
    "momentum_update",
    "mul",
    "ne",
    "neg",
    "pow",
    "pow_exponent_gradient",
    "pow_gradient",
    "reciprocal",
    "relu",
    "relu_gradient",
    "remainder",
    "rms_norm",
    "rms_norm_gradient",
    "round",
    "rsqrt",
    "scale",
    "scatter_add",
    "sgd_update",
    "share_max",
    "share_min",
    "sigmoid",
    "sigmoid_gradient",
    "sign",
    "silu",
    "silu_gradient",
    "silu_mul",
    "softmax",
    "softmax_gradient",
    "softplus",
    "sqrt",
    "square",
    "sub",
    "tanh",
    "tanh_gradient",
    "vary",
    "where",
};

static json_t *devices_to_json(const tsr_op_info *info)
{
    json_t *array = json_with_item(json_array(), json_string("host"));
    for (size_t i = 0; i < sizeof cuda_rows / sizeof cuda_rows[0]; i++) {
        if (strcmp(cuda_rows[i], info->name) == 0)
            array = json_with_item(array, json_string("cuda"));
    }
    return array;
}

static json_t *names_to_json(const char *const *names)
{
    json_t *array = json_array();
    for (; *names; names++)
        array = json_with_item(array, json_string(*names));
    return array;
}

static const char *kind_name(tsr_attribute_kind kind)
{
    static const char *const names[] = {"", "int", "float", "dtype", "word", "ints", "text"};
    return names[kind];
}

/* The first of an attribute's words, which is the default. */
static json_t *first_word(const tsr_attribute *a)
{
    return a->words ? json_stringn(a->words, strcspn(a->words, "|")) : json_null();
}

static json_t *default_to_json(const tsr_attribute *a)
{
    switch (a->kind) {
    case TSR_ATTRIBUTE_INT:
        return json_integer(a->integer);
    case TSR_ATTRIBUTE_FLOAT:
        return a->number - a->number == 0 ? json_real(a->number) : json_null();
    case TSR_ATTRIBUTE_DTYPE:
        return json_string(tsr_dtype_name((tsr_dtype)a->integer));
    case TSR_ATTRIBUTE_INTS:
        return a->count < 0 ? json_null() : sizes_to_json(a->list, a->count);
    default:
        return first_word(a);
    }
}

static json_t *attributes_to_json(const tsr_op_info *info)
{
    json_t *object = json_object();
    for (const tsr_attribute *a = info->attributes; a->name; a++) {
        json_t *one = json_object();
        one = json_with_field(one, "type", json_string(kind_name(a->kind)));
        one = json_with_field(one, "default", default_to_json(a));
        if (a->kind == TSR_ATTRIBUTE_WORD && a->words)
            one = json_with_field(one, "words", json_string(a->words));
        object = json_with_field(object, a->name, one);
    }
    return object;
}

static json_t *row_to_json(const tsr_op_info *info)
{
    json_t *object = json_object();
    object = json_with_field(object, "op", json_string(info->name));
    object = json_with_field(object, "rule", json_string(info->rule));
    object = json_with_field(object, "operands", names_to_json(info->operands));
    object = json_with_field(object, "results", names_to_json(info->results));
    object = json_with_field(object, "attributes", attributes_to_json(info));
    object = json_with_field(object, "devices", devices_to_json(info));
    return json_with_field(object, "gradient", json_boolean(info->has_gradient));
}

static void say_names(const char *const *names)
{
    for (int i = 0; names[i]; i++)
        say("%s%s", i ? ", " : "", names[i]);
}

static void say_row(const tsr_op_info *info)
{
    say("%s (", info->name);
    say_names(info->operands);
    for (const tsr_attribute *a = info->attributes; a->name; a++) {
        say("%s%s: ", a == info->attributes ? "; " : ", ", a->name);
        if (a->kind == TSR_ATTRIBUTE_WORD && a->words)
            say("%s", a->words);
        else
            say("%s", kind_name(a->kind));
    }
    say(") -> ");
    say_names(info->results);
    say("%s\n    %s\n", info->has_gradient ? "" : "   (no gradient)", info->rule);
}

static int list_row(const tool_arguments *given, const tsr_op *op)
{
    tsr_op_info info;
    tsr_op_describe(op, &info);
    if (given->value[OPT_JSON])
        return print_json(row_to_json(&info));
    say_row(&info);
    return EXIT_DONE;
}

int ops_list(const tool_arguments *given)
{
    int status = EXIT_DONE;
    for (int i = 0; i < given->operand_count && status == EXIT_DONE; i++) {
        const tsr_op *op;
        status = ops_find(given->operand[i], &op);
        if (status == EXIT_DONE)
            status = list_row(given, op);
    }
    for (size_t i = 0; given->operand_count == 0 && tsr_op_get(NULL, i) && status == EXIT_DONE; i++)
        status = list_row(given, tsr_op_get(NULL, i));
    return status == EXIT_DONE ? finish_stdout() : status;
}
