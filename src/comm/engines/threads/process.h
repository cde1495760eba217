/** What the system tells of threads. Files are read: for slow paths, where the caller is not cancelled. */
#ifndef TSR_COMM_ENGINES_THREADS_PROCESS_H
#define TSR_COMM_ENGINES_THREADS_PROCESS_H

#include <stdint.h>

/** How many threads this process has; 0: not known. */
int64_t tsr_process_threads(void);

/** How many threads all processes together can have; 0: not known. */
int64_t tsr_process_most_threads(void);

#endif
