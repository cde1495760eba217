/** Opening libraries at run time; the call for back ends is in sys/library.h. */
#ifndef TSR_COMM_RUN_LIBRARY_H
#define TSR_COMM_RUN_LIBRARY_H

#include <tessera/sys/library.h>

#include <stdbool.h>

/** dlsym() of `name` into `*function`, a pointer to a pointer to a function. False if there is
 * none. */
bool tsr_library_find(void *library, const char *name, void *function);

#endif
