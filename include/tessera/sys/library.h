/**
 * @file
 * How a program opens libraries that it is not linked with: Tessera's own, such as libtessera-cuda,
 * and devices that others have made.
 */
#ifndef TESSERA_SYS_LIBRARY_H
#define TESSERA_SYS_LIBRARY_H

#include <tessera/sys/device.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * dlopen() of `file`: a path (text with a '/'), or a soname without a folder. Of a soname it is
 * the file of this name in a folder of LD_LIBRARY_PATH, else the one beside libtessera-core, else
 * what the loader finds. `flags` are those of dlopen(). The caller closes `*out` with dlclose(), or
 * leaves it open. TSR_ERROR_UNAVAILABLE: it cannot be opened, with the loader's reason, which names
 * the file; TSR_ERROR_MEMORY: for lack of memory. Any thread.
 */
TSR_API tsr_status tsr_library_load(const char *file, int flags, void **out);

/**
 * The function that a shared object with devices exports as `tessera_device`: makes a driver, as by
 * tsr_device_driver_create(). `context` is for memory and log, and is retained where the driver
 * needs it; NULL: defaults. Each call makes another driver. The caller owns `*out`.
 */
typedef tsr_status tsr_device_plugin(tsr_context *context, tsr_device_driver **out);

/**
 * Opens a shared object, as tsr_library_load() does, and makes a driver by its `tessera_device`.
 * The object stays in the process for good, since drivers outlive what they were made for. The
 * caller owns `*out`. TSR_ERROR_UNAVAILABLE: it cannot be opened, or exports no such function;
 * other errors are the function's own. Each sentence begins with `file` or the loader's reason,
 * which names it. Any thread; does not communicate.
 */
TSR_API tsr_status tsr_device_driver_load(tsr_context *context, const char *file,
                                          tsr_device_driver **out);

#ifdef __cplusplus
}
#endif

#endif
