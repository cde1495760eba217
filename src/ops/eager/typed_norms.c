#include "ops/eager/typed.h"

#include <tessera/norms.h>

/* Settings, and the attributes that they are. */
#define DIM_SETTING  int dim,
#define DIM          ATTRIBUTES(tsr_attribute_int("dim", dim))
#define OF_DIMS      tsr_attribute_ints("dim", count, dims), tsr_attribute_int("keep", keep)
#define DIMS_SETTING int count, const int64_t *dims, int keep,
#define DIMS         ATTRIBUTES(OF_DIMS)
#define P_SETTING    double p, int count, const int64_t *dims, int keep,
#define P            ATTRIBUTES(OF_DIMS, tsr_attribute_float("p", p))
#define EPSILON      ATTRIBUTES(tsr_attribute_float("epsilon", epsilon))

UNARY_WITH(softmax, "softmax", DIM_SETTING, DIM)
UNARY_WITH(log_softmax, "log_softmax", DIM_SETTING, DIM)
UNARY_WITH(logsumexp, "logsumexp", DIMS_SETTING, DIMS)
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
