#include "ops/kernels/updates/updates_kernels.h"

#include "ops/kernels/stream.h"

#include <math.h>

#define NAME_(kernels) tsr_updates_kernels_##kernels
#define NAME(kernels)  NAME_(kernels)

/* Updates the elements from `i` up to `end`: `w`, `g`, `m` and `v` are read and written in turn. */
#define ELEMENTS(T, from, end, formula)                                                                                \
    _Pragma("omp simd") for (int64_t i = from; i < (end); i++)                                                         \
    {                                                                                                                  \
        formula(T)                                                                                                     \
    }

/* A loop by lines, the operands of which are fetched ahead. `count`: of states. */
#define DEFINE(name, suffix, T, count, formula)                                                                        \
    static void name##_##suffix(const void *const *in, void *const *out, int64_t n, const tsr_update_numbers *numbers) \
    {                                                                                                                  \
        enum { LENGTH = STREAM_LINE / sizeof(T) };                                                                     \
        const T *const ws = in[0], *const gs = in[1], *const ms = in[(count) > 0 ? 2 : 0],                             \
                       *const vs = in[(count) > 1 ? 3 : 0];                                                            \
        T *const new_w = out[0], *const new_m = out[(count) > 0 ? 1 : 0], *const new_v = out[(count) > 1 ? 2 : 0];     \
        const T kept = (T)numbers->kept, rate = (T)numbers->rate, root = (T)numbers->root,                             \
                epsilon = (T)numbers->epsilon, decay = (T)numbers->weight_decay, momentum = (T)numbers->momentum,      \
                undamped = (T)(1 - numbers->dampening), beta1 = (T)numbers->beta1, rest1 = (T)(1 - numbers->beta1),    \
                way1 = 1 - rest1, beta2 = (T)numbers->beta2, rest2 = (T)(1 - numbers->beta2),                          \
                sign = numbers->maximizes ? -1 : 1;                                                                    \
        const bool decays = numbers->weight_decay != 0, is_near = rest1 < (T)0.5, is_first = numbers->is_first,        \
                   nesterov = numbers->nesterov;                                                                       \
        int64_t at = 0;                                                                                                \
        for (; at + LENGTH <= n; at += LENGTH) {                                                                       \
            stream_fetch(ws + at);                                                                                     \
            stream_fetch(gs + at);                                                                                     \
            if ((count) > 0)                                                                                           \
                stream_fetch(ms + at);                                                                                 \
            if ((count) > 1)                                                                                           \
                stream_fetch(vs + at);                                                                                 \
            ELEMENTS(T, at, at + LENGTH, formula)                                                                      \
        }                                                                                                              \
        ELEMENTS(T, at, n, formula)                                                                                    \
        (void)kept, (void)rate, (void)root, (void)epsilon, (void)decay, (void)momentum, (void)undamped, (void)beta1,   \
            (void)rest1, (void)way1, (void)beta2, (void)rest2, (void)decays, (void)is_near, (void)is_first,            \
            (void)nesterov, (void)sign, (void)gs, (void)ms, (void)vs, (void)new_m, (void)new_v;                        \
    }

/* Formulas read all operands before they write, as a result may lie over any of them. They have the
 * order of torch.optim's operations. */
#define SGD(T)                                                                                                         \
    const T w = ws[i], plain = sign * gs[i], g = decays ? plain + decay * w : plain;                                   \
    new_w[i] = w - g * rate;

#define MOMENTUM(T)                                                                                                    \
    const T w = ws[i], plain = sign * gs[i], g = decays ? plain + decay * w : plain;                                   \
    const T next = is_first ? g : ms[i] * momentum + g * undamped, step = nesterov ? g + next * momentum : next;       \
    new_m[i] = next;                                                                                                   \
    new_w[i] = w - step * rate;

/* The first moment as torch.lerp() has it. */
#define ADAMW(T)                                                                                                       \
    const T w = ws[i], g = sign * gs[i], m = ms[i], apart = g - m;                                                     \
    const T next = is_near ? m + apart * rest1 : g - apart * way1, square = vs[i] * beta2 + (g * rest2) * g;           \
    const T step = (next * rate) / (ROOT_OF(T, square) / root + epsilon);                                              \
    new_m[i] = next;                                                                                                   \
    new_v[i] = square;                                                                                                 \
    new_w[i] = w * kept - step;

#define LION(T)                                                                                                        \
    const T w = ws[i], g = sign * gs[i], m = ms[i], mixed = m * beta1 + g * rest1;                                     \
    const T direction = mixed > 0 ? 1 : mixed < 0 ? -1 : mixed;                                                        \
    new_m[i] = m * beta2 + g * rest2;                                                                                  \
    new_w[i] = w * kept - direction * rate;

/* Steps that are skipped. */
#define KEEP_WEIGHT(T) new_w[i] = ws[i];
#define KEEP_ONE(T)                                                                                                    \
    const T w = ws[i], m = ms[i];                                                                                      \
    new_w[i] = w;                                                                                                      \
    new_m[i] = m;
#define KEEP_TWO(T)                                                                                                    \
    const T w = ws[i], m = ms[i], v = vs[i];                                                                           \
    new_w[i] = w;                                                                                                      \
    new_m[i] = m;                                                                                                      \
    new_v[i] = v;

#define ROOT_OF(T, x)  ROOT_OF_##T(x)
#define ROOT_OF_double sqrt
#define ROOT_OF_float  sqrtf

#define FOR_FLOATS(name, count, formula)                                                                               \
    DEFINE(name, f64, double, count, formula)                                                                          \
    DEFINE(name, f32, float, count, formula)

FOR_FLOATS(sgd, 0, SGD)
FOR_FLOATS(momentum, 1, MOMENTUM)
FOR_FLOATS(adamw, 2, ADAMW)
FOR_FLOATS(lion, 1, LION)
FOR_FLOATS(keep_weight, 0, KEEP_WEIGHT)
FOR_FLOATS(keep_one, 1, KEEP_ONE)
FOR_FLOATS(keep_two, 2, KEEP_TWO)

#define FLOATS(name)                                                                                                   \
    {                                                                                                                  \
        [TSR_F64] = name##_f64, [TSR_F32] = name##_f32                                                                 \
    }

const tsr_updates_kernels NAME(TSR_KERNELS) = {
    .loops = {[TSR_UPDATE_SGD] = FLOATS(sgd),
              [TSR_UPDATE_MOMENTUM] = FLOATS(momentum),
              [TSR_UPDATE_ADAMW] = FLOATS(adamw),
              [TSR_UPDATE_LION] = FLOATS(lion)},
    .keep = {FLOATS(keep_weight), FLOATS(keep_one), FLOATS(keep_two)},
};
