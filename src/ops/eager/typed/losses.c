#include "ops/eager/typed/typed.h"

#include <tessera/losses.h>
#include <tessera/sys/status.h>

tsr_status tsr_cross_entropy(const tsr_dtensor *logits, const tsr_dtensor *targets,
                             const tsr_cross_entropy_options *options, tsr_dtensor **out)
{
    tsr_cross_entropy_options o;
    TSR_TRY(tsr_settings_loss("tsr_cross_entropy", options, &o));
    return tsr_eager_run("tsr_cross_entropy", row_by("cross_entropy", logits), LOSS, OPERANDS(logits, targets), out);
}

tsr_status tsr_cross_entropy_into(const tsr_dtensor *logits, const tsr_dtensor *targets,
                                  const tsr_cross_entropy_options *options, tsr_dtensor *out)
{
    tsr_cross_entropy_options o;
    TSR_TRY(tsr_settings_loss("tsr_cross_entropy_into", options, &o));
    return tsr_eager_run_into("tsr_cross_entropy_into", row_by("cross_entropy", logits), LOSS,
                              OPERANDS(logits, targets), &out);
}

tsr_status tsr_cross_entropy_backward(const tsr_dtensor *logits, const tsr_dtensor *targets,
                                      const tsr_cross_entropy_options *options, const tsr_dtensor *dout,
                                      tsr_dtensor **dlogits)
{
    tsr_cross_entropy_options o;
    TSR_TRY(tsr_settings_loss("tsr_cross_entropy_backward", options, &o));
    return tsr_eager_backward("tsr_cross_entropy_backward", row_by("cross_entropy", logits), LOSS,
                              OPERANDS(logits, targets), dout, WANTED(dlogits, NULL));
}

tsr_status tsr_linear_cross_entropy(const tsr_dtensor *x, const tsr_dtensor *w, const tsr_dtensor *targets,
                                    const tsr_cross_entropy_options *options, tsr_dtensor **out)
{
    tsr_cross_entropy_options o;
    TSR_TRY(tsr_settings_loss("tsr_linear_cross_entropy", options, &o));
    return tsr_eager_run("tsr_linear_cross_entropy", row_by("linear_cross_entropy", x), LOSS, OPERANDS(x, w, targets),
                         out);
}

tsr_status tsr_linear_cross_entropy_into(const tsr_dtensor *x, const tsr_dtensor *w, const tsr_dtensor *targets,
                                         const tsr_cross_entropy_options *options, tsr_dtensor *out)
{
    tsr_cross_entropy_options o;
    TSR_TRY(tsr_settings_loss("tsr_linear_cross_entropy_into", options, &o));
    return tsr_eager_run_into("tsr_linear_cross_entropy_into", row_by("linear_cross_entropy", x), LOSS,
                              OPERANDS(x, w, targets), &out);
}

tsr_status tsr_linear_cross_entropy_backward(const tsr_dtensor *x, const tsr_dtensor *w, const tsr_dtensor *targets,
                                             const tsr_cross_entropy_options *options, const tsr_dtensor *dout,
                                             tsr_dtensor **dx, tsr_dtensor **dw)
{
    tsr_cross_entropy_options o;
    TSR_TRY(tsr_settings_loss("tsr_linear_cross_entropy_backward", options, &o));
    return tsr_eager_backward("tsr_linear_cross_entropy_backward", row_by("linear_cross_entropy", x), LOSS,
                              OPERANDS(x, w, targets), dout, WANTED(dx, dw, NULL));
}
