/** Runs programs on ranks in tests: whole tensors in, whole tensors out. */
#ifndef TESTS_OPS_PROGRAMS_RUNNING_H
#define TESTS_OPS_PROGRAMS_RUNNING_H

#include <tessera/tessera.h>

/** A whole tensor of f32, or of i64 where `is_ids`, that counts in a pattern from `seed`. */
typedef struct whole {
    const char *name;
    int seed;
} whole;

/** Values of a tensor: small integers that depend on the seed and the element's index alone. */
double whole_value(int seed, int64_t i);

/** Distributes the whole tensor of a layout, of f32, f64 or i64, whose values are those of a seed;
 * ids from 0 to `limit` - 1 where `limit` is not 0. */
tsr_status whole_make(const tsr_layout *layout, const tsr_mesh *mesh, int seed, int64_t limit, tsr_dtensor **out);

/** Room for values of outputs. */
#define WHOLE_ROOM 4096

/** A program that ran: values of all outputs, whole, one after the other. */
typedef struct ran {
    size_t count;
    double values[WHOLE_ROOM];
    size_t workspace;
} ran;

/** Records a program on a mesh. */
typedef void tsr_recorder(tsr_program *program, const tsr_mesh *mesh, const void *arg);

/** Records, compiles, binds, prepares and runs twice, on this rank; inputs and parameters get
 * values of seeds 1, 2, .. in the order of recording; ids where they are integers. The two runs
 * must give the same bits. Collective over the mesh's communicator. */
tsr_status ran_run(tsr_comm *comm, const tsr_mesh *mesh, tsr_recorder *record, const void *arg, int64_t limit,
                   ran *out);

#endif
