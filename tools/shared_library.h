/** Libraries that are opened by name. */
#ifndef TESSERA_TOOLS_SHARED_LIBRARY_H
#define TESSERA_TOOLS_SHARED_LIBRARY_H

/** dlopen(). NULL: dlerror() says why, and errno is ENOMEM if memory is short, else 0. */
void *shared_library_open(const char *file, int flags);

#endif
