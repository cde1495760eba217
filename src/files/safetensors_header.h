/** The header of one safetensors file: which tensor lies where. */
#ifndef TSR_FILES_SAFETENSORS_HEADER_H
#define TSR_FILES_SAFETENSORS_HEADER_H

#include <tessera/safetensors.h>

#include <jansson.h>

/** Upper bound of a header's bytes, and of an index's: that of the reference implementation. */
#define TSR_SAFETENSORS_HEADER_BYTES ((size_t)100000000)

typedef struct tsr_safetensors_header {
    size_t count;
    tsr_safetensors_entry *entries; /**< sorted by name; their `path` is borrowed from the caller */
    json_t *metadata;               /**< NULL: there is none */
} tsr_safetensors_header;

/** Reads the header from the first `known` of a file's `size` bytes. `path` outlives the header.
 * The caller frees `out` with tsr_safetensors_header_free(). */
tsr_status tsr_safetensors_header_parse(const char *path, const void *data, size_t known, size_t size,
                                        tsr_safetensors_header *out);

/** tsr_safetensors_header_parse() of a file on disk, of which only the header is read. */
tsr_status tsr_safetensors_header_read(const char *path, tsr_safetensors_header *out);

/** Frees the entries and the metadata; a zeroed header is fine. */
void tsr_safetensors_header_free(tsr_safetensors_header *header);

/** The entry called `name` among `count` that are sorted by name; NULL if there is none. */
const tsr_safetensors_entry *tsr_safetensors_among(const tsr_safetensors_entry *entries, size_t count,
                                                   const char *name);

/** Compares two entries by their names, for qsort(). */
int tsr_safetensors_by_name(const void *a, const void *b);

#endif
