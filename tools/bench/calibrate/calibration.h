/** What a place's links cost, by the times of moves of many sizes: inside a node, and between nodes where ranks are on several. */
#ifndef TESSERA_TOOLS_BENCH_CALIBRATE_CALIBRATION_H
#define TESSERA_TOOLS_BENCH_CALIBRATE_CALIBRATION_H

#include "bench/calibrate/fit_profile.h"
#include "bench/moves/timed_moves.h"
#include "bench/run/size_range.h"

typedef struct calibration_request {
    int ranks; /**< 2 at least */
    tsr_mode mode;
    tsr_dtype dtype;
    size_range sizes;         /**< bytes that a rank receives */
    bench_settings settings;  /**< how each move is timed */
    tsr_cost_profile profile; /**< of links that are not measured, and by which the moves are planned */
} calibration_request;

/** From 64 bytes to 64 MiB in f32, in about four seconds, over the default profile. */
calibration_request calibration_usual(int ranks, tsr_mode mode);

/** How many sizes of a calibration there are at most: two moves of each, over either kind of link. */
#define CALIBRATION_SIZES (FIT_POINTS / 2)

/** How many moves are timed, of ranks on one node. */
int64_t calibration_moves(const calibration_request *r);

/** What a move told. */
typedef struct calibrated_point {
    spread seconds;
    fit_point at; /**< inside: bytes into a rank; between: those that the busiest node receives from others */
} calibrated_point;

typedef struct calibration {
    calibration_request request;
    timed_move *moves[2 * FIT_POINTS]; /**< on the heap; those that stayed in a node come first */
    calibrated_point points[2 * FIT_POINTS];
    size_t count, inside;     /**< how many there are, and how many stayed in a node */
    char *neighbours;         /**< the mesh of the first, */
    char all[24];             /**< and of the others */
    tsr_cost_profile profile; /**< what was measured; other links are the request's, fit_profile() */
    fit_error error[2];       /**< of either link over its points; 0 where there are none */
    int64_t wrong;            /**< elements that were not what the moves must give */
} calibration;

/** The link that a point tells of. */
const tsr_link *calibration_link(const calibration *c, size_t point);

/** Collective over the place: times the moves, checks them, and fits the links; every process finds the same. Returns the tool's exit
 * status; the caller finishes it in any case. */
int calibrate(place *p, const calibration_request *request, calibration *out);
void calibration_finish(calibration *c);

#endif
