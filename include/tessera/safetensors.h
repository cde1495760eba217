/**
 * @file
 * safetensors files, in which models are published: a reader that trusts nothing it reads, and a
 * writer. In libtessera-files (`pkg-config tessera-files`).
 * https://github.com/huggingface/safetensors#format
 *
 * A file is eight bytes with the header's length (little-endian), the header (JSON), and the
 * tensors' bytes without gaps. Every claim of a header is checked against the file. A model may lie
 * in several files beside an index, model.safetensors.index.json.
 *
 * Calls that are not marked collective do not communicate, and any thread may make them: an open
 * file is read-only, so all rank threads may share it.
 */
#ifndef TESSERA_SAFETENSORS_H
#define TESSERA_SAFETENSORS_H

#include <tessera/dtensor.h>

#ifdef __cplusplus
extern "C" {
#endif

/** The headers of one or several files. */
typedef struct tsr_safetensors tsr_safetensors;

/** A tensor in a file; the texts are borrowed from the tsr_safetensors. */
typedef struct tsr_safetensors_entry {
    const char *name;
    const char *path; /**< of the file that holds the tensor */
    tsr_dtype dtype;
    int ndim; /**< at most TSR_MAX_DIMS */
    int64_t shape[TSR_MAX_DIMS];
    int64_t offset; /**< of the first byte, from the beginning of the file */
    int64_t bytes;
} tsr_safetensors_entry;

/**
 * Reads the headers of `path`: a safetensors file; an index, whose name ends in ".index.json"; or a
 * folder with model.safetensors, or else with model.safetensors.index.json. No file is kept open.
 * The caller owns `*out`. TSR_ERROR_IO: a file cannot be read. TSR_ERROR_ARGUMENT: a file is
 * truncated, its header violates the format or has a dtype that Tessera lacks, tensors overlap,
 * leave gaps or have a size that does not fit their shape, or the index names a file in another
 * folder or a tensor that its file lacks. The sentence names the file.
 */
TSR_API tsr_status tsr_safetensors_open(const char *path, tsr_safetensors **out);

/** tsr_safetensors_open() of a whole file in memory, which error sentences and entries call `name`.
 * Keeps no pointer to `data`. The caller owns `*out`. */
TSR_API tsr_status tsr_safetensors_parse(const char *name, const void *data, size_t bytes,
                                         tsr_safetensors **out);

/** Frees the headers; NULL is fine. */
TSR_API void tsr_safetensors_destroy(tsr_safetensors *file);

/** The number of tensors. */
TSR_API size_t tsr_safetensors_count(const tsr_safetensors *file);

/** Tensor `index`, in the order of the names' bytes; borrowed. NULL from the count on. */
TSR_API const tsr_safetensors_entry *tsr_safetensors_get(const tsr_safetensors *file, size_t index);

/** Finds the tensor called `name`. Borrowed; NULL: the file has no tensor of this name. */
TSR_API const tsr_safetensors_entry *tsr_safetensors_find(const tsr_safetensors *file,
                                                          const char *name);

/** The text that the file's metadata has for `key`, of several files the first that has it;
 * borrowed. NULL if there is none. */
TSR_API const char *tsr_safetensors_metadata(const tsr_safetensors *file, const char *key);

/**
 * Distributes the tensor called `name` to `layout`, whose shape must be the tensor's, by
 * tsr_distribute_file(): each rank reads only the bytes that its layout owns. Where the layout's
 * dtype differs, floating types are converted, rounding once. `*bytes_read`, where not NULL, gets
 * the number of bytes that this rank read. The caller owns `*out`. TSR_ERROR_ARGUMENT: there is no
 * such tensor, or its shape is another one.
 */
TSR_API tsr_status tsr_safetensors_distribute(const tsr_safetensors *file, const char *name,
                                              const tsr_layout *layout, int64_t *bytes_read,
                                              tsr_dtensor **out);

/**
 * tsr_safetensors_distribute() of a stack whose slices along dim 0 the file holds by themselves, as
 * checkpoints hold experts: `*` in a pattern stands for the index, "experts.*.down_proj.weight" for
 * experts.0.down_proj.weight and so on. Each of the `count` patterns has one `*`. Where there are
 * several, such as of gate and up, the tensors of an index are joined along their dim 0, in the
 * order of the patterns. Slices may lie in several files and have several dtypes. Each rank reads
 * only the bytes that its layout owns; `bytes_read` and `out` are as there. TSR_ERROR_ARGUMENT: a
 * slice is missing or has another shape, there are more of them than the layout's dim 0 has, or
 * the tensors of an index do not add up to the layout's dim 1.
 */
TSR_API tsr_status tsr_safetensors_distribute_stacked(const tsr_safetensors *file, size_t count,
                                                      const char *const *patterns,
                                                      const tsr_layout *layout, int64_t *bytes_read,
                                                      tsr_dtensor **out);

/** A tensor to write. */
typedef struct tsr_safetensors_tensor {
    const char *name;     /**< UTF-8; not "__metadata__" */
    const tsr_dtensor *x; /**< borrowed */
    tsr_dtype dtype;      /**< how it is stored; TSR_DTYPE_NONE: in x's dtype */
} tsr_safetensors_tensor;

/** A line of a file's metadata, in UTF-8. */
typedef struct tsr_safetensors_text {
    const char *key, *value;
} tsr_safetensors_text;

/** Options of tsr_safetensors_write(). */
typedef struct tsr_safetensors_write_options {
    size_t size;                          /**< sizeof(tsr_safetensors_write_options) */
    size_t metadata_count;                /**< number of `metadata` */
    const tsr_safetensors_text *metadata; /**< such as {"format", "pt"}; borrowed for the call */
} tsr_safetensors_write_options;

/** No metadata. */
#define TSR_SAFETENSORS_WRITE_OPTIONS_INIT                                                         \
    {                                                                                              \
        sizeof(tsr_safetensors_write_options), 0, NULL                                             \
    }

/**
 * Collective: writes `count` dtensors, at least one, all over one communicator, to a new file at
 * `path`, by tsr_dtensor_write_as(): each rank writes what it owns. `options` may be NULL. Tensors
 * lie in the file by the size of their elements, the largest first, and by name, so that each is
 * aligned. Rank 0 writes the header, and renames the file when all ranks are done. A failure of one
 * rank is told to all, and leaves an older file as it was.
 *
 * All ranks give the same arguments, in any order of the tensors, and their paths lead to one
 * folder. TSR_ERROR_ARGUMENT: a name or key comes twice or is not UTF-8, or ranks differ.
 * TSR_ERROR_UNSUPPORTED: the format lacks a dtype, or a conversion as of tsr_dtensor_write_as().
 * TSR_ERROR_IO: the file cannot be written, or `path` exists and is not a regular file. A rank none
 * of whose tensors has an `x` returns alone.
 */
TSR_API tsr_status tsr_safetensors_write(const char *path, size_t count,
                                         const tsr_safetensors_tensor *tensors,
                                         const tsr_safetensors_write_options *options);

/** A dtensor to read into. */
typedef struct tsr_safetensors_target {
    const char *name; /**< of the tensor in the file */
    tsr_dtensor *x;   /**< borrowed */
} tsr_safetensors_target;

/**
 * Collective, and the inverse of tsr_safetensors_write(): reads tensors of the file, index or
 * folder at `path` (tsr_safetensors_open()) into `count` dtensors that exist, at least one, all
 * over one communicator, by tsr_distribute_file_into(). Each rank reads only what it owns, and
 * floating types are converted, rounding once. Other tensors of the file are left out.
 *
 * A failure of one rank is told to all. A file that lacks a tensor, has it in another shape or
 * dtype, or is truncated, is refused before any dtensor is written; if it cannot be read later, the
 * dtensors' elements are undefined. TSR_ERROR_ARGUMENT: as of tsr_safetensors_open(), and a name
 * that the file lacks, a shape that differs, a name or `x` that is NULL. TSR_ERROR_UNSUPPORTED: a
 * conversion as of tsr_distribute_file(). A rank none of whose targets has an `x` returns alone.
 */
TSR_API tsr_status tsr_safetensors_restore(const char *path, size_t count,
                                           const tsr_safetensors_target *targets);

#ifdef __cplusplus
}
#endif

#endif
