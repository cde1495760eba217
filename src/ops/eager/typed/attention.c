#include "ops/eager/typed/typed.h"

#include <tessera/attention.h>
#include <tessera/sys/status.h>

tsr_status tsr_attention(const tsr_dtensor *q, const tsr_dtensor *k, const tsr_dtensor *v, const tsr_dtensor *mask,
                         const tsr_attention_options *options, tsr_dtensor **out)
{
    tsr_attention_options o;
    TSR_TRY(tsr_settings_attention("tsr_attention", options, &o));
    return tsr_eager_run("tsr_attention", row_by("attention", q), ATTENTION, OPERANDS(q, k, v, mask), out);
}

tsr_status tsr_attention_into(const tsr_dtensor *q, const tsr_dtensor *k, const tsr_dtensor *v, const tsr_dtensor *mask,
                              const tsr_attention_options *options, tsr_dtensor *out)
{
    tsr_attention_options o;
    TSR_TRY(tsr_settings_attention("tsr_attention_into", options, &o));
    return tsr_eager_run_into("tsr_attention_into", row_by("attention", q), ATTENTION, OPERANDS(q, k, v, mask), &out);
}

tsr_status tsr_attention_backward(const tsr_dtensor *q, const tsr_dtensor *k, const tsr_dtensor *v,
                                  const tsr_dtensor *mask, const tsr_attention_options *options,
                                  const tsr_dtensor *dout, tsr_dtensor **dq, tsr_dtensor **dk, tsr_dtensor **dv)
{
    tsr_attention_options o;
    TSR_TRY(tsr_settings_attention("tsr_attention_backward", options, &o));
    return tsr_eager_backward("tsr_attention_backward", row_by("attention", q), ATTENTION, OPERANDS(q, k, v, mask),
                              dout, WANTED(dq, dk, dv, NULL));
}

tsr_status tsr_rope(const tsr_dtensor *x, const tsr_dtensor *positions, const tsr_rope_options *options,
                    tsr_dtensor **out)
{
    tsr_rope_options o;
    TSR_TRY(tsr_settings_rope("tsr_rope", options, &o));
    return tsr_eager_run("tsr_rope", row_by("rope", x), ROPE, OPERANDS(x, positions), out);
}

tsr_status tsr_rope_into(const tsr_dtensor *x, const tsr_dtensor *positions, const tsr_rope_options *options,
                         tsr_dtensor *out)
{
    tsr_rope_options o;
    TSR_TRY(tsr_settings_rope("tsr_rope_into", options, &o));
    return tsr_eager_run_into("tsr_rope_into", row_by("rope", x), ROPE, OPERANDS(x, positions), &out);
}

tsr_status tsr_rope_backward(const tsr_dtensor *x, const tsr_dtensor *positions, const tsr_rope_options *options,
                             const tsr_dtensor *dout, tsr_dtensor **dx)
{
    tsr_rope_options o;
    TSR_TRY(tsr_settings_rope("tsr_rope_backward", options, &o));
    return tsr_eager_backward("tsr_rope_backward", row_by("rope", x), ROPE, OPERANDS(x, positions), dout,
                              WANTED(dx, NULL));
}
