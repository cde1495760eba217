/**
 * NumPy's .npy files: a reader that trusts nothing it reads, and a writer.
 *
 * The format is NumPy's own (numpy.lib.format): the magic "\x93NUMPY", two bytes of version, the length of the header (2 bytes in version
 * 1, 4 bytes in versions 2 and 3, little-endian), a Python dict with exactly the keys descr, fortran_order and shape, then the elements.
 * bf16, f8e4m3 and f8e5m2, which NumPy lacks, travel as unsigned integers (tsr_dtype_info.npy). None of these calls communicates; any
 * thread.
 */
#ifndef TESSERA_TOOLS_FILES_NPY_H
#define TESSERA_TOOLS_FILES_NPY_H

#include "files/fresh_file.h"

#include <tessera/tensor.h>

/** What a file says about itself. */
typedef struct npy_header {
    tsr_dtype dtype; /**< as the descr reads: u16 for "<u2" */
    bool big_endian; /**< elements are stored with their bytes reversed; never set for one-byte dtypes */
    bool fortran;    /**< the first dim runs fastest */
    int ndim;        /**< at most TSR_MAX_DIMS */
    int64_t shape[TSR_MAX_DIMS];
    size_t data;  /**< where the elements begin */
    size_t bytes; /**< how long they are: data + bytes is the size of the file */
} npy_header;

/**
 * Reads the header of a whole file of `size` bytes, and checks that the elements which it promises are all that follows. Pure. Reads
 * what NumPy reads without pickle, less structured and non-numeric dtypes and bytes after the last element. TSR_ERROR_IO: the bytes are
 * no such file; TSR_ERROR_UNSUPPORTED: they are, but of a dtype, version or number of dims that Tessera does not have.
 */
tsr_status npy_header_parse(const void *file, size_t size, npy_header *out);

/** The same where only the first `known` of the file's `size` bytes are at hand: TSR_ERROR_UNSUPPORTED also where the header is longer. */
tsr_status npy_header_parse_beginning(const void *file, size_t known, size_t size, npy_header *out);

/** Room for any header that npy_header_print() makes. */
#define NPY_HEADER_BYTES 384

/** Writes a version 1.0 header for a row-major tensor; its length, a multiple of 64, is at most NPY_HEADER_BYTES. */
size_t npy_header_print(tsr_dtype dtype, int ndim, const int64_t *shape, char header[NPY_HEADER_BYTES]);

/** A file whose header was read, and then its elements. */
typedef struct npy_file {
    char *path; /**< on the heap; NULL for a file that is not open */
    npy_header header;
    void *memory; /**< what npy_load() read; NULL before */
    tsr_tensor
        tensor; /**< row-major or, for a Fortran-order file, strided; data is NULL before npy_load(), then little-endian and aligned */
} npy_file;

/** Reads the header of `path`, which must be a regular file. Free it with npy_close(). Errors as npy_header_parse(), and TSR_ERROR_IO where
 * the file cannot be read; the sentence names the file. */
tsr_status npy_open(const char *path, npy_file *out);

/** Reads the elements into memory, once. TSR_ERROR_IO: the file is another than npy_open() found, or ends early; TSR_ERROR_MEMORY. */
tsr_status npy_load(npy_file *file);

/** True if the elements lie in the file as the library reads them: row-major and little-endian, from byte header.data on. */
bool npy_is_plain(const npy_file *file);

/** Says that the elements are of `dtype`, which must travel with the same descr: bf16 for "<u2". TSR_ERROR_ARGUMENT names both. */
tsr_status npy_retype(npy_file *file, tsr_dtype dtype);

/** A zeroed or closed file is fine. */
void npy_close(npy_file *file);

/** Writes a contiguous host tensor: format 1.0, C order, little-endian. False, with errno set, where not all of it could be written. */
bool npy_write(int file, const tsr_tensor *tensor);

/** npy_write() to `path`, all at once: a failure leaves there what was there before. What is no regular file (a pipe, a device) is written
 * to as it is. */
tsr_status npy_save(const char *path, const tsr_tensor *tensor);

/** The two halves of npy_save(): all that may well fail, and giving the file its name. Between them fresh_file_discard() undoes the
 * first. */
tsr_status npy_prepare(const char *path, const tsr_tensor *tensor, fresh_file *out);
tsr_status npy_publish(const char *path, fresh_file *file);

#endif
