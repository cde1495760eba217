/** Programs of many kinds, and runs of them on local tensors with a pattern. */
#ifndef TESTS_OPS_PROGRAMS_SAMPLES_H
#define TESTS_OPS_PROGRAMS_SAMPLES_H

#include <tessera/sys/ops.h>
#include <tessera/tessera.h>

#include <stdbool.h>

/** A program, and how it runs. */
typedef struct sample {
    const char *name, *mesh;
    int ranks;
    tsr_policy policy; /**< that recording needs */
    void (*record)(tsr_program *program, const tsr_mesh *mesh);
    int64_t tokens, total; /**< lengths; 0: the program has none */
} sample;

/** All samples, up to one without a name. */
extern const sample samples[];

/** The row "sample.twice" of a program's own, which samples use: x -> 2 x. */
extern const tsr_op *const sample_rows[1];

/** The calling thread's `nth` call of "sample.twice" from now fails with TSR_ERROR_IO; 0: none.
 * Returns how many calls were left of the last number: 0 if it failed. */
int samples_fail_here(int nth);

/** Options of a context that counts nothing: the policy of a sample, and the row. */
tsr_context_options sample_options(const sample *s);

/** Room for the bytes that a run writes. */
#define SAMPLE_ROOM (1 << 16)

/** What a run wrote on this rank: outputs, then states. */
typedef struct sample_written {
    size_t count;
    unsigned char bytes[SAMPLE_ROOM];
} sample_written;

/** Gives an executable of the sample parameters and states with a pattern. `program` was recorded
 * over the communicator. `bound` has room for 8, which sample_unbind() frees. */
tsr_status sample_bind(const tsr_program *program, tsr_executable *x, tsr_dtensor **bound);

/** Gives the lengths of the sample, and runs the executable, which is bound and prepared, once.
 * Everything that was allocated is freed after a failure too. */
tsr_status sample_run(const sample *s, tsr_executable *x, tsr_comm *comm, tsr_dtensor *const *bound,
                      sample_written *out);

/** Frees what sample_bind() made. */
void sample_unbind(tsr_dtensor **bound);

/** A sample that is compiled for a rank, and bound where its mesh has a communicator. */
typedef struct sample_scene {
    tsr_mesh *mesh;
    tsr_program *program;
    tsr_executable *x;
    tsr_dtensor *bound[8];
} sample_scene;

/** Records, compiles and binds a sample, over `comm` or, where it is NULL, over an abstract mesh of
 * `context`. */
tsr_status sample_open(const sample *s, tsr_comm *comm, tsr_context *context, int rank, sample_scene *out);

/** Frees what sample_open() made. */
void sample_close(sample_scene *c);

/** Prepares a sample and runs it twice, since the first run writes states that the second reads;
 * `out` is what the second wrote. Collective. */
tsr_status sample_run_all(const sample *s, tsr_comm *comm, sample_written *out);

#endif
