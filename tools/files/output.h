/**
 * Writes a set of files to a folder: all of them, or none.
 *
 * Files are written under random names that begin with a dot, and renamed at the end. All memory
 * needed to remove a file is allocated before the file is made. Signals that would end the program
 * are held from output_begin() to output_finish() or output_cancel(), so that nothing is left
 * behind; a closed reader of standard output (SIGPIPE) becomes a failure to write. One output at a
 * time. Functions return the tool's exit status, having complained if it is not 0.
 */
#ifndef TESSERA_TOOLS_FILES_OUTPUT_H
#define TESSERA_TOOLS_FILES_OUTPUT_H

#include "files/fresh_file.h"

#include <tessera/tensor.h>

#include <signal.h>

/** Signals that are held, and bytes of the name of a file, with the NUL. */
#define OUTPUT_SIGNALS    4
#define OUTPUT_NAME_BYTES 32

/** A file in the folder. */
typedef struct output_file {
    char temporary[FRESH_NAME_BYTES]; /**< random name until output_publish() */
    char name[OUTPUT_NAME_BYTES];
} output_file;

typedef struct output {
    const char *directory;
    char *path;         /**< a copy of `directory`, from which output_cancel() removes folders; on the heap */
    int folder;         /**< descriptor of the folder; -1 while it is not open */
    size_t made;        /**< number of folders, from the end of the path, that output_begin() made */
    output_file *files; /**< the files written so far; on the heap */
    size_t count;       /**< number of `files` */
    size_t published;   /**< number of `files` renamed so far */
    struct sigaction before[OUTPUT_SIGNALS]; /**< the former actions of the signals */
} output;

/** Refuses a folder that cannot be written to; for use before the work begins. A folder that does
 * not exist passes. */
int output_check(const char *directory);

/** Makes the folder and its parents. After success, output_finish() or output_cancel() must
 * follow. */
int output_begin(const char *directory, output *out);

/** Writes one .npy file under a random name, to be renamed to `name`, which is copied and must be
 * shorter than OUTPUT_NAME_BYTES. */
int output_add(output *o, const char *name, const tsr_tensor *tensor);

/** Renames all files to their names. */
int output_publish(output *o);

/** Ends the output and keeps the files. */
void output_finish(output *o);

/** Ends the output and removes every file and folder that it made, renamed or not. */
void output_cancel(output *o);

#endif
