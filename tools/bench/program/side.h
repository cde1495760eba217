/** One rank's side of a benchmark of programs: the program, and its kernels called one by one. */
#ifndef TESSERA_TOOLS_BENCH_PROGRAM_SIDE_H
#define TESSERA_TOOLS_BENCH_PROGRAM_SIDE_H

#include "bench/program/models.h"

#include <tessera/tessera.h>

/** What is measured. */
typedef struct program_case {
    const char *name;
    void (*record)(model *m);
    tsr_status (*reference)(const model_sizes *sizes, int64_t sequence, double *row); /**< NULL: it only compiles */
    model_sizes sizes;
} program_case;

typedef struct program_side {
    const program_case *c;
    tsr_comm *comm, *self; /**< `self`: of this rank alone */
    tsr_mesh *mesh, *alone;
    tsr_program *program;
    model m;
    tsr_executable *x;
    double compile_seconds;
    tsr_dtensor *given[MODEL_GIVEN], *y;
    tsr_tensor inputs[MODEL_GIVEN], output;
    void *workspace;
    tsr_dtensor **locals; /**< by value: a tensor of its local shape, on `alone` */
    size_t local_count;
} program_side;

/** Collective: makes the program, its tensors, and, with `kernels`, those of its kernels, on a mesh
 * that is like an abstract one. The caller calls program_side_finish() in any case. */
tsr_status program_side_make(const program_case *c, tsr_comm *comm, const tsr_mesh *like, bool kernels,
                             program_side *out);
void program_side_finish(program_side *s);

/** Collective: one run. */
tsr_status program_side_run(program_side *s);

/** Calls the kernels that the program has, which were made, one after the other; nothing moves. */
tsr_status program_side_call(program_side *s);

/** Adds the wrong elements of the last row of this rank's last sequence. */
tsr_status program_side_check(const program_side *s, int64_t *wrong);

#endif
