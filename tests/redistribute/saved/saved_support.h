/** Makes plans from text and their saved bytes, and changes these: sets numbers, and corrects
 * lengths and checksums. */
#ifndef TESTS_SAVED_SUPPORT_H
#define TESTS_SAVED_SUPPORT_H

#include <tessera/saved.h>

#include <stdint.h>

typedef struct saved_bytes {
    unsigned char *at;
    size_t size;
} saved_bytes;

/** A move as text: meshes as "2x4@8", shape as "6x4". `to_mesh` NULL: the same mesh object. */
typedef struct saved_move {
    const char *from_mesh, *to_mesh, *shape, *from, *to;
    tsr_dtype dtype;
    tsr_nodes nodes; /**< nodes of the source's mesh */
} saved_move;

/** Makes a plan, or fails the test. `options` NULL: defaults, with TSR_RANK_NONE on abstract
 * meshes. */
tsr_plan *plan_of(const saved_move *move, const tsr_plan_options *options);

/** The saved bytes of a plan, which bytes_free() frees. */
saved_bytes bytes_of(const tsr_plan *plan);
saved_bytes bytes_copy(const saved_bytes *bytes);
void bytes_free(saved_bytes *bytes);

/** Offsets of fixed numbers in the library's format, in bytes. */
enum {
    AT_VERSION = 8,
    AT_LENGTH = 12,
    AT_MODE = 20,
    AT_HASH = 84,
    AT_ITEMS = 92,
    AT_FIRST_ITEM = 100,
    FRAME_BYTES = 28
};

/** Write and read a little-endian number of `width` bytes. */
void put_number(saved_bytes *bytes, size_t at, int width, uint64_t value);
uint64_t get_number(const saved_bytes *bytes, size_t at, int width);

/** Corrects length and checksum, so that a reader finds the other errors. */
void seal(saved_bytes *bytes);

/** Fails unless saving `plan` gives `bytes`. */
void expect_bytes(const tsr_plan *plan, const saved_bytes *bytes);

#endif
