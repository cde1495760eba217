/**
 * @file
 * Marks of public functions. A function without TSR_API stays inside the shared libraries.
 */
#ifndef TESSERA_API_H
#define TESSERA_API_H

#if defined(__GNUC__)
/** Exports a function from the shared libraries. */
#define TSR_API __attribute__((visibility("default")))
/** Lets compilers check the format string, argument number `format`, against the arguments from
 * number `first` on. */
#define TSR_PRINTF(format, first) __attribute__((__format__(__printf__, format, first)))
#else
#define TSR_API
#define TSR_PRINTF(format, first)
#endif

/** The null pointer of the initializers, for C and C++ without warnings. */
#ifdef __cplusplus
#define TSR_NULL nullptr
#else
#define TSR_NULL 0
#endif

/** The most dims that a mesh, and that a tensor, may have. */
#define TSR_MAX_DIMS 8

#endif
