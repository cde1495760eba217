/* Programs of one custom call, on devices of XLA's CPU plugin. */
#ifndef TSR_TESTS_HOSTS_XLA_SUPPORT_H
#define TSR_TESTS_HOSTS_XLA_SUPPORT_H

#include "pjrt.h"

enum { SUPPORT_DIMS = 3, SUPPORT_ARRAYS = 6 };

/* An operand or a result: one array for each partition, in one block of memory. */
typedef struct support_array {
    const char *type; /* MLIR's name of the dtype: "f32" */
    int ndim;         /* at least 1 */
    int64_t dims[SUPPORT_DIMS];
    void *data;
} support_array;

/* A custom call with its operands and results. */
typedef struct support_call {
    const char *target, *attributes; /* attributes: "mesh = \"tp=4\", axis = 1 : i64" */
    size_t operands, results;
    support_array arrays[SUPPORT_ARRAYS]; /* the operands, then the results */
} support_call;

/* The plugin with four devices, with all handlers registered: opened by the first call. A test
 * program that cannot open it fails. */
const xla_host *support_host(void);

size_t support_bytes(const support_array *array); /* of one partition's array */

/* The StableHLO text of a program that makes the calls, which do not depend on one another. Its
 * arguments and results are those of all calls in turn. The caller frees it. */
char *support_text(const support_call *calls, size_t count, size_t partitions);

/* The buffers of a program: arguments with copies of the calls' operands. */
typedef struct support_buffers {
    size_t partitions, arguments, results;
    PJRT_Buffer **in[8], **out[8]; /* those of each partition */
} support_buffers;

void support_buffers_create(const support_call *calls, size_t count, size_t partitions, const int64_t *devices,
                            support_buffers *out);
void support_results_read(const support_call *calls, size_t count, const support_buffers *buffers);
void support_results_destroy(support_buffers *buffers);
void support_buffers_destroy(support_buffers *buffers);

/* Compiles, runs once and reads the results. Returns what failed, as text that the caller frees. */
char *support_run(const support_call *calls, size_t count, size_t partitions, const int64_t *devices,
                  const xla_launch *launch);

/* Fails the test with `why`, if that is not NULL. */
void support_check(char *why);

/* Fails the test unless `why` contains `words`; frees it. */
void support_refused(char *why, const char *words);

#endif
