#include "ops/programs/saved/bytes.h"

#include <tessera/sys/status.h>

#include <string.h>

#define MAGIC_BYTES 8

/* FNV-1a, 64 bits: texts that differ in one byte alone always have different checksums. */
static uint64_t checksum(const unsigned char *bytes, size_t count)
{
    uint64_t sum = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < count; i++)
        sum = (sum ^ bytes[i]) * UINT64_C(0x100000001b3);
    return sum;
}

void tsr_pack(tsr_packer *packer, const void *bytes, size_t count)
{
    if (packer->buffer && count)
        memcpy(packer->buffer + packer->length, bytes, count);
    packer->length += count;
}

static void pack_number(tsr_packer *packer, uint64_t value, size_t width)
{
    unsigned char bytes[8];
    for (size_t i = 0; i < width; i++)
        bytes[i] = (unsigned char)(value >> 8 * i);
    tsr_pack(packer, bytes, width);
}

void tsr_pack_u32(tsr_packer *packer, uint32_t value)
{
    pack_number(packer, value, sizeof value);
}

void tsr_pack_i64(tsr_packer *packer, int64_t value)
{
    pack_number(packer, (uint64_t)value, sizeof value);
}

void tsr_pack_f64(tsr_packer *packer, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    pack_number(packer, bits, sizeof bits);
}

void tsr_pack_text(tsr_packer *packer, const char *text)
{
    tsr_pack(packer, text, strlen(text) + 1);
}

void tsr_pack_begin(tsr_packer *packer, const char *magic, uint32_t version, size_t bytes)
{
    tsr_pack(packer, magic, MAGIC_BYTES);
    tsr_pack_u32(packer, version);
    pack_number(packer, bytes, sizeof(uint64_t));
}

void tsr_pack_end(tsr_packer *packer)
{
    pack_number(packer, packer->buffer ? checksum(packer->buffer, packer->length) : 0, sizeof(uint64_t));
}

const unsigned char *tsr_unpack(tsr_unpacker *unpacker, size_t count)
{
    if (unpacker->ended || count > unpacker->left) {
        unpacker->ended = true;
        return NULL;
    }
    const unsigned char *const bytes = unpacker->at;
    unpacker->at += count;
    unpacker->left -= count;
    return bytes;
}

static uint64_t unpack_number(tsr_unpacker *unpacker, size_t width)
{
    const unsigned char *const bytes = tsr_unpack(unpacker, width);
    uint64_t value = 0;
    for (size_t i = 0; bytes && i < width; i++)
        value |= (uint64_t)bytes[i] << 8 * i;
    return value;
}

uint32_t tsr_unpack_u32(tsr_unpacker *unpacker)
{
    return (uint32_t)unpack_number(unpacker, sizeof(uint32_t));
}

int64_t tsr_unpack_i64(tsr_unpacker *unpacker)
{
    return (int64_t)unpack_number(unpacker, sizeof(uint64_t));
}

double tsr_unpack_f64(tsr_unpacker *unpacker)
{
    double value;
    const uint64_t bits = unpack_number(unpacker, sizeof bits);
    memcpy(&value, &bits, sizeof value);
    return value;
}

const char *tsr_unpack_text(tsr_unpacker *unpacker)
{
    const void *const end = unpacker->ended || !unpacker->left ? NULL : memchr(unpacker->at, 0, unpacker->left);
    if (!end) {
        unpacker->ended = true;
        return "";
    }
    return (const char *)tsr_unpack(unpacker, (size_t)((const unsigned char *)end - unpacker->at) + 1);
}

tsr_status tsr_unpack_open(const char *caller, const char *what, const char *magic, uint32_t version, const void *bytes,
                           size_t size, tsr_unpacker *out)
{
    tsr_unpacker all = {.at = bytes, .left = size};
    const unsigned char *const found = tsr_unpack(&all, MAGIC_BYTES);
    if (!found || memcmp(found, magic, MAGIC_BYTES) != 0)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: the %zu bytes are not a saved %s: they do not begin with \"%s\"",
                              caller, size, what, magic);
    const uint32_t saved = tsr_unpack_u32(&all);
    if (!all.ended && saved != version)
        return tsr_status_set(TSR_ERROR_UNSUPPORTED,
                              "%s: the %s was saved in format %lu, but this library reads format %lu", caller, what,
                              (unsigned long)saved, (unsigned long)version);
    const uint64_t wanted = (uint64_t)tsr_unpack_i64(&all);
    if (all.ended || wanted != size || all.left < TSR_PACKED_CHECKSUM_BYTES)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: the %s was saved in %llu bytes, but here are %zu", caller, what,
                              (unsigned long long)wanted, size);
    const size_t content = size - TSR_PACKED_CHECKSUM_BYTES;
    tsr_unpacker tail = {.at = (const unsigned char *)bytes + content, .left = TSR_PACKED_CHECKSUM_BYTES};
    if ((uint64_t)tsr_unpack_i64(&tail) != checksum(bytes, content))
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: the bytes are damaged: their checksum does not match", caller);
    all.left -= TSR_PACKED_CHECKSUM_BYTES;
    *out = all;
    return TSR_OK;
}
