/** Measures a cost profile by the times of moves of many sizes: the links inside a node and, where
 * ranks are on several nodes, between nodes; and a rank's own work, in moves and in kernels of
 * ops. */
#ifndef TESSERA_TOOLS_BENCH_CALIBRATE_CALIBRATION_H
#define TESSERA_TOOLS_BENCH_CALIBRATE_CALIBRATION_H

#include "bench/calibrate/fit_profile.h"
#include "bench/calibrate/kernels.h"
#include "bench/calibrate/tables.h"

typedef struct calibration_request {
    int ranks; /**< at least 2 */
    tsr_mode mode;
    tsr_dtype dtype;
    size_range sizes;        /**< bytes that each rank receives */
    bench_settings settings; /**< how each move is timed */
    tsr_profile *profile; /**< has the links that are not measured, and plans the moves; borrowed; NULL: the default */
    bool kernels;         /**< measure kernels of ops too */
} calibration_request;

/** The usual request: 64 bytes to 64 MiB in f32 over the default profile without kernels, some ten
 * seconds in all. */
calibration_request calibration_usual(int ranks, tsr_mode mode);

/** Approximate seconds of a loop of a move of the links; a loop of the tables takes half of
 * that. */
#define CALIBRATION_LOOP_SECONDS 0.01

/** Upper bound of the number of sizes: each has two moves over each kind of link. */
#define CALIBRATION_SIZES (FIT_POINTS / 2)

/** The steps of a calibration for the line of progress, if all ranks are on one node. */
int64_t calibration_steps(const calibration_request *r);

/** The result of one move. */
typedef struct calibrated_point {
    spread seconds;
    fit_point at; /**< its bytes: inside a node, those that the busiest rank receives; between nodes, those that the
                     busiest node receives from others */
} calibrated_point;

typedef struct calibration {
    calibration_request request;
    timed_move *moves[2 * FIT_POINTS]; /**< on the heap; first those inside a node, then those between nodes */
    calibrated_point points[2 * FIT_POINTS];
    size_t count, inside;     /**< number of moves, and number of moves inside a node */
    char *neighbours;         /**< mesh of the moves inside a node, as text; on the heap */
    char all[24];             /**< mesh of the moves between nodes, as text */
    tsr_cost_profile profile; /**< links: those measured, adjusted by fit_profile(); the others from `base` */
    tables tables;            /**< of the ranks of the fullest node; empty if it has one rank */
    kernels kernels;          /**< of the same ranks */
    tsr_profile *base;        /**< the profile that planned all moves */
    tsr_profile *measured;    /**< result: the links, the tables and the kernels; NULL until the end of calibrate() */
    int64_t *members;         /**< the ranks of the fullest node; on the heap */
    int64_t member_count;
    fit_error error[2];     /**< of the links inside and between; 0 for a link without points */
    fit_error kernel_error; /**< over `kernel_checks` calls of which no entry was made; 0 without any */
    size_t kernel_checks;
    int64_t wrong; /**< number of wrong elements in the results of the moves */
} calibration;

/** The link that a point measures. */
const tsr_link *calibration_link(const calibration *c, size_t point);

/** Times and checks the moves, and fits the links and tables. Collective over the place; every
 * process gets the same result. Returns the tool's exit status; the caller calls
 * calibration_finish() in any case. */
int calibrate(place *p, const calibration_request *request, calibration *out);
void calibration_finish(calibration *c);

#endif
