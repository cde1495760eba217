#include <tessera/npy.h>
#include <tessera/sys/status.h>

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define MAGIC       "\x93NUMPY"
#define MAGIC_BYTES 6
#define ALIGNMENT   64

/* The rest of the text of the dict. Nothing reads at or past `end`. */
typedef struct reader {
    const char *at, *end;
} reader;

enum { KEY_DESCR = 1, KEY_ORDER = 2, KEY_SHAPE = 4, KEY_ALL = 7 };

static tsr_status malformed(const char *what)
{
    return tsr_status_set(TSR_ERROR_IO, "the .npy header is malformed: %s", what);
}

static void skip_spaces(reader *r)
{
    while (r->at < r->end && isspace((unsigned char)*r->at))
        r->at++;
}

static bool take(reader *r, char c)
{
    skip_spaces(r);
    if (r->at == r->end || *r->at != c)
        return false;
    r->at++;
    return true;
}

static bool take_word(reader *r, const char *word)
{
    const size_t length = strlen(word);
    skip_spaces(r);
    if ((size_t)(r->end - r->at) < length || memcmp(r->at, word, length) != 0)
        return false;
    r->at += length;
    return true;
}

/* Reads a Python string in single or double quotes, without escapes, shorter than `capacity`. */
static tsr_status take_string(reader *r, char *text, size_t capacity)
{
    skip_spaces(r);
    if (r->at == r->end || (*r->at != '\'' && *r->at != '"'))
        return malformed("a string was expected");
    const char quote = *r->at++;
    size_t length = 0;
    for (; r->at < r->end && *r->at != quote; r->at++) {
        if (*r->at == '\\' || !isprint((unsigned char)*r->at) || length + 1 == capacity)
            return malformed("a string is too long or has characters that no dtype and no key has");
        text[length++] = *r->at;
    }
    if (r->at == r->end)
        return malformed("a string does not end");
    r->at++;
    text[length] = '\0';
    return TSR_OK;
}

static tsr_status take_size(reader *r, int64_t *out)
{
    skip_spaces(r);
    const char *const begin = r->at;
    int64_t value = 0;
    for (; r->at < r->end && isdigit((unsigned char)*r->at); r->at++) {
        if (__builtin_mul_overflow(value, 10, &value) || __builtin_add_overflow(value, *r->at - '0', &value))
            return malformed("a size in the shape is more than 2^63 - 1");
    }
    if (r->at == begin)
        return malformed("the shape is not a tuple of sizes from 0 up");
    if (*begin == '0' && r->at - begin > 1)
        return malformed("a size in the shape begins with 0");
    (void)take(r, 'L'); /* Python 2 ends long integers with L */
    *out = value;
    return TSR_OK;
}

static tsr_status take_shape(reader *r, tsr_npy_header *h)
{
    if (!take(r, '('))
        return malformed("the shape is not a tuple");
    bool comma = true;
    int ndim = 0;
    while (!take(r, ')')) {
        int64_t size = 0;
        if (!comma)
            return malformed("sizes in the shape are not parted by commas");
        TSR_TRY(take_size(r, &size));
        comma = take(r, ',');
        if (ndim < TSR_MAX_DIMS)
            h->shape[ndim] = size;
        ndim++;
    }
    if (ndim == 1 && !comma)
        return malformed("the shape is a number, not a tuple");
    if (ndim > TSR_MAX_DIMS)
        return tsr_status_set(TSR_ERROR_UNSUPPORTED, "the .npy file has %d dims; Tessera's tensors have at most %d",
                              ndim, TSR_MAX_DIMS);
    h->ndim = ndim;
    return TSR_OK;
}

/* The dtype that NumPy writes as `kind` and `bytes`; not bf16 or f8, which borrow the descr of an
 * unsigned integer. */
