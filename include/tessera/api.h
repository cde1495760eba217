/**
 * @file
 * How public functions are marked: everything without TSR_API stays inside the shared libraries.
 */
#ifndef TESSERA_API_H
#define TESSERA_API_H

#if defined(__GNUC__)
/** Marks what the shared libraries export. */
#define TSR_API __attribute__((visibility("default")))
/** Lets compilers check a format, argument `format`, against the arguments from `first` on. */
#define TSR_PRINTF(format, first) __attribute__((__format__(__printf__, format, first)))
#else
#define TSR_API
#define TSR_PRINTF(format, first)
#endif

/** The most dims that a mesh, and that a tensor, may have. */
#define TSR_MAX_DIMS 8

#endif
