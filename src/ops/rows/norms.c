#include "ops/kernels/softmax.h"
#include "ops/rows/checks.h"
#include "ops/rows/rows.h"

#define RESULT .results = {"out"}

/* An op along the dim that `dim` names: the loop of softmax.h. */
#define ALONG_DIM(loop)                                                                                                \
    RESULT, .attributes = {{.name = "dim", .kind = TSR_ATTRIBUTE_INT, .integer = -1}}, .check = tsr_check_softmax,     \
            .rule_of = tsr_rule_of_softmax, .host = tsr_softmax_run, .code = TSR_##loop

const tsr_op tsr_rows_norms[] = {
    {.name = "softmax",
     .rule = "... v ... -> ... v ... | v whole",
     .operands = {"x"},
     ALONG_DIM(SOFTMAX),
     .gradients = {"softmax_gradient(dout, softmax(x))"}},
    {.name = "log_softmax",
     .rule = "... v ... -> ... v ... | v whole",
     .operands = {"x"},
     ALONG_DIM(LOG_SOFTMAX),
     .gradients = {"log_softmax_gradient(dout, log_softmax(x))"}},
    /* Rows of which gradients are made. */
    {.name = "softmax_gradient",
     .rule = "... v ..., ... v ... -> ... v ... | v whole | linear {0}",
     .operands = {"dout", "out"},
     ALONG_DIM(SOFTMAX_GRADIENT)},
    {.name = "log_softmax_gradient",
     .rule = "... v ..., ... v ... -> ... v ... | v whole | linear {0}",
     .operands = {"dout", "out"},
     ALONG_DIM(LOG_SOFTMAX_GRADIENT)},
    {.name = NULL},
};
