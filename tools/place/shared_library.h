/** Opening shared libraries by name. */
#ifndef TESSERA_TOOLS_PLACE_SHARED_LIBRARY_H
#define TESSERA_TOOLS_PLACE_SHARED_LIBRARY_H

/** dlopen() of `file`. If it returns NULL, dlerror() tells why, and errno is ENOMEM if memory is
 * short, else 0. */
void *shared_library_open(const char *file, int flags);

/** dlerror()'s reason why shared_library_open() returned NULL; opens once more if the reason itself
 * lacked memory. Valid until the next call of the loader. */
const char *shared_library_reason(const char *file, int flags);

#endif
