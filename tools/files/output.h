/**
 * A folder that gets all of a set of files, or none.
 *
 * Files are written under random names that begin with a dot and get their own at the end. What is needed to remove them is at hand before
 * they are made. Signals that would end the program wait from
 * output_begin() to the end, so that nothing is left behind; a reader of standard output that is gone is an error like any other. One
 * output at a time. Functions return the tool's exit status, having
 * complained.
 */
#ifndef TESSERA_TOOLS_FILES_OUTPUT_H
#define TESSERA_TOOLS_FILES_OUTPUT_H

#include "files/fresh_file.h"

#include <signal.h>
#include <tessera/tensor.h>

#define OUTPUT_SIGNALS    4
#define OUTPUT_NAME_BYTES 32

/** A file within the folder. */
typedef struct output_file {
    char temporary[FRESH_NAME_BYTES]; /**< its name until all are there */
    char name[OUTPUT_NAME_BYTES];
} output_file;

typedef struct output {
    const char *directory;
    char *path;                              /**< a copy of it, for the way back; on the heap */
    int folder;                              /**< its descriptor; -1 while it is not open */
    size_t made;                             /**< how many folders of the path are ours, from its end */
    output_file *files;                      /**< those so far */
    size_t count;                            /**< how many they are */
    size_t published;                        /**< how many have their own name already */
    struct sigaction before[OUTPUT_SIGNALS]; /**< what the signals did */
} output;

/** Refuses, before any work is done, a folder that could not be written. */
int output_check(const char *directory);

/** Makes the folder, with its parents. After it, output_finish() or output_cancel() must follow. */
int output_begin(const char *directory, output *out);

/** Writes one .npy file. `name` is copied, and shorter than OUTPUT_NAME_BYTES. */
int output_add(output *o, const char *name, const tsr_tensor *tensor);

/** Gives all files their names. */
int output_publish(output *o);

/** Leaves the files where they are. */
void output_finish(output *o);

/** Removes every file and folder that was made, published or not. */
void output_cancel(output *o);

#endif
