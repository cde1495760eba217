/** What a place's links cost, by the times of moves of many sizes. */
#ifndef TESSERA_TOOLS_CALIBRATION_H
#define TESSERA_TOOLS_CALIBRATION_H

#include "fit.h"
#include "timed_moves.h"

typedef struct calibration {
    int ranks;
    tsr_mode mode;
    char mesh[16];
    timed_move moves[FIT_POINTS];
    fit_point measured[FIT_POINTS];
    size_t count;
    tsr_cost_profile profile;
    fit_error error; /**< of the profile's inside over the measured points */
} calibration;

/** The moves that are to be timed, on 2 ranks at least. Returns the tool's exit status; the caller finishes it in any case. */
int calibration_create(int ranks, tsr_mode mode, calibration *out);
void calibration_finish(calibration *c);

/** Times the moves, for about three seconds, and finds `profile.inside`; its `between` stays what it was, but for a latency no less than
 * inside. Where ranks are processes, only the one that speaks finds it. */
int calibrate(place *p, calibration *c);

#endif
