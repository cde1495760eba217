#include "base/text/text.h"

#include <stdarg.h>
#include <stdio.h>

void tsr_text_append(tsr_text *text, const char *format, ...)
{
    const size_t room = text->length < text->capacity ? text->capacity - text->length : 0;
    va_list arguments;
    va_start(arguments, format);
    const int wanted = vsnprintf(room > 0 ? text->buffer + text->length : NULL, room, format, arguments);
    va_end(arguments);
    text->length += wanted > 0 ? (size_t)wanted : 0;
}
