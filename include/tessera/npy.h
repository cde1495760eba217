/**
 * @file
 * NumPy's .npy files: a reader that trusts nothing it reads, and writers. In libtessera-files
 * (`pkg-config tessera-files`).
 *
 * The format is NumPy's own (numpy.lib.format): the byte 0x93, NUMPY, two bytes of version, the
 * length of the header (2 bytes in version 1, 4 bytes in versions 2 and 3, little-endian), a Python
 * dict with exactly the keys descr, fortran_order and shape, then the elements. bf16, f8e4m3 and
 * f8e5m2, which NumPy lacks, travel as unsigned integers (tsr_dtype_info.npy): readers are told the
 * dtype.
 *
 * Calls that are not marked collective do not communicate. Any thread may make them; one at a time
 * may load or destroy a file.
 */
#ifndef TESSERA_NPY_H
#define TESSERA_NPY_H

#include <tessera/dtensor.h>
#include <tessera/new_file.h>

#ifdef __cplusplus
extern "C" {
#endif

/** The header of a file. */
typedef struct tsr_npy_header {
    tsr_dtype dtype; /**< by the descr: u16 for "<u2"; in an open file, that which was asked for */
    int big_endian;  /**< 1: elements are big-endian; 0 for one-byte dtypes */
    int fortran;     /**< 1: the first dim varies fastest */
    int ndim;        /**< at most TSR_MAX_DIMS */
    int64_t shape[TSR_MAX_DIMS];
    int64_t data;  /**< offset of the elements in the file, in bytes */
    int64_t bytes; /**< bytes of the elements; data + bytes is the size of the file */
} tsr_npy_header;

/**
 * Reads the header of a file of `size` bytes from its first `known`, and checks that exactly the
 * elements which it promises follow. Accepts what NumPy reads without pickle, except structured and
 * non-numeric dtypes and bytes after the last element. TSR_ERROR_IO: the bytes are not a .npy file;
 * TSR_ERROR_UNSUPPORTED: a .npy file of a dtype, version or number of dims that Tessera does not
 * have, or a header that is longer than `known`. TSR_ERROR_ARGUMENT: a pointer is NULL.
 */
TSR_API tsr_status tsr_npy_header_parse(const void *beginning, size_t known, size_t size,
                                        tsr_npy_header *out);

/** Upper bound of the bytes that tsr_npy_header_print() writes. */
#define TSR_NPY_HEADER_BYTES 384

/** Writes a version 1.0 header for a row-major little-endian tensor to `header`, which has room for
 * TSR_NPY_HEADER_BYTES; returns its length in bytes, a multiple of 64. Checks nothing: the dtype is
 * one, `ndim` is 0 to TSR_MAX_DIMS. */
TSR_API size_t tsr_npy_header_print(tsr_dtype dtype, int ndim, const int64_t *shape, char *header);

/** A file to read. */
typedef struct tsr_npy tsr_npy;

/**
 * Opens a file, which must be a regular one, and reads its header; the file itself is not kept
 * open. `dtype`: what the elements are, whose descr must be the file's, such as TSR_BF16 for "<u2";
 * TSR_DTYPE_NONE: what the descr says. The caller owns `*out`. Errors as tsr_npy_header_parse();
 * TSR_ERROR_IO: it cannot be read; TSR_ERROR_ARGUMENT: `dtype` has another descr. The sentence
 * names the file.
 */
TSR_API tsr_status tsr_npy_open(const char *path, tsr_dtype dtype, tsr_npy **out);

/** Frees the file, with the elements that were loaded; NULL is fine. */
TSR_API void tsr_npy_destroy(tsr_npy *file);

/** The header; borrowed. */
TSR_API const tsr_npy_header *tsr_npy_get_header(const tsr_npy *file);

/**
 * Reads all elements into memory of the file, once: a second call only returns them. `*out` is a
 * host tensor over them, borrowed: little-endian, aligned, row-major, or strided if the file is in
 * Fortran order. TSR_ERROR_IO: the header has changed since tsr_npy_open(), or the file ends early;
 * TSR_ERROR_MEMORY.
 */
TSR_API tsr_status tsr_npy_load(tsr_npy *file, tsr_tensor *out);

/**
 * Distributes the file's tensor to `layout`, whose shape must be the file's. Each rank reads only
 * the bytes that its layout owns; if elements are loaded, or the file is in Fortran order or
 * big-endian, all of them. Where the layout's dtype differs, floating types are converted, rounding
 * once. `*bytes_read`, where not NULL, gets the number of bytes that this rank read. The caller
 * owns `*out`. TSR_ERROR_ARGUMENT: the shapes differ. Else errors as tsr_distribute_file() and
 * tsr_npy_load().
 */
TSR_API tsr_status tsr_npy_read(const tsr_npy *file, const tsr_layout *layout, int64_t *bytes_read,
                                tsr_dtensor **out);

/** Opens a file and distributes it over `mesh` by `placements` ("S(0),R", placement.h), in its own
 * dtype: tsr_npy_open(), tsr_layout_parse(), tsr_npy_read(). The caller owns `*out`. */
TSR_API tsr_status tsr_npy_distribute(const char *path, const tsr_mesh *mesh,
                                      const char *placements, tsr_dtensor **out);

/** Writes a contiguous host tensor to a new file at `path`: format 1.0, C order, little-endian. All
 * or nothing: a failure leaves an older file as it was. If `path` exists and is not a regular file
 * (a pipe, a device), it is written to in place. TSR_ERROR_ARGUMENT: the tensor is strided, or not
 * on the host. */
TSR_API tsr_status tsr_npy_save(const char *path, const tsr_tensor *tensor);

/** The first half of tsr_npy_save(): writes all of the file under a random name. The second is
 * tsr_new_file_publish(), or tsr_new_file_discard(). `*out` is NULL if `path` was written to in
 * place. */
TSR_API tsr_status tsr_npy_prepare(const char *path, const tsr_tensor *tensor, tsr_new_file **out);

/**
 * Collective: writes the global tensor of `x` to a new .npy file at `path`, stored as `dtype`
 * (TSR_DTYPE_NONE: x's own), by tsr_dtensor_write_as(). Rank 0 writes the header, and renames the
 * file when all ranks are done. A failure of one rank is told to all, and leaves an older file as
 * it was. All ranks give the same arguments, and their paths lead to one folder. TSR_ERROR_IO also
 * if `path` exists and is not a regular file. A rank whose `x` is NULL returns alone.
 */
TSR_API tsr_status tsr_npy_write(const tsr_dtensor *x, const char *path, tsr_dtype dtype);

/**
 * Collective, and the inverse of tsr_npy_write(): reads the file into `x`, a dtensor that exists,
 * by tsr_distribute_file_into(). `dtype` is what the elements of the file are, TSR_DTYPE_NONE: x's
 * own; else floating types are converted, rounding once. The file may have been written under any
 * layout, on any number of ranks; each rank reads only what it owns, but of files in Fortran order
 * and big-endian ones all, and for these takes memory for its part once more.
 *
 * A failure of one rank is told to all. A file of another dtype or shape, or one that is truncated,
 * is refused before `x` is written; if it cannot be read later, the elements of `x` are undefined.
 * TSR_ERROR_UNSUPPORTED: a conversion as of tsr_distribute_file(). Else errors as of
 * tsr_npy_open(); TSR_ERROR_ARGUMENT: the shapes differ. A rank whose `x` is NULL returns alone.
 */
TSR_API tsr_status tsr_npy_restore(tsr_dtensor *x, const char *path, tsr_dtype dtype);

#ifdef __cplusplus
}
#endif

#endif
