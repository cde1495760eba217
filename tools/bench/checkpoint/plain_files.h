/** Files as dd and cp write and read them, by one process: what `bench checkpoint` compares a
 * checkpoint with. */
#ifndef TESSERA_TOOLS_BENCH_CHECKPOINT_PLAIN_FILES_H
#define TESSERA_TOOLS_BENCH_CHECKPOINT_PLAIN_FILES_H

#include <tessera/status.h>

#include <stdint.h>

/** Bytes that are written, or read, at a time, as cp does. */
#define PLAIN_PIECE ((size_t)256 * 1024)

/** Writes `bytes` bytes, the PLAIN_PIECE bytes at `from` again and again, to a new file, brings it
 * to the disk, and renames it to `path`. */
tsr_status plain_write(const char *path, const void *from, int64_t bytes);

/** Copies a file to a new file by way of the PLAIN_PIECE bytes at `room`, brings that to the disk,
 * and renames it to `to`. */
tsr_status plain_copy(const char *from, const char *to, void *room);

/** Reads a file to the PLAIN_PIECE bytes at `room`, again and again. */
tsr_status plain_read(const char *path, void *room);

/** Asks the system to forget what it has in memory of the files of a folder. */
tsr_status plain_forget(const char *folder);

/** Removes a folder and its files. */
void plain_remove(const char *folder);

#endif
