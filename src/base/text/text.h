/** Builds a text piece by piece in a caller's buffer, and counts the length that the whole text
 * needs. Never overruns; always ends in NUL if capacity > 0. */
#ifndef TSR_BASE_TEXT_TEXT_H
#define TSR_BASE_TEXT_TEXT_H

#include <tessera/api.h>

#include <stddef.h>

typedef struct tsr_text {
    char *buffer; /**< may be NULL with capacity 0 */
    size_t capacity;
    size_t length; /**< of the whole text in bytes, also if that is more than `capacity` */
} tsr_text;

void tsr_text_append(tsr_text *text, const char *format, ...) TSR_PRINTF(2, 3);

#endif
