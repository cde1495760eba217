#include "ops/eager/typed.h"

#include <tessera/attention.h>
#include <tessera/sys/options.h>
#include <tessera/sys/status.h>

/* Reads the options of a call, `o`, over the defaults. */
#define READ_ATTENTION(caller)                                                                                         \
    tsr_attention_options o = TSR_ATTENTION_OPTIONS_INIT;                                                              \
    TSR_TRY(tsr_options_read(caller, options, &o, sizeof o))
#define ATTENTION                                                                                                      \
    ATTRIBUTES(tsr_attribute_int("causal", o.causal), tsr_attribute_float("scale", o.scale),                           \
               tsr_attribute_int("window", o.window))

#define READ_ROPE(caller)                                                                                              \
    tsr_rope_options o = TSR_ROPE_OPTIONS_INIT;                                                                        \
    TSR_TRY(tsr_options_read(caller, options, &o, sizeof o))
#define ROPE                                                                                                           \
    ATTRIBUTES(tsr_attribute_float("base", o.base), tsr_attribute_float("factor", o.factor),                           \
               tsr_attribute_float("low_freq_factor", o.low_freq_factor),                                              \
               tsr_attribute_float("high_freq_factor", o.high_freq_factor),                                            \
               tsr_attribute_int("original_max_position", o.original_max_position))

tsr_status tsr_attention(const tsr_dtensor *q, const tsr_dtensor *k, const tsr_dtensor *v, const tsr_dtensor *mask,
                         const tsr_attention_options *options, tsr_dtensor **out)
{
    READ_ATTENTION("tsr_attention");
    return tsr_eager_run("tsr_attention", row_by("attention", q), ATTENTION, OPERANDS(q, k, v, mask), out);
}

tsr_status tsr_attention_into(const tsr_dtensor *q, const tsr_dtensor *k, const tsr_dtensor *v, const tsr_dtensor *mask,
                              const tsr_attention_options *options, tsr_dtensor *out)
{
    READ_ATTENTION("tsr_attention_into");
    return tsr_eager_run_into("tsr_attention_into", row_by("attention", q), ATTENTION, OPERANDS(q, k, v, mask), &out);
}

tsr_status tsr_attention_backward(const tsr_dtensor *q, const tsr_dtensor *k, const tsr_dtensor *v,
                                  const tsr_dtensor *mask, const tsr_attention_options *options,
                                  const tsr_dtensor *dout, tsr_dtensor **dq, tsr_dtensor **dk, tsr_dtensor **dv)
{
    READ_ATTENTION("tsr_attention_backward");
    return tsr_eager_backward("tsr_attention_backward", row_by("attention", q), ATTENTION, OPERANDS(q, k, v, mask),
                              dout, WANTED(dq, dk, dv, NULL));
}

tsr_status tsr_rope(const tsr_dtensor *x, const tsr_dtensor *positions, const tsr_rope_options *options,
                    tsr_dtensor **out)
{
    READ_ROPE("tsr_rope");
    return tsr_eager_run("tsr_rope", row_by("rope", x), ROPE, OPERANDS(x, positions), out);
}

tsr_status tsr_rope_into(const tsr_dtensor *x, const tsr_dtensor *positions, const tsr_rope_options *options,
                         tsr_dtensor *out)
{
    READ_ROPE("tsr_rope_into");
    return tsr_eager_run_into("tsr_rope_into", row_by("rope", x), ROPE, OPERANDS(x, positions), &out);
}

tsr_status tsr_rope_backward(const tsr_dtensor *x, const tsr_dtensor *positions, const tsr_rope_options *options,
                             const tsr_dtensor *dout, tsr_dtensor **dx)
{
    READ_ROPE("tsr_rope_backward");
    return tsr_eager_backward("tsr_rope_backward", row_by("rope", x), ROPE, OPERANDS(x, positions), dout,
                              WANTED(dx, NULL));
}
