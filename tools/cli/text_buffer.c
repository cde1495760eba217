#include "cli/text_buffer.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Makes room for `more` bytes and a NUL. */
static bool reserve(text_buffer *b, size_t more)
{
    if (b->failed)
        return false;
    if (b->capacity - b->bytes > more)
        return true;
    const size_t least = b->bytes + more + 1, capacity = least > 2 * b->capacity ? least : 2 * b->capacity;
    char *const text = realloc(b->text, capacity);
    b->failed = !text;
    if (b->failed)
        return false;
    b->text = text;
    b->capacity = capacity;
    return true;
}

void text_buffer_add_bytes(text_buffer *b, const void *data, size_t bytes)
{
    if (!reserve(b, bytes))
        return;
    if (bytes > 0)
        memcpy(b->text + b->bytes, data, bytes);
    b->bytes += bytes;
    b->text[b->bytes] = '\0';
}

void text_buffer_add(text_buffer *b, const char *text)
{
    b->failed = b->failed || !text;
    text_buffer_add_bytes(b, text, text ? strlen(text) : 0);
}

void text_buffer_print(text_buffer *b, const char *format, ...)
{
    va_list arguments, again;
    va_start(arguments, format);
    va_copy(again, arguments);
    const int length = vsnprintf(NULL, 0, format, arguments);
    va_end(arguments);
    /* vsnprintf() fails where formatting itself lacks memory. */
    b->failed = b->failed || length < 0;
    if (reserve(b, (size_t)length)) {
        b->failed = vsnprintf(b->text + b->bytes, (size_t)length + 1, format, again) != length;
        b->bytes += (size_t)length;
    }
    va_end(again);
}

char *text_buffer_take(text_buffer *b, size_t *bytes)
{
    text_buffer_add_bytes(b, "", 0); /* so that an empty text is "", not NULL */
    char *const text = b->failed ? NULL : b->text;
    if (b->failed)
        free(b->text);
    else if (bytes)
        *bytes = b->bytes;
    *b = (text_buffer){0};
    return text;
}
