#include "bench/run/progress.h"

#include "place/move.h"

#include <stdio.h>
#include <unistd.h>

/* Seconds before the line first appears, and between two updates. */
#define PATIENCE 2
#define PAUSE    0.2

void progress_begin(progress *p, int64_t steps)
{
    *p = (progress){.allowed = isatty(STDERR_FILENO) == 1, .steps = steps, .start = clock_seconds()};
}

void progress_step(progress *p)
{
    if (!p)
        return;
    p->done++;
    const double now = clock_seconds();
    if (!p->allowed || now - p->start < PATIENCE || now - p->last < PAUSE)
        return;
    /* assumes that the steps left take as long as those done */
    const double left = (now - p->start) / (double)p->done * (double)(p->steps - p->done);
    fprintf(stderr, "\r\033[K%lld of %lld, about %.0f s left", (long long)p->done, (long long)p->steps, left);
    fflush(stderr);
    p->shown = true;
    p->last = now;
}

void progress_clear(progress *p)
{
    if (!p)
        return;
    if (p->shown)
        fputs("\r\033[K", stderr);
    p->shown = false;
}
