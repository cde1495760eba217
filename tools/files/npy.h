/**
 * NumPy's .npy files: a reader that trusts nothing it reads, and a writer.
 *
 * The format is NumPy's own (numpy.lib.format): the magic "\x93NUMPY", two bytes of version, the
 * length of the header (2 bytes in version 1, 4 bytes in versions 2 and 3, little-endian), a Python
 * dict with exactly the keys descr, fortran_order and shape, then the elements. bf16, f8e4m3 and
 * f8e5m2, which NumPy lacks, travel as unsigned integers (tsr_dtype_info.npy). None of these calls
 * communicates; any thread.
 */
#ifndef TESSERA_TOOLS_FILES_NPY_H
#define TESSERA_TOOLS_FILES_NPY_H

#include "files/fresh_file.h"

#include <tessera/tensor.h>

/** The header of a file. */
typedef struct npy_header {
    tsr_dtype dtype; /**< by the descr: u16 for "<u2" */
    bool big_endian; /**< elements are big-endian; false for one-byte dtypes */
    bool fortran;    /**< the first dim varies fastest */
    int ndim;        /**< at most TSR_MAX_DIMS */
    int64_t shape[TSR_MAX_DIMS];
    size_t data;  /**< offset of the elements in the file, in bytes */
    size_t bytes; /**< bytes of the elements; data + bytes is the size of the file */
} npy_header;

/**
 * Reads the header of a whole file of `size` bytes, and checks that exactly the elements which it
 * promises follow. Pure. Accepts what NumPy reads without pickle, except structured and non-numeric
 * dtypes and bytes after the last element. TSR_ERROR_IO: the bytes are not a .npy file;
 * TSR_ERROR_UNSUPPORTED: a .npy file of a dtype, version or number of dims that Tessera does not
 * have.
 */
tsr_status npy_header_parse(const void *file, size_t size, npy_header *out);

/** npy_header_parse() on the first `known` of the file's `size` bytes: TSR_ERROR_UNSUPPORTED also
 * for a header that is longer than `known`. */
tsr_status npy_header_parse_beginning(const void *file, size_t known, size_t size, npy_header *out);

/** Upper bound of the bytes that npy_header_print() writes. */
#define NPY_HEADER_BYTES 384

/** Writes a version 1.0 header for a row-major tensor; returns its length in bytes, a multiple of
 * 64. */
size_t npy_header_print(tsr_dtype dtype, int ndim, const int64_t *shape, char header[NPY_HEADER_BYTES]);

/** A file to read: npy_open() reads the header, npy_load() the elements. */
typedef struct npy_file {
    char *path; /**< on the heap; NULL if the file is not open */
    npy_header header;
    void *memory;      /**< elements that npy_load() read; NULL before that */
    tsr_tensor tensor; /**< the elements as a tensor: row-major, or strided for a Fortran-order file; data is NULL
                          before npy_load(), then little-endian and aligned */
} npy_file;

/** Reads the header of `path`, which must be a regular file. The caller frees `out` with
 * npy_close(). Errors as npy_header_parse(), and TSR_ERROR_IO if the file cannot be read; the
 * sentence names the file. */
tsr_status npy_open(const char *path, npy_file *out);

/** Reads the elements into memory; a second call does nothing. TSR_ERROR_IO: the header has changed
 * since npy_open(), or the file ends early; TSR_ERROR_MEMORY. */
tsr_status npy_load(npy_file *file);

/** True if the file holds the elements row-major and little-endian, as the library reads them, from
 * byte header.data on. */
bool npy_is_plain(const npy_file *file);

/** Makes the dtype of the elements `dtype`, whose descr must be that of the file: bf16 for "<u2".
 * TSR_ERROR_ARGUMENT, naming both, for another descr. */
tsr_status npy_retype(npy_file *file, tsr_dtype dtype);

/** Frees the file's memory; a zeroed or closed file is fine. */
void npy_close(npy_file *file);

/** Writes a contiguous host tensor to the descriptor `file`: format 1.0, C order, little-endian.
 * False, with errno set, if part of it cannot be written. */
bool npy_write(int file, const tsr_tensor *tensor);

/** npy_write() to `path`, all or nothing: a failure leaves an older file as it was. If `path`
 * exists and is not a regular file (a pipe, a device), it is written to in place. */
tsr_status npy_save(const char *path, const tsr_tensor *tensor);

/** The two halves of npy_save(): npy_prepare() writes the file under a temporary name,
 * npy_publish() renames it to `path`. Between them fresh_file_discard() undoes the first. */
tsr_status npy_prepare(const char *path, const tsr_tensor *tensor, fresh_file *out);
tsr_status npy_publish(const char *path, fresh_file *file);

#endif
