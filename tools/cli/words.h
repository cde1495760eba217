/** Numbers as people read them. */
#ifndef TESSERA_TOOLS_CLI_WORDS_H
#define TESSERA_TOOLS_CLI_WORDS_H

#include <stdint.h>

/** Room for any number of bytes in words. */
#define BYTES_TEXT 48

/** "448", "20.5 Ki": up to 9999 exactly, beyond in binary multiples. */
void print_short_bytes(int64_t bytes, char text[BYTES_TEXT]);

/** "448 bytes", "20992 bytes (20.5 KiB)". */
void print_bytes(int64_t bytes, char text[BYTES_TEXT]);

/** "0.51 us", "3.2 s": three digits with the unit that suits. */
void print_seconds(double seconds, char text[BYTES_TEXT]);

#endif