static tsr_dtype find_dtype(char kind, unsigned bytes)
{
    for (int d = TSR_DTYPE_NONE + 1; d < TSR_DTYPE_END; d++) {
        const tsr_dtype_info *const info = tsr_dtype_get((tsr_dtype)d);
        if (info->kind == TSR_CLASS_FLOAT && info->npy[1] != 'f')
            continue;
        if (info->npy[1] == kind && info->bytes == bytes)
            return info->dtype;
    }
    return TSR_DTYPE_NONE;
}

static tsr_status take_descr(reader *r, tsr_npy_header *h)
{
    skip_spaces(r);
    if (r->at < r->end && *r->at == '[')
        return tsr_status_set(TSR_ERROR_UNSUPPORTED,
                              "the .npy file has a structured dtype; Tessera reads plain numbers and bool");
    char descr[32];
    TSR_TRY(take_string(r, descr, sizeof descr));
    const char *const kind = descr + (descr[0] != '\0' && strchr("<>|=", descr[0]));
    unsigned bytes = 0;
    int used = 0;
    if (*kind != '\0' && isdigit((unsigned char)kind[1]) && sscanf(kind + 1, "%2u%n", &bytes, &used) == 1 &&
        kind[1 + used] == '\0')
        h->dtype = find_dtype(*kind, bytes);
    if (h->dtype == TSR_DTYPE_NONE)
        return tsr_status_set(
            TSR_ERROR_UNSUPPORTED,
            "the .npy file has dtype '%s'; Tessera reads numbers and bool (f2 to f8, i1 to i8, u1 to u8, "
            "c8, c16, b1)",
            descr);
    h->big_endian = descr[0] == '>' && bytes > 1;
    return TSR_OK;
}

static tsr_status take_order(reader *r, tsr_npy_header *h)
{
    h->fortran = take_word(r, "True");
    if (!h->fortran && !take_word(r, "False"))
        return malformed("fortran_order is neither True nor False");
    return TSR_OK;
}

static tsr_status take_entry(reader *r, tsr_npy_header *h, unsigned *seen)
{
    static const struct {
        const char *name;
        unsigned bit;
        tsr_status (*take)(reader *, tsr_npy_header *);
    } keys[] = {
        {"descr", KEY_DESCR, take_descr}, {"fortran_order", KEY_ORDER, take_order}, {"shape", KEY_SHAPE, take_shape}};
    char name[32];
    TSR_TRY(take_string(r, name, sizeof name));
    if (!take(r, ':'))
        return malformed("a key has no value");
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        if (strcmp(keys[i].name, name) != 0)
            continue;
        if (*seen & keys[i].bit)
            return malformed("a key comes twice");
        *seen |= keys[i].bit;
        return keys[i].take(r, h);
    }
    return malformed("a key is not descr, fortran_order or shape");
}

static tsr_status take_dict(reader *r, tsr_npy_header *h)
{
    if (!take(r, '{'))
        return malformed("it is not a Python dict");
    unsigned seen = 0;
    for (bool comma = true; !take(r, '}'); comma = take(r, ',')) {
        if (!comma)
            return malformed("entries are not parted by commas");
        TSR_TRY(take_entry(r, h, &seen));
    }
    if (seen != KEY_ALL)
        return malformed("descr, fortran_order or shape is missing");
    skip_spaces(r);
    return r->at == r->end ? TSR_OK : malformed("something follows the dict");
}

/* Finds the dict in the first `known` of the file's `size` bytes: its text begins at `*begin` and
 * ends at h->data, where the elements begin. */
