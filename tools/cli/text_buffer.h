/**
 * Text that grows as it is written.
 *
 * Once memory is short nothing more is added, and text_buffer_take() gives NULL: a text is whole or
 * it is not there. A zeroed buffer is empty. Not thread-safe.
 */
#ifndef TESSERA_TOOLS_CLI_TEXT_BUFFER_H
#define TESSERA_TOOLS_CLI_TEXT_BUFFER_H

#include <stdbool.h>
#include <stddef.h>
#include <tessera/api.h>

typedef struct text_buffer {
    char *text; /**< on the heap, ended by a NUL; NULL while nothing was added */
    size_t bytes, capacity;
    bool failed; /**< there was no memory for some of the text */
} text_buffer;

/** NULL stands for a text for which there was no memory. */
void text_buffer_add(text_buffer *b, const char *text);

void text_buffer_add_bytes(text_buffer *b, const void *data, size_t bytes);

void text_buffer_print(text_buffer *b, const char *format, ...) TSR_PRINTF(2, 3);

/** The whole text, which is now the caller's, and its length without the NUL; NULL if there was no
 * memory for all of it. Leaves the buffer empty. `bytes` may be NULL. */
char *text_buffer_take(text_buffer *b, size_t *bytes);

#endif
