/** How the programs start and end. */
#ifndef LLAMA_PROGRAM_H
#define LLAMA_PROGRAM_H

/** Exit statuses: understood but refused or failed; options that do not parse. */
enum { LLAMA_REFUSED = 1, LLAMA_USAGE = 2 };

/** The first call of main(), with its arguments: products take one thread a rank, and log lines are
 * held. May start the program once more. */
void llama_start(char **argv);

/** Prints the last error as one line, without control characters: names in it may come from a
 * hostile file. Returns `code`. */
int llama_fail(int code);

#endif
