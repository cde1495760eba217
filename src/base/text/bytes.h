/**
 * Numbers as bytes that every machine reads alike: little-endian, of fixed width, without gaps.
 * Nothing here allocates.
 */
#ifndef TSR_BASE_TEXT_BYTES_H
#define TSR_BASE_TEXT_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** FNV-1a over bytes, 64 bits (Fowler, Noll and Vo). Texts that differ in one byte alone always
 * have different checksums. */
#define TSR_CHECKSUM_SEED UINT64_C(0xcbf29ce484222325)
uint64_t tsr_checksum(uint64_t checksum, const void *bytes, size_t count);

/** Begins as {.checksum = TSR_CHECKSUM_SEED} with `buffer`, where the bytes are written, or
 * `expected`, which they are compared with; without both, the bytes are only counted. */
typedef struct tsr_writer {
    unsigned char *buffer;
    const unsigned char *expected;
    size_t capacity;   /**< bytes of `buffer` or `expected` */
    size_t length;     /**< bytes so far, also those past the capacity */
    uint64_t checksum; /**< of all bytes so far */
    bool differs;      /**< the bytes differ from `expected`, or are more than `capacity` */
} tsr_writer;

void tsr_write_bytes(tsr_writer *writer, const void *bytes, size_t count);
void tsr_write_u32(tsr_writer *writer, uint32_t value);
void tsr_write_u64(tsr_writer *writer, uint64_t value);
void tsr_write_f64(tsr_writer *writer, double value); /**< its IEEE 754 bits */
void tsr_write_numbers(tsr_writer *writer, const int64_t *numbers, size_t count);
void tsr_write_text(tsr_writer *writer, const char *text); /**< with the NUL */

/** Past the end every number reads as 0 and every text as "", and `ended` stays set, so that a
 * caller reads a whole record and checks `ended` once. */
typedef struct tsr_reader {
    const unsigned char *at;
    size_t left;
    bool ended;
} tsr_reader;

/** The next `count` bytes, borrowed; NULL if there are fewer. */
const unsigned char *tsr_read_bytes(tsr_reader *reader, size_t count);
uint32_t tsr_read_u32(tsr_reader *reader);
uint64_t tsr_read_u64(tsr_reader *reader);
double tsr_read_f64(tsr_reader *reader);
void tsr_read_numbers(tsr_reader *reader, int64_t *numbers, size_t count);
const char *tsr_read_text(tsr_reader *reader); /**< borrowed from the bytes */

#endif
