/** Opening libraries at run time; the call for back ends is in sys/library.h. */
#ifndef TSR_COMM_RUN_LIBRARY_H
#define TSR_COMM_RUN_LIBRARY_H

#include <tessera/sys/library.h>

#include <stdbool.h>

/** True if `library`, from dlopen(), calls this very copy of libtessera-core, and not another one:
 * a program that is linked with libtessera-core.a has its own. */
bool tsr_library_shares_core(void *library);

/** dlsym() of `name` into `*function`, a pointer to a pointer to a function. False if there is
 * none. */
bool tsr_library_find(void *library, const char *name, void *function);

#endif
