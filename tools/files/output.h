/**
 * Writes a set of files to a folder: all of them, or none.
 *
 * Files are written under random names that begin with a dot, and renamed at the end. Signals that
 * would end the program are held from output_begin() to output_finish() or output_cancel(), so that
 * nothing is left behind; a closed reader of standard output (SIGPIPE) becomes a failure to write.
 * One output at a time. Functions return the tool's exit status, having complained if it is not 0.
 */
#ifndef TESSERA_TOOLS_FILES_OUTPUT_H
#define TESSERA_TOOLS_FILES_OUTPUT_H

#include <tessera/npy.h>

#include <signal.h>

/** Signals that are held. */
#define OUTPUT_SIGNALS 4

/** A file in the folder. */
typedef struct output_file {
    tsr_new_file *file; /**< NULL before it is made, and once it is published */
    char *path;         /**< on the heap */
} output_file;

typedef struct output {
    const char *directory;
    char *path;         /**< a copy of `directory`, from which output_cancel() removes folders; on the heap */
    size_t made;        /**< number of folders, from the end of the path, that output_begin() made */
    output_file *files; /**< the files written so far; on the heap */
    size_t count;       /**< number of `files` */
    size_t published;   /**< number of `files` that have got their names */
    struct sigaction before[OUTPUT_SIGNALS]; /**< the former actions of the signals */
} output;

/** Refuses a folder that cannot be written to; for use before the work begins. A folder that does
 * not exist passes. */
int output_check(const char *directory);

/** Makes the folder and its parents. After success, output_finish() or output_cancel() must
 * follow. */
int output_begin(const char *directory, output *out);

/** Begins an output of one file, which the caller writes, in a folder that is there. After it,
 * output_finish() or output_cancel() must follow. */
void output_begin_file(output *out);

/** Adds the complete file at `path`, so that output_cancel() removes it. */
int output_add_complete(output *o, const char *path);

/** Writes one .npy file under a random name, to be renamed to `name`, which is copied. */
int output_add(output *o, const char *name, const tsr_tensor *tensor);

/** Writes rank-N.npy for each rank N whose result has data, and renames all files to their
 * names. */
int output_add_ranks(output *o, const tsr_tensor *results, int ranks);

/** The name of a file without its folder, a part of `path`. */
const char *output_file_name(const char *path);

/** Renames all files to their names. */
int output_publish(output *o);

/** Ends the output and keeps the files. */
void output_finish(output *o);

/** Ends the output and removes every file and folder that it made, renamed or not. */
void output_cancel(output *o);

#endif
