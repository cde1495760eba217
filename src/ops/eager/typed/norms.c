#include "ops/eager/typed/typed.h"

#include <tessera/norms.h>

UNARY_WITH(softmax, "softmax", DIM_SETTING, DIM)
UNARY_WITH(log_softmax, "log_softmax", DIM_SETTING, DIM)
UNARY_WITH(logsumexp, "logsumexp", REDUCED_SETTING, REDUCED)
UNARY_WITH(norm, "norm", P_SETTING, P)

tsr_status tsr_rms_norm(const tsr_dtensor *x, const tsr_dtensor *weight, double epsilon, tsr_dtensor **out)
{
    return tsr_eager_run("tsr_rms_norm", row_by("rms_norm", x), EPSILON, OPERANDS(x, weight), out);
}

tsr_status tsr_rms_norm_into(const tsr_dtensor *x, const tsr_dtensor *weight, double epsilon, tsr_dtensor *out)
{
    return tsr_eager_run_into("tsr_rms_norm_into", row_by("rms_norm", x), EPSILON, OPERANDS(x, weight), &out);
}

tsr_status tsr_rms_norm_backward(const tsr_dtensor *x, const tsr_dtensor *weight, double epsilon,
                                 const tsr_dtensor *dout, tsr_dtensor **dx, tsr_dtensor **dweight)
{
    return tsr_eager_backward("tsr_rms_norm_backward", row_by("rms_norm", x), EPSILON, OPERANDS(x, weight), dout,
                              WANTED(dx, dweight));
}

tsr_status tsr_layer_norm(const tsr_dtensor *x, const tsr_dtensor *weight, const tsr_dtensor *bias, double epsilon,
                          tsr_dtensor **out)
{
    return tsr_eager_run("tsr_layer_norm", row_by("layer_norm", x), EPSILON, OPERANDS(x, weight, bias), out);
}

tsr_status tsr_layer_norm_into(const tsr_dtensor *x, const tsr_dtensor *weight, const tsr_dtensor *bias, double epsilon,
                               tsr_dtensor *out)
{
    return tsr_eager_run_into("tsr_layer_norm_into", row_by("layer_norm", x), EPSILON, OPERANDS(x, weight, bias), &out);
}

tsr_status tsr_layer_norm_backward(const tsr_dtensor *x, const tsr_dtensor *weight, const tsr_dtensor *bias,
                                   double epsilon, const tsr_dtensor *dout, tsr_dtensor **dx, tsr_dtensor **dweight,
                                   tsr_dtensor **dbias)
{
    return tsr_eager_backward("tsr_layer_norm_backward", row_by("layer_norm", x), EPSILON, OPERANDS(x, weight, bias),
                              dout, WANTED(dx, dweight, dbias));
}
