#include "ops/eager/typed.h"

#include <tessera/losses.h>
#include <tessera/sys/options.h>
#include <tessera/sys/status.h>

/* The words of the attribute reduction, by tsr_loss_reduction. */
static const char *const reductions[] = {"mean", "sum", "none"};

typedef struct settings {
    tsr_attribute attributes[3];
} settings;

static tsr_status read_options(const char *caller, const tsr_cross_entropy_options *given, settings *out)
{
    tsr_cross_entropy_options options = TSR_CROSS_ENTROPY_OPTIONS_INIT;
    TSR_TRY(tsr_options_read(caller, given, &options, sizeof options));
    if ((unsigned)options.reduction >= sizeof reductions / sizeof reductions[0])
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: reduction is %d, but must be a tsr_loss_reduction", caller,
                              (int)options.reduction);
    *out = (settings){{tsr_attribute_word("reduction", reductions[options.reduction]),
                       tsr_attribute_int("ignore_index", options.ignore_index),
                       tsr_attribute_float("label_smoothing", options.label_smoothing)}};
    return TSR_OK;
}

#define SETTINGS(s) 3, (s).attributes

tsr_status tsr_cross_entropy(const tsr_dtensor *logits, const tsr_dtensor *targets,
                             const tsr_cross_entropy_options *options, tsr_dtensor **out)
{
    settings s;
    TSR_TRY(read_options("tsr_cross_entropy", options, &s));
    return tsr_eager_run("tsr_cross_entropy", row_by("cross_entropy", logits), SETTINGS(s), OPERANDS(logits, targets),
                         out);
}

tsr_status tsr_cross_entropy_into(const tsr_dtensor *logits, const tsr_dtensor *targets,
                                  const tsr_cross_entropy_options *options, tsr_dtensor *out)
{
    settings s;
    TSR_TRY(read_options("tsr_cross_entropy_into", options, &s));
    return tsr_eager_run_into("tsr_cross_entropy_into", row_by("cross_entropy", logits), SETTINGS(s),
                              OPERANDS(logits, targets), &out);
}

tsr_status tsr_cross_entropy_backward(const tsr_dtensor *logits, const tsr_dtensor *targets,
                                      const tsr_cross_entropy_options *options, const tsr_dtensor *dout,
                                      tsr_dtensor **dlogits)
{
    settings s;
    TSR_TRY(read_options("tsr_cross_entropy_backward", options, &s));
    return tsr_eager_backward("tsr_cross_entropy_backward", row_by("cross_entropy", logits), SETTINGS(s),
                              OPERANDS(logits, targets), dout, WANTED(dlogits, NULL));
}

tsr_status tsr_linear_cross_entropy(const tsr_dtensor *x, const tsr_dtensor *w, const tsr_dtensor *targets,
                                    const tsr_cross_entropy_options *options, tsr_dtensor **out)
{
    settings s;
    TSR_TRY(read_options("tsr_linear_cross_entropy", options, &s));
    return tsr_eager_run("tsr_linear_cross_entropy", row_by("linear_cross_entropy", x), SETTINGS(s),
                         OPERANDS(x, w, targets), out);
}

tsr_status tsr_linear_cross_entropy_into(const tsr_dtensor *x, const tsr_dtensor *w, const tsr_dtensor *targets,
                                         const tsr_cross_entropy_options *options, tsr_dtensor *out)
{
    settings s;
    TSR_TRY(read_options("tsr_linear_cross_entropy_into", options, &s));
    return tsr_eager_run_into("tsr_linear_cross_entropy_into", row_by("linear_cross_entropy", x), SETTINGS(s),
                              OPERANDS(x, w, targets), &out);
}

tsr_status tsr_linear_cross_entropy_backward(const tsr_dtensor *x, const tsr_dtensor *w, const tsr_dtensor *targets,
                                             const tsr_cross_entropy_options *options, const tsr_dtensor *dout,
                                             tsr_dtensor **dx, tsr_dtensor **dw)
{
    settings s;
    TSR_TRY(read_options("tsr_linear_cross_entropy_backward", options, &s));
    return tsr_eager_backward("tsr_linear_cross_entropy_backward", row_by("linear_cross_entropy", x), SETTINGS(s),
                              OPERANDS(x, w, targets), dout, WANTED(dx, dw, NULL));
}
