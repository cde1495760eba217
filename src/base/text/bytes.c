#include "base/text/bytes.h"

#include <string.h>

#define FNV_PRIME UINT64_C(0x100000001b3)

uint64_t tsr_checksum(uint64_t checksum, const void *bytes, size_t count)
{
    /* Both steps are invertible, so two states that differ stay different while equal bytes
     * follow. */
    const unsigned char *at = bytes;
    for (size_t i = 0; i < count; i++)
        checksum = (checksum ^ at[i]) * FNV_PRIME;
    return checksum;
}

void tsr_write_bytes(tsr_writer *writer, const void *bytes, size_t count)
{
    const size_t left = writer->length < writer->capacity ? writer->capacity - writer->length : 0;
    const size_t fits = count < left ? count : left;
    if (writer->buffer && fits > 0)
        memcpy(writer->buffer + writer->length, bytes, fits);
    if (writer->expected && !writer->differs)
        writer->differs = fits < count || memcmp(writer->expected + writer->length, bytes, count) != 0;
    writer->checksum = tsr_checksum(writer->checksum, bytes, count);
    writer->length += count;
}

static void write_number(tsr_writer *writer, uint64_t value, size_t width)
{
    unsigned char bytes[8];
    for (size_t i = 0; i < width; i++)
        bytes[i] = (unsigned char)(value >> 8 * i);
    tsr_write_bytes(writer, bytes, width);
}

void tsr_write_u32(tsr_writer *writer, uint32_t value)
{
    write_number(writer, value, sizeof value);
}

void tsr_write_u64(tsr_writer *writer, uint64_t value)
{
    write_number(writer, value, sizeof value);
}

void tsr_write_f64(tsr_writer *writer, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    tsr_write_u64(writer, bits);
}

void tsr_write_numbers(tsr_writer *writer, const int64_t *numbers, size_t count)
{
    for (size_t i = 0; i < count; i++)
        tsr_write_u64(writer, (uint64_t)numbers[i]);
}

void tsr_write_text(tsr_writer *writer, const char *text)
{
    tsr_write_bytes(writer, text, strlen(text) + 1);
}

const unsigned char *tsr_read_bytes(tsr_reader *reader, size_t count)
{
    if (reader->ended || count > reader->left) {
        reader->ended = true;
        return NULL;
    }
    const unsigned char *bytes = reader->at;
    reader->at += count;
    reader->left -= count;
    return bytes;
}

static uint64_t read_number(tsr_reader *reader, size_t width)
{
    const unsigned char *bytes = tsr_read_bytes(reader, width);
    uint64_t value = 0;
    for (size_t i = 0; bytes && i < width; i++)
        value |= (uint64_t)bytes[i] << 8 * i;
    return value;
}

uint32_t tsr_read_u32(tsr_reader *reader)
{
    return (uint32_t)read_number(reader, sizeof(uint32_t));
}

uint64_t tsr_read_u64(tsr_reader *reader)
{
    return read_number(reader, sizeof(uint64_t));
}

double tsr_read_f64(tsr_reader *reader)
{
    const uint64_t bits = tsr_read_u64(reader);
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

void tsr_read_numbers(tsr_reader *reader, int64_t *numbers, size_t count)
{
    for (size_t i = 0; i < count; i++)
        numbers[i] = (int64_t)tsr_read_u64(reader);
}

const char *tsr_read_text(tsr_reader *reader)
{
    const void *end = reader->ended || reader->left == 0 ? NULL : memchr(reader->at, 0, reader->left);
    if (!end) {
        reader->ended = true;
        return "";
    }
    return (const char *)tsr_read_bytes(reader, (size_t)((const unsigned char *)end - reader->at) + 1);
}
