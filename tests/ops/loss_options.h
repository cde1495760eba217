/** Options of losses as initializers, for tables of cases. */
#ifndef TESTS_OPS_LOSS_OPTIONS_H
#define TESTS_OPS_LOSS_OPTIONS_H

#include <tessera/losses.h>

#define OPTIONS(...)                                                                                                   \
    {                                                                                                                  \
        sizeof(tsr_cross_entropy_options), __VA_ARGS__                                                                 \
    }
#define MEAN        OPTIONS(TSR_LOSS_MEAN, -100, 0)
#define SMOOTH_MEAN OPTIONS(TSR_LOSS_MEAN, -100, 0.1)
#define STATIC_MEAN OPTIONS(TSR_LOSS_MEAN, TSR_IGNORE_NONE, 0)
#define SUM         OPTIONS(TSR_LOSS_SUM, -100, 0)
#define SMOOTH_SUM  OPTIONS(TSR_LOSS_SUM, 2, 0.25)
#define NONE        OPTIONS(TSR_LOSS_NONE, -100, 0)
#define SMOOTH_NONE OPTIONS(TSR_LOSS_NONE, 2, 0.25)

#endif
