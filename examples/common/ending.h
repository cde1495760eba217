/** How the programs end. */
#ifndef LLAMA_ENDING_H
#define LLAMA_ENDING_H

/** Exit statuses: understood but refused or failed; options that do not parse. */
enum { LLAMA_REFUSED = 1, LLAMA_USAGE = 2 };

/** Prints the last error as one line, without control characters: names in it may come from a
 * hostile file. Returns `code`. */
int llama_fail(int code);

#endif
