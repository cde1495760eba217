/**
 * @file
 * The version of these headers. The build reads the library's version and soname from these three
 * numbers.
 */
#ifndef TESSERA_VERSION_H
#define TESSERA_VERSION_H

#include <tessera/api.h>

/** "major" of "major.minor.patch". */
#define TSR_VERSION_MAJOR 0
/** "minor" of "major.minor.patch". */
#define TSR_VERSION_MINOR 1
/** "patch" of "major.minor.patch". */
#define TSR_VERSION_PATCH 0

#ifdef __cplusplus
extern "C" {
#endif

/** The version of the library that was loaded, as "major.minor.patch". Static text; any thread;
 * does not communicate. */
TSR_API const char *tsr_version(void);

#ifdef __cplusplus
}
#endif

#endif
