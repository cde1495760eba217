/** What the system tells about threads. The functions read files: for slow paths, with cancellation
 * disabled. */
#ifndef TSR_COMM_ENGINES_THREADS_PROCESS_H
#define TSR_COMM_ENGINES_THREADS_PROCESS_H

#include <stdint.h>

/** How many threads this process has; 0: not known. */
int64_t tsr_process_threads(void);

/** How many threads the system allows all processes together; 0: not known. */
int64_t tsr_process_most_threads(void);

#endif
