/**
 * NumPy's .npy files: a reader that trusts nothing it reads, and a writer.
 *
 * The format is NumPy's own (numpy.lib.format): the magic "\x93NUMPY", two bytes of version, the length of the header (2 bytes in version
 * 1, 4 bytes in versions 2 and 3, little-endian), a Python dict with exactly the keys descr, fortran_order and shape, then the elements.
 * bf16, f8e4m3 and f8e5m2, which NumPy lacks, travel as unsigned integers (tsr_dtype_info.npy). None of these calls communicates; any
 * thread.
 */
#ifndef TESSERA_TOOLS_NPY_H
#define TESSERA_TOOLS_NPY_H

#include <stdbool.h>
#include <stddef.h>
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

/** Room for any header that npy_header_print() makes. */
#define NPY_HEADER_BYTES 384

/** Writes a version 1.0 header for a row-major tensor; its length, a multiple of 64, is at most NPY_HEADER_BYTES. */
size_t npy_header_print(tsr_dtype dtype, int ndim, const int64_t *shape, char header[NPY_HEADER_BYTES]);

/** An open file: a private mapping, shared by all who read it, and a view of its elements. */
typedef struct npy_file {
    void *mapping;
    size_t size;
    tsr_tensor tensor; /**< row-major or, for a Fortran-order file, strided; little-endian and aligned in any case */
} npy_file;

/** Maps `path`, which must be a regular file. Free it with npy_close(). Errors as npy_header_parse(), and TSR_ERROR_IO where the file
 * cannot be read; the sentence names the file. */
tsr_status npy_open(const char *path, npy_file *out);

/** Says that the elements are of `dtype`, which must travel with the same descr: bf16 for "<u2". TSR_ERROR_ARGUMENT names both. */
tsr_status npy_retype(npy_file *file, const char *path, tsr_dtype dtype);

/** A zeroed or closed file is fine. */
void npy_close(npy_file *file);

/** Writes a contiguous host tensor to `path`: format 1.0, C order, little-endian. On failure nothing is left there. */
tsr_status npy_save(const char *path, const tsr_tensor *tensor);

#endif
