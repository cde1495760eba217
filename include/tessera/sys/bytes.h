/**
 * @file
 * Objects as bytes that every machine reads alike: numbers are little-endian, of fixed width,
 * without gaps, and a frame around them tells other bytes, other versions and damage. For libraries
 * that save objects as Tessera saves plans. Nothing here allocates or communicates; a writer or
 * reader is one thread's.
 */
#ifndef TESSERA_SYS_BYTES_H
#define TESSERA_SYS_BYTES_H

#include <tessera/status.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Begins with `buffer`, where the bytes are written, or `expected`, which they are compared with,
 * and else with zeros; without both, the bytes are only counted. */
typedef struct tsr_writer {
    unsigned char *buffer;
    const unsigned char *expected;
    size_t capacity;   /**< bytes of `buffer` or `expected` */
    size_t length;     /**< bytes so far, also those past the capacity */
    uint64_t checksum; /**< of all bytes so far */
    bool differs;      /**< the bytes differ from `expected`, or are more than `capacity` */
} tsr_writer;

/** Writes `count` bytes. */
TSR_API void tsr_write_bytes(tsr_writer *writer, const void *bytes, size_t count);

/** @{ */
/** Writes a number; of an f64 its IEEE 754 bits. */
TSR_API void tsr_write_u32(tsr_writer *writer, uint32_t value);
TSR_API void tsr_write_u64(tsr_writer *writer, uint64_t value);
TSR_API void tsr_write_i64(tsr_writer *writer, int64_t value);
TSR_API void tsr_write_f64(tsr_writer *writer, double value);
/** @} */

/** Writes `count` numbers, one after the other. */
TSR_API void tsr_write_numbers(tsr_writer *writer, const int64_t *numbers, size_t count);

/** Writes a text, with its NUL. */
TSR_API void tsr_write_text(tsr_writer *writer, const char *text);

/** Past the end every number reads as 0 and every text as "", and `ended` stays set, so that a
 * caller reads a whole record and checks `ended` once. */
typedef struct tsr_reader {
    const unsigned char *at;
    size_t left;
    bool ended;
} tsr_reader;

/** The next `count` bytes, borrowed; NULL if there are fewer. */
TSR_API const unsigned char *tsr_read_bytes(tsr_reader *reader, size_t count);

/** @{ */
/** The next number. */
TSR_API uint32_t tsr_read_u32(tsr_reader *reader);
TSR_API uint64_t tsr_read_u64(tsr_reader *reader);
TSR_API int64_t tsr_read_i64(tsr_reader *reader);
TSR_API double tsr_read_f64(tsr_reader *reader);
/** @} */

/** The next `count` numbers. */
TSR_API void tsr_read_numbers(tsr_reader *reader, int64_t *numbers, size_t count);

/** The next text, borrowed from the bytes. */
TSR_API const char *tsr_read_text(tsr_reader *reader);

/** Bytes of a frame beside what is in it. */
#define TSR_FRAME_BYTES 28

/** The frame of one kind of object: `magic`, u32 version, u64 bytes in all, what is in it, u64
 * checksum of all before it. */
typedef struct tsr_frame {
    const char *what;        /**< names the object in errors: "plan" */
    const char *magic;       /**< 8 characters */
    uint32_t oldest, newest; /**< versions that are read */
} tsr_frame;

/** Begins a frame at the writer's first byte; `bytes` in all, or 0 while they are counted. */
TSR_API void tsr_write_frame(tsr_writer *writer, const tsr_frame *frame, uint32_t version,
                             size_t bytes);

/** Ends the frame. */
TSR_API void tsr_write_frame_end(tsr_writer *writer);

/** Opens a frame: `*out` reads what is in it, of version `*version`, which may be NULL. `caller`
 * begins sentences. TSR_ERROR_ARGUMENT: the bytes are no such frame, cut short or damaged.
 * TSR_ERROR_UNSUPPORTED: the version is not one that is read. */
TSR_API tsr_status tsr_read_frame(const char *caller, const tsr_frame *frame, const void *bytes,
                                  size_t size, uint32_t *version, tsr_reader *out);

#ifdef __cplusplus
}
#endif

#endif
