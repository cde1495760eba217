/** Text built piece by piece into a caller's buffer, with the length that the whole would have. Never overruns; always ends in NUL if
 * capacity > 0. */
#ifndef TSR_BASE_TEXT_TEXT_H
#define TSR_BASE_TEXT_TEXT_H

#include <stddef.h>
#include <tessera/api.h>

typedef struct tsr_text {
    char *buffer; /**< may be NULL with capacity 0 */
    size_t capacity;
    size_t length; /**< of the whole text, also past capacity */
} tsr_text;

void tsr_text_append(tsr_text *text, const char *format, ...) TSR_PRINTF(2, 3);

#endif
