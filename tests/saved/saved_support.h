/** Plans from text, their saved bytes, and hands on those bytes: numbers put where they stand, lengths and checksums made right again. */
#ifndef TESTS_SAVED_SUPPORT_H
#define TESTS_SAVED_SUPPORT_H

#include <stdint.h>
#include <tessera/saved.h>

typedef struct saved_bytes {
    unsigned char *at;
    size_t size;
} saved_bytes;

/** One move as text: meshes as "2x4@8", shape as "6x4". `to_mesh` NULL: the same mesh object. */
typedef struct saved_move {
    const char *from_mesh, *to_mesh, *shape, *from, *to;
    tsr_dtype dtype;
    tsr_nodes nodes; /**< that the source's mesh knows */
} saved_move;

/** A plan, or a failed test. `options` NULL: defaults, which on abstract meshes means nobody's plan. */
tsr_plan *plan_of(const saved_move *move, const tsr_plan_options *options);

/** All of a plan's bytes, to be freed with bytes_free(). */
saved_bytes bytes_of(const tsr_plan *plan);
saved_bytes bytes_copy(const saved_bytes *bytes);
void bytes_free(saved_bytes *bytes);

/** Where the fixed numbers stand: see the library's description of the format. */
enum { AT_VERSION = 8, AT_LENGTH = 12, AT_MODE = 20, AT_HASH = 84, AT_ITEMS = 92, AT_FIRST_ITEM = 100, FRAME_BYTES = 28 };

/** Little-endian, of `width` bytes. */
void put_number(saved_bytes *bytes, size_t at, int width, uint64_t value);
uint64_t get_number(const saved_bytes *bytes, size_t at, int width);

/** Makes length and checksum right, so that what else is wrong is what a reader finds. */
void seal(saved_bytes *bytes);

/** Fails unless saving `plan` gives `bytes`. */
void expect_bytes(const tsr_plan *plan, const saved_bytes *bytes);

#endif
