/**
 * @file
 * How a program opens libraries of Tessera's own that it is not linked with, such as
 * libtessera-cuda, or a back end that is installed beside them.
 */
#ifndef TESSERA_SYS_LIBRARY_H
#define TESSERA_SYS_LIBRARY_H

#include <tessera/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * dlopen() of `file`, a soname without a folder: the file of this name in a folder of
 * LD_LIBRARY_PATH, else the one beside libtessera-core, else what the loader finds. `flags` are
 * those of dlopen(). The caller closes `*out` with dlclose(), or leaves it open.
 * TSR_ERROR_UNAVAILABLE: it cannot be opened, with the loader's reason, which names the file;
 * TSR_ERROR_MEMORY: for lack of memory. Any thread.
 */
TSR_API tsr_status tsr_library_load(const char *file, int flags, void **out);

#ifdef __cplusplus
}
#endif

#endif
