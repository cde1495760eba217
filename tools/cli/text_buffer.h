/**
 * Text that grows as it is written.
 *
 * Once memory is short nothing more is added, and text_buffer_take() returns NULL: a text is whole
 * or absent. A zeroed buffer is empty. Not thread-safe.
 */
#ifndef TESSERA_TOOLS_CLI_TEXT_BUFFER_H
#define TESSERA_TOOLS_CLI_TEXT_BUFFER_H

#include <tessera/api.h>

#include <stdbool.h>
#include <stddef.h>

typedef struct text_buffer {
    char *text; /**< on the heap, ended by a NUL; NULL while nothing was added */
    size_t bytes, capacity;
    bool failed; /**< memory was short for part of the text */
} text_buffer;

/** Appends a text. NULL stands for a text that there was no memory for. */
void text_buffer_add(text_buffer *b, const char *text);

void text_buffer_add_bytes(text_buffer *b, const void *data, size_t bytes);

void text_buffer_print(text_buffer *b, const char *format, ...) TSR_PRINTF(2, 3);

/** Returns the whole text, which the caller frees, or NULL if memory was short; leaves the buffer
 * empty. `*bytes`, unless NULL, gets the length without the NUL. */
char *text_buffer_take(text_buffer *b, size_t *bytes);

#endif
