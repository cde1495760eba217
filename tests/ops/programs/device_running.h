/** Runs programs on a device and on the host, from the same shards, and compares what they
 * write. */
#ifndef TESTS_OPS_PROGRAMS_DEVICE_RUNNING_H
#define TESTS_OPS_PROGRAMS_DEVICE_RUNNING_H

#include "running.h"

#include <tessera/sys/device.h>

#include <stdbool.h>

/** A device under test. Rank r uses device r mod `devices`, with a stream of its own. */
typedef struct device_running {
    tsr_device_driver *driver;
    int devices;
    int64_t (*held_up)(void); /**< counts the thread's allocations and waits on devices; NULL: unknown */
} device_running;

/** What is compared: a program, and its inputs and parameters by seeds. */
typedef struct device_case {
    const char *name;
    tsr_recorder *record;
    const void *arg;
    int64_t limit; /**< ids are below it */
} device_case;

/** The most inputs, parameters and states of a program under test, and outputs. */
enum { DEVICE_RUN_MOST = 24 };

/** An executable on this rank's device, and all that a run takes. */
typedef struct device_run {
    const device_running *on;
    tsr_comm *comm;
    const tsr_device_table *table;
    void *self;
    tsr_device device;
    tsr_stream stream;
    tsr_executable *x;
    tsr_dtensor *named[DEVICE_RUN_MOST],
        *made[DEVICE_RUN_MOST]; /**< inputs, parameters and states, in the order of recording; outputs */
    tsr_tensor inputs[DEVICE_RUN_MOST], outputs[DEVICE_RUN_MOST];
    void *workspace;
    size_t bytes;
} device_run;

/** Records the program, compiles it for the rank's device, and makes tensors; `on` NULL: for the
 * host. device_run_close() goes with it, after a failure too. */
tsr_status device_run_open(tsr_comm *comm, const tsr_mesh *mesh, const device_case *c, const device_running *on,
                           device_run *out);

/** Prepares the executable, and takes workspace; collective. */
tsr_status device_run_prepare(device_run *r);

/** Gives a length, and the tensors the shapes that it makes, in the memory that they have;
 * collective. */
tsr_status device_run_set_length(device_run *r, const char *name, int64_t length);

/** Enqueues a run on the rank's stream; collective. */
tsr_status device_run_enqueue(device_run *r);

/** Waits for the rank's stream. */
tsr_status device_run_finish(const device_run *r);

void device_run_close(device_run *r);

/** Compares all outputs and states of two runs, byte for byte, after both are done. */
tsr_status device_run_compare(const device_case *c, const device_run *a, const device_run *b);

/** Runs a program on a mesh, given as text, on the host and twice in a row on the device, and
 * compares; on the device the second run must neither allocate nor wait. Collective. */
tsr_status device_check(tsr_comm *comm, const char *text, const device_case *c, const device_running *on);

#endif
