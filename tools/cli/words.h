/** Numbers in a form that people read. */
#ifndef TESSERA_TOOLS_CLI_WORDS_H
#define TESSERA_TOOLS_CLI_WORDS_H

#include <stdint.h>

/** Bytes of any text that these functions write, with the NUL. */
#define BYTES_TEXT 48

/** "448", "20.5 Ki": exact up to 9999, beyond that in binary multiples. */
void print_short_bytes(int64_t bytes, char text[BYTES_TEXT]);

/** "448 bytes", "20992 bytes (20.5 KiB)". */
void print_bytes(int64_t bytes, char text[BYTES_TEXT]);

/** "0.51 us", "3.2 s": three digits, in us, ms or s. */
void print_seconds(double seconds, char text[BYTES_TEXT]);

#endif