static tsr_status find_dict(const unsigned char *file, size_t known, size_t size, size_t *begin, tsr_npy_header *h)
{
    if (known < MAGIC_BYTES + 4 || memcmp(file, MAGIC, MAGIC_BYTES) != 0)
        return tsr_status_set(TSR_ERROR_IO, "this is not a .npy file: it does not begin with \\x93NUMPY and a version");
    const unsigned major = file[MAGIC_BYTES], minor = file[MAGIC_BYTES + 1];
    if (major < 1 || major > 3 || minor != 0)
        return tsr_status_set(TSR_ERROR_UNSUPPORTED, "the .npy file has version %u.%u; 1.0, 2.0 and 3.0 are known",
                              major, minor);
    *begin = MAGIC_BYTES + (major == 1 ? 4 : 6);
    if (known < *begin)
        return malformed("the file ends within it");
    const unsigned char *const field = file + MAGIC_BYTES + 2;
    size_t length = (size_t)field[0] | (size_t)field[1] << 8;
    if (major > 1)
        length |= (size_t)field[2] << 16 | (size_t)field[3] << 24;
    if (length > size - *begin)
        return malformed("the file ends within it");
    if (length > known - *begin)
        return tsr_status_set(TSR_ERROR_UNSUPPORTED, "the .npy header has %zu bytes; up to %zu are read",
                              *begin + length, known);
    h->data = (int64_t)(*begin + length);
    return TSR_OK;
}

static tsr_status count_bytes(const tsr_npy_header *h, int64_t *out)
{
    int64_t bytes = (int64_t)tsr_dtype_bytes(h->dtype);
    bool overflow = false;
    for (int d = 0; d < h->ndim; d++) {
        if (h->shape[d] == 0) {
            *out = 0;
            return TSR_OK;
        }
        overflow |= __builtin_mul_overflow(bytes, h->shape[d], &bytes);
    }
    if (overflow)
        return malformed("the shape has more than 2^63 - 1 bytes");
    *out = bytes;
    return TSR_OK;
}

tsr_status tsr_npy_header_parse(const void *beginning, size_t known, size_t size, tsr_npy_header *out)
{
    tsr_npy_header h = {0};
    size_t begin = 0;
    if (!out || (!beginning && known > 0))
        return tsr_status_set(TSR_ERROR_ARGUMENT, "tsr_npy_header_parse: %s is NULL", !out ? "out" : "beginning");
    TSR_TRY(find_dict(beginning, known, size, &begin, &h));
    reader r = {(const char *)beginning + begin, (const char *)beginning + h.data};
    TSR_TRY(take_dict(&r, &h));
    TSR_TRY(count_bytes(&h, &h.bytes));
    const size_t rest = size - (size_t)h.data, promised = (size_t)h.bytes;
    if (promised > rest)
        return tsr_status_set(TSR_ERROR_IO,
                              "the .npy file is truncated: its header promises %zu bytes of elements, %zu are there",
                              promised, rest);
    if (promised < rest)
        return tsr_status_set(TSR_ERROR_IO, "the .npy file has %zu bytes after the %zu that its header promises",
                              rest - promised, promised);
    *out = h;
    return TSR_OK;
}

size_t tsr_npy_header_print(tsr_dtype dtype, int ndim, const int64_t *shape, char *header)
{
    char *const dict = header + MAGIC_BYTES + 4;
    const size_t room = TSR_NPY_HEADER_BYTES - MAGIC_BYTES - 4;
    size_t used =
        (size_t)snprintf(dict, room, "{'descr': '%s', 'fortran_order': False, 'shape': (", tsr_dtype_get(dtype)->npy);
    for (int d = 0; d < ndim; d++)
        used += (size_t)snprintf(dict + used, room - used,
                                 d + 1 < ndim ? "%lld, "
                                 : ndim == 1  ? "%lld,"
                                              : "%lld",
                                 (long long)shape[d]);
    used += (size_t)snprintf(dict + used, room - used, "), }");
    /* Spaces and one newline bring the elements to a multiple of 64 bytes. */
    const size_t unpadded = MAGIC_BYTES + 4 + used + 1;
    const size_t total = (unpadded + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    memset(dict + used, ' ', total - unpadded);
    header[total - 1] = '\n';
    memcpy(header, MAGIC "\x01\x00", MAGIC_BYTES + 2);
    header[MAGIC_BYTES + 2] = (char)((total - MAGIC_BYTES - 4) & 0xff);
    header[MAGIC_BYTES + 3] = (char)((total - MAGIC_BYTES - 4) >> 8);
    return total;
}
