#include "ops/eager/typed/typed.h"
#include "ops/rows/pointwise_functions.h"

tsr_status tsr_masked_fill(const tsr_dtensor *x, const tsr_dtensor *mask, double value, tsr_dtensor **out)
{
    return tsr_eager_run("tsr_masked_fill", row_by("masked_fill", x), VALUE, OPERANDS(x, mask), out);
}

tsr_status tsr_masked_fill_into(const tsr_dtensor *x, const tsr_dtensor *mask, double value, tsr_dtensor *out)
{
    return tsr_eager_run_into("tsr_masked_fill_into", row_by("masked_fill", x), VALUE, OPERANDS(x, mask), &out);
}

tsr_status tsr_masked_fill_backward(const tsr_dtensor *x, const tsr_dtensor *mask, double value,
                                    const tsr_dtensor *dout, tsr_dtensor **dx)
{
    return tsr_eager_backward("tsr_masked_fill_backward", row_by("masked_fill", x), VALUE, OPERANDS(x, mask), dout,
                              WANTED(dx, NULL));
}

tsr_status tsr_where(const tsr_dtensor *condition, const tsr_dtensor *x, const tsr_dtensor *y, tsr_dtensor **out)
{
    return tsr_eager_run("tsr_where", row_by("where", condition), NO_ATTRIBUTES, OPERANDS(condition, x, y), out);
}

tsr_status tsr_where_into(const tsr_dtensor *condition, const tsr_dtensor *x, const tsr_dtensor *y, tsr_dtensor *out)
{
    return tsr_eager_run_into("tsr_where_into", row_by("where", condition), NO_ATTRIBUTES, OPERANDS(condition, x, y),
                              &out);
}

tsr_status tsr_where_backward(const tsr_dtensor *condition, const tsr_dtensor *x, const tsr_dtensor *y,
                              const tsr_dtensor *dout, tsr_dtensor **dx, tsr_dtensor **dy)
{
    return tsr_eager_backward("tsr_where_backward", row_by("where", condition), NO_ATTRIBUTES,
                              OPERANDS(condition, x, y), dout, WANTED(NULL, dx, dy));
}
