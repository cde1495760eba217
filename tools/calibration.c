#include "calibration.h"

#include <string.h>

/** Bytes that a rank receives: from the first to the last, a factor from one to the next. */
#define LEAST_BYTES INT64_C(64)
#define MOST_BYTES  (INT64_C(64) << 20)
#define FACTOR      4

#define ELEMENT_BYTES 4

static const char *const targets[] = {"S(1)", "R"};

/** The shape of which each rank receives a box of rows x columns from each other one, of about so many bytes in all. */
static tensor_shape choose_shape(const char *to, int ranks, int64_t bytes)
{
    const int64_t box = bytes / ELEMENT_BYTES / (ranks - 1) > 0 ? bytes / ELEMENT_BYTES / (ranks - 1) : 1;
    int64_t rows = 1;
    while (4 * rows * rows <= box)
        rows *= 2;
    const int64_t columns = box / rows;
    return (tensor_shape){2, {rows * ranks, strcmp(to, "R") == 0 ? columns : columns * ranks}};
}

static int add_moves(calibration *c, const char *to)
{
    int status = EXIT_DONE;
    for (int64_t bytes = LEAST_BYTES; bytes <= MOST_BYTES && status == EXIT_DONE; bytes *= FACTOR) {
        const move_request request = {c->mesh, "S(0)", to, choose_shape(to, c->ranks, bytes), TSR_F32, c->mode};
        status = timed_move_create(c->ranks, &request, &c->moves[c->count]);
        c->count += status == EXIT_DONE;
    }
    return status;
}

int calibration_create(int ranks, tsr_mode mode, calibration *out)
{
    out->ranks = ranks;
    out->mode = mode;
    out->count = 0;
    out->profile = tsr_cost_default();
    snprintf(out->mesh, sizeof out->mesh, "%d", ranks);
    int status = EXIT_DONE;
    for (size_t i = 0; i < sizeof targets / sizeof *targets && status == EXIT_DONE; i++)
        status = add_moves(out, targets[i]);
    return status;
}

void calibration_finish(calibration *c)
{
    for (size_t i = 0; i < c->count; i++)
        timed_move_finish(&c->moves[i]);
}

/** A link between nodes that was not measured stays no quicker than what was measured inside. */
static int fit_profile(calibration *c)
{
    tsr_cost_profile *const p = &c->profile;
    for (size_t i = 0; i < c->count; i++)
        c->measured[i] = (fit_point){(double)c->moves[i].bytes, samples_spread(&c->moves[i].loops).median};
    if (!fit_link(c->measured, c->count, &p->inside))
        return complain(EXIT_REFUSED, "the times do not grow with the bytes, so that they tell of no bandwidth; is this machine busy?");
    if (p->between.latency < p->inside.latency)
        p->between.latency = p->inside.latency;
    c->error = fit_measure(c->measured, c->count, &p->inside);
    return EXIT_DONE;
}

int calibrate(place *p, calibration *c)
{
    const int status = time_moves(p, c->ranks, c->moves, c->count);
    return status != EXIT_DONE || !place_speaks(p) ? status : fit_profile(c);
}
