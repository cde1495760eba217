#include "ops/kernels/products/products.h"

#include "ops/rows/groups/products_checks.h"
#include "ops/rows/rows.h"
#include "ops/rules/linear.h"

#define PRODUCT(row_code)                                                                                              \
    .results = {"out"}, .host = tsr_product_run, .workspace_bytes = tsr_product_bytes, .code = TSR_PRODUCT_##row_code

#define EQUATION .attributes = {{.name = "equation", .kind = TSR_ATTRIBUTE_TEXT, .words = ""}}
#define DTYPE    .attributes = {{.name = "dtype", .kind = TSR_ATTRIBUTE_DTYPE}}

/* The gradient of operand `number` of an op: the product of dout and the other operands. */
#define GRADIENT_OF(op, number)                                                                                        \
    .check = tsr_check_product, .rule_of = tsr_rule_of_product, .results = {"out"}, .host = tsr_product_run,           \
    .workspace_bytes = tsr_product_bytes, .code = TSR_PRODUCT_##op + TSR_PRODUCT_GRADIENT + (number)

#define EINSUM_GRADIENT(letter, number)                                                                                \
    {                                                                                                                  \
        .name = "einsum_gradient_" letter, .rule = "..., ..., ... -> ...", .operands = {"dout", "a", "b", "c", "d"},   \
        .optional = 0x1c, EQUATION, GRADIENT_OF(EINSUM, number)                                                        \
    }

const tsr_op tsr_rows_products[] = {
    {.name = "matmul",
     .rule = "... m k, ... k n -> ... m n | k sum | linear {0}{1}",
     .operands = {"a", "b"},
     PRODUCT(MATMUL),
     .check = tsr_check_product,
     .rule_of = tsr_rule_of_product,
     .gradients = {"matmul_gradient_a(dout, like a, b)", "matmul_gradient_b(dout, a, like b)"}},
    {.name = "einsum",
     .rule = "..., ... -> ... | linear {0}{1}",
     .operands = {"a", "b", "c", "d"},
     .optional = 0xe,
     EQUATION,
     PRODUCT(EINSUM),
     .check = tsr_check_product,
     .rule_of = tsr_rule_of_product,
     .gradients = {"einsum_gradient_a(dout, like a, b, c, d)", "einsum_gradient_b(dout, a, like b, c, d)",
                   "einsum_gradient_c(dout, a, b, like c, d)", "einsum_gradient_d(dout, a, b, c, like d)"}},
    {.name = "linear",
     .rule = TSR_RULE_LINEAR,
     .operands = {"x", "w", "b"},
     .optional = 0x4,
     PRODUCT(LINEAR),
     .check = tsr_check_linear,
     .gradients = {"linear_gradient_x(dout, w, dtype=x)", "linear_gradient_w(dout, x, dtype=w)",
                   "linear_gradient_b(dout, dtype=b)"}},
    {.name = "grouped_matmul",
     .rule = "t k, e k n, e -> t n | k sum | e whole | t positional | linear {0}{1}",
     .operands = {"x", "w", "sizes"},
     PRODUCT(GROUPED),
     .check = tsr_check_grouped,
     .gradients = {"grouped_matmul_gradient_x(dout, w, sizes, dtype=x)",
                   "grouped_matmul_gradient_w(x, dout, sizes, dtype=w)"}},
    {.name = "linear_q8",
     .rule = "... (c u), o (c u), o c + o -> ... o | (c u) sum | u whole | linear {0}",
     .operands = {"x", "w", "scales", "b"},
     .optional = 0x8,
     PRODUCT(Q8),
     .check = tsr_check_q8,
     .gradients = {"linear_q8_gradient_x(dout, w, scales, dtype=x)", NULL, NULL, "linear_gradient_b(dout, dtype=b)"}},
    /* Rows of which gradients are made. */
    {.name = "grouped_matmul_gradient_x",
     .rule = "t n, e k n, e -> t k | n sum | e whole | t positional | linear {0}{1}",
     .operands = {"dout", "w", "sizes"},
     DTYPE,
     PRODUCT(GROUPED_X),
     .check = tsr_check_grouped},
    {.name = "grouped_matmul_gradient_w",
     .rule = "t k, t n, e -> e k n | t sum | e whole | t positional | linear {0}{1}",
     .operands = {"x", "dout", "sizes"},
     DTYPE,
     PRODUCT(GROUPED_W),
     .check = tsr_check_grouped},
    {.name = "linear_q8_gradient_x",
     .rule = "... o, o (c u), o c -> ... (c u) | o sum | u whole | linear {0}",
     .operands = {"dout", "w", "scales"},
     DTYPE,
     PRODUCT(Q8_X),
     .check = tsr_check_q8},
    {.name = "matmul_gradient_a",
     .rule = "... m n, ... m k, ... k n -> ... m k | n sum | linear {0}{2}",
     .operands = {"dout", "a", "b"},
     GRADIENT_OF(MATMUL, 0)},
    {.name = "matmul_gradient_b",
     .rule = "... m n, ... m k, ... k n -> ... k n | m sum | linear {0}{1}",
     .operands = {"dout", "a", "b"},
     GRADIENT_OF(MATMUL, 1)},
    EINSUM_GRADIENT("a", 0),
    EINSUM_GRADIENT("b", 1),
    EINSUM_GRADIENT("c", 2),
    EINSUM_GRADIENT("d", 3),
    {.name = "linear_gradient_x",
     .rule = TSR_RULE_LINEAR_X,
     .operands = {"dout", "w"},
     DTYPE,
     PRODUCT(LINEAR_X),
     .check = tsr_check_linear},
    {.name = "linear_gradient_w",
     .rule = TSR_RULE_LINEAR_W,
     .operands = {"dout", "x"},
     DTYPE,
     PRODUCT(LINEAR_W),
     .check = tsr_check_linear},
    {.name = "linear_gradient_b",
     .rule = TSR_RULE_LINEAR_B,
     .operands = {"dout"},
     DTYPE,
     PRODUCT(LINEAR_B),
     .check = tsr_check_linear},
    {.name = NULL},
};
