/** Numbers and texts as bytes that every machine reads alike: little-endian, of fixed width,
 * without gaps; and the frame around them. Nothing here allocates. */
#ifndef TSR_OPS_PROGRAMS_SAVED_BYTES_H
#define TSR_OPS_PROGRAMS_SAVED_BYTES_H

#include <tessera/status.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** Begins as {.buffer = ..}, which has room for all; NULL: the bytes are counted. */
typedef struct tsr_packer {
    unsigned char *buffer;
    size_t length; /**< bytes so far */
} tsr_packer;

void tsr_pack(tsr_packer *packer, const void *bytes, size_t count);
void tsr_pack_u32(tsr_packer *packer, uint32_t value);
void tsr_pack_i64(tsr_packer *packer, int64_t value);
void tsr_pack_f64(tsr_packer *packer, double value);      /**< its IEEE 754 bits */
void tsr_pack_text(tsr_packer *packer, const char *text); /**< with the NUL */

/** The frame: magic of 8 characters, u32 version, u64 bytes in all; at the end u64 checksum of all
 * before it. */
#define TSR_PACKED_HEAD_BYTES     20
#define TSR_PACKED_CHECKSUM_BYTES 8

/** Begins a frame; `bytes` in all. */
void tsr_pack_begin(tsr_packer *packer, const char *magic, uint32_t version, size_t bytes);

/** Ends a frame that began at the packer's first byte. */
void tsr_pack_end(tsr_packer *packer);

/** Past the end every number reads as 0 and every text as "", and `ended` stays set. */
typedef struct tsr_unpacker {
    const unsigned char *at;
    size_t left;
    bool ended;
} tsr_unpacker;

/** The next `count` bytes, borrowed; NULL if there are fewer. */
const unsigned char *tsr_unpack(tsr_unpacker *unpacker, size_t count);
uint32_t tsr_unpack_u32(tsr_unpacker *unpacker);
int64_t tsr_unpack_i64(tsr_unpacker *unpacker);
double tsr_unpack_f64(tsr_unpacker *unpacker);
const char *tsr_unpack_text(tsr_unpacker *unpacker); /**< borrowed from the bytes */

/** Opens a frame: what is between head and checksum. `what` names the object in errors.
 * TSR_ERROR_ARGUMENT: no such frame, cut short or damaged. TSR_ERROR_UNSUPPORTED: another version.
 */
tsr_status tsr_unpack_open(const char *caller, const char *what, const char *magic, uint32_t version, const void *bytes,
                           size_t size, tsr_unpacker *out);

#endif
