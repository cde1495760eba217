/** Libraries that are opened by name. */
#ifndef TESSERA_TOOLS_PLACE_SHARED_LIBRARY_H
#define TESSERA_TOOLS_PLACE_SHARED_LIBRARY_H

/** dlopen(). NULL: dlerror() says why, and errno is ENOMEM if memory is short, else 0. */
void *shared_library_open(const char *file, int flags);

/** Why shared_library_open() gave NULL, as dlerror() says it. Where the loader lacked memory for its words alone it is asked
 * once more. Static, until the next call of the loader. */
const char *shared_library_reason(const char *file, int flags);

#endif
