#include <tessera/sys/bytes.h>
#include <tessera/sys/status.h>

#include <stdio.h>
#include <string.h>

#define MAGIC_BYTES    8
#define CHECKSUM_BYTES 8

/* FNV-1a over bytes, 64 bits (Fowler, Noll and Vo), whose states are told less the first one, so
 * that a checksum begins as 0. Texts that differ in one byte alone always have different checksums:
 * both steps are invertible, so two states that differ stay different while equal bytes follow. */
#define SEED  UINT64_C(0xcbf29ce484222325)
#define PRIME UINT64_C(0x100000001b3)

static uint64_t add_to_checksum(uint64_t checksum, const unsigned char *bytes, size_t count)
{
    uint64_t state = checksum ^ SEED;
    for (size_t i = 0; i < count; i++)
        state = (state ^ bytes[i]) * PRIME;
    return state ^ SEED;
}

void tsr_write_bytes(tsr_writer *writer, const void *bytes, size_t count)
{
    const size_t left = writer->length < writer->capacity ? writer->capacity - writer->length : 0;
    const size_t fits = count < left ? count : left;
    if (count == 0)
        return; /* `bytes` may be NULL, which memcmp() does not take */
    if (writer->buffer && fits > 0)
        memcpy(writer->buffer + writer->length, bytes, fits);
    if (writer->expected && !writer->differs)
        writer->differs = fits < count || memcmp(writer->expected + writer->length, bytes, count) != 0;
    writer->checksum = add_to_checksum(writer->checksum, bytes, count);
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

void tsr_write_i64(tsr_writer *writer, int64_t value)
{
    tsr_write_u64(writer, (uint64_t)value);
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
        tsr_write_i64(writer, numbers[i]);
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

int64_t tsr_read_i64(tsr_reader *reader)
{
    return (int64_t)tsr_read_u64(reader);
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
        numbers[i] = tsr_read_i64(reader);
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

void tsr_write_frame(tsr_writer *writer, const tsr_frame *frame, uint32_t version, size_t bytes)
{
    tsr_write_bytes(writer, frame->magic, MAGIC_BYTES);
    tsr_write_u32(writer, version);
    tsr_write_u64(writer, bytes);
}

void tsr_write_frame_end(tsr_writer *writer)
{
    tsr_write_u64(writer, writer->checksum ^ SEED);
}

static tsr_status refuse_version(const char *caller, const tsr_frame *frame, uint32_t version)
{
    char more[32] = "";
    if (frame->newest > frame->oldest)
        snprintf(more, sizeof more, " to %lu", (unsigned long)frame->newest);
    return tsr_status_set(TSR_ERROR_UNSUPPORTED,
                          "%s: the %s was saved in format %lu, but this library reads format%s %lu%s", caller,
                          frame->what, (unsigned long)version, *more ? "s" : "", (unsigned long)frame->oldest, more);
}

static tsr_status check_sum(const char *caller, const unsigned char *bytes, size_t size)
{
    const size_t content = size - CHECKSUM_BYTES;
    tsr_reader tail = {.at = bytes + content, .left = CHECKSUM_BYTES};
    if (tsr_read_u64(&tail) == (add_to_checksum(0, bytes, content) ^ SEED))
        return TSR_OK;
    return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: the bytes are damaged: their checksum does not match", caller);
}

tsr_status tsr_read_frame(const char *caller, const tsr_frame *frame, const void *bytes, size_t size, uint32_t *version,
                          tsr_reader *out)
{
    tsr_reader all = {.at = bytes, .left = size};
    const unsigned char *const magic = tsr_read_bytes(&all, MAGIC_BYTES);
    if (!magic || memcmp(magic, frame->magic, MAGIC_BYTES) != 0)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: the %zu bytes are not a saved %s: they do not begin with \"%s\"",
                              caller, size, frame->what, frame->magic);
    const uint32_t saved = tsr_read_u32(&all);
    if (!all.ended && (saved < frame->oldest || saved > frame->newest))
        return refuse_version(caller, frame, saved);
    const uint64_t wanted = tsr_read_u64(&all);
    if (all.ended || wanted != size || size < TSR_FRAME_BYTES)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: the %s was saved in %llu bytes, but here are %zu", caller,
                              frame->what, (unsigned long long)wanted, size);
    TSR_TRY(check_sum(caller, bytes, size));
    all.left -= CHECKSUM_BYTES;
    *out = all;
    if (version)
        *version = saved;
    return TSR_OK;
}
