#include "attributes.h"

#include <tessera/sys/memory.h>
#include <tessera/sys/status.h>

#include <stdio.h>
#include <string.h>

typedef enum form { TEXT, NUMBER, NUMBERS, BYTES } form;

/* An attribute: where it is kept, and which kinds of handlers take it. */
typedef struct row {
    const char *name;
    form form;
    size_t offset;
    unsigned kinds;
} row;

#define AT(field) offsetof(tsr_xla_attributes, field)
#define BIT(kind) (1u << TSR_XLA_##kind)
#define EVERY     (~0u)
#define BACKWARD  (BIT(COLUMN_BACKWARD) | BIT(ROW_BACKWARD))
#define LAYERS    (BIT(COLUMN) | BIT(ROW) | BACKWARD)

static const row rows[] = {
    {"axis", NUMBER, AT(axis), BIT(ALL_GATHER) | BIT(REDUCE_SCATTER)},
    {"channel", NUMBER, AT(channel), EVERY},
    {"concat_axis", NUMBER, AT(concat_axis), BIT(ALL_TO_ALL)},
    {"db", TEXT, AT(db), BACKWARD},
    {"devices", NUMBERS, AT(devices), EVERY},
    {"dims", TEXT, AT(dims), EVERY & ~BIT(REDISTRIBUTE)},
    {"dw", TEXT, AT(dw), BACKWARD},
    {"dx", TEXT, AT(dx), BACKWARD},
    {"from", TEXT, AT(from), BIT(REDISTRIBUTE)},
    {"mesh", TEXT, AT(mesh), EVERY},
    {"op", TEXT, AT(op), BIT(ALL_REDUCE) | BIT(REDUCE_SCATTER)},
    {"plan", BYTES, AT(plan), BIT(REDISTRIBUTE)},
    {"shape", NUMBERS, AT(shape), BIT(REDISTRIBUTE)},
    {"split_axis", NUMBER, AT(split_axis), BIT(ALL_TO_ALL)},
    {"timeout_ms", NUMBER, AT(timeout_ms), EVERY},
    {"to", TEXT, AT(to), BIT(REDISTRIBUTE)},
    {"w_shape", NUMBERS, AT(w_shape), LAYERS},
    {"x", TEXT, AT(x), LAYERS},
    {"x_shape", NUMBERS, AT(x_shape), LAYERS},
    {"y", TEXT, AT(y), LAYERS},
};

enum { ROWS = sizeof rows / sizeof rows[0] };

static tsr_status refuse_form(const row *r)
{
    static const char *const wanted[] = {[TEXT] = "a string",
                                         [NUMBER] = "a number of i32 or i64",
                                         [NUMBERS] = "an array of i32 or i64",
                                         [BYTES] = "a string or an array of u8 or i8"};
    return tsr_status_set(TSR_ERROR_ARGUMENT, "the attribute `%s` is not %s", r->name, wanted[r->form]);
}

static tsr_status copy_bytes(tsr_context *context, const void *from, size_t count, tsr_xla_bytes *out)
{
    TSR_TRY(tsr_allocate(context, count + 1, &out->data));
    if (count)
        memcpy(out->data, from, count);
    ((char *)out->data)[count] = 0;
    out->count = count;
    return TSR_OK;
}

static tsr_status read_text(tsr_context *context, const row *r, XLA_FFI_AttrType type, const void *value, char **out)
{
    if (type != XLA_FFI_AttrType_STRING)
        return refuse_form(r);
    const XLA_FFI_ByteSpan *const span = value;
    tsr_xla_bytes copy = {0};
    TSR_TRY(copy_bytes(context, span->ptr, span->len, &copy));
    *out = copy.data;
    return TSR_OK;
}

static tsr_status read_number(const row *r, XLA_FFI_AttrType type, const void *value, int64_t *out)
{
    const XLA_FFI_Scalar *const scalar = value;
    if (type == XLA_FFI_AttrType_SCALAR && scalar->dtype == XLA_FFI_DataType_S64)
        *out = *(const int64_t *)scalar->value;
    else if (type == XLA_FFI_AttrType_SCALAR && scalar->dtype == XLA_FFI_DataType_S32)
        *out = *(const int32_t *)scalar->value;
    else
        return refuse_form(r);
    if (*out < 0)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "the attribute `%s` is %lld; it is 0 or more", r->name,
                              (long long)*out);
    return TSR_OK;
}

static tsr_status read_numbers(tsr_context *context, const row *r, XLA_FFI_AttrType type, const void *value,
                               tsr_xla_numbers *out)
{
    const XLA_FFI_Array *const array = value;
    if (type != XLA_FFI_AttrType_ARRAY ||
        (array->dtype != XLA_FFI_DataType_S64 && array->dtype != XLA_FFI_DataType_S32))
        return refuse_form(r);
    void *values;
    TSR_TRY(tsr_allocate(context, (array->size + 1) * sizeof(int64_t), &values));
    out->values = values;
    out->count = (int64_t)array->size;
    for (size_t i = 0; i < array->size; i++) {
        const bool wide = array->dtype == XLA_FFI_DataType_S64;
        out->values[i] = wide ? ((const int64_t *)array->data)[i] : ((const int32_t *)array->data)[i];
        if (out->values[i] < 0)
            return tsr_status_set(TSR_ERROR_ARGUMENT, "the attribute `%s` has the entry %lld; entries are 0 or more",
                                  r->name, (long long)out->values[i]);
    }
    return TSR_OK;
}

static tsr_status read_bytes(tsr_context *context, const row *r, XLA_FFI_AttrType type, const void *value,
                             tsr_xla_bytes *out)
{
    if (type == XLA_FFI_AttrType_STRING) {
        const XLA_FFI_ByteSpan *const span = value;
        return copy_bytes(context, span->ptr, span->len, out);
    }
    const XLA_FFI_Array *const array = value;
    if (type != XLA_FFI_AttrType_ARRAY || (array->dtype != XLA_FFI_DataType_U8 && array->dtype != XLA_FFI_DataType_S8))
        return refuse_form(r);
    return copy_bytes(context, array->data, array->size, out);
}

static tsr_status refuse_name(const XLA_FFI_ByteSpan *name, tsr_xla_kind kind)
{
    char known[256];
    size_t at = 0;
    for (int r = 0; r < ROWS; r++)
        if (rows[r].kinds & 1u << kind)
            at += (size_t)snprintf(known + at, sizeof known - at, "%s%s", at ? ", " : "", rows[r].name);
    return tsr_status_set(TSR_ERROR_ARGUMENT, "there is no attribute `%.*s`; there are %s", (int)name->len, name->ptr,
                          known);
}

static const row *find_row(const XLA_FFI_ByteSpan *name, tsr_xla_kind kind)
{
    for (int r = 0; r < ROWS; r++)
        if (rows[r].kinds & 1u << kind && strlen(rows[r].name) == name->len &&
            memcmp(rows[r].name, name->ptr, name->len) == 0)
            return &rows[r];
    return NULL;
}

static tsr_status read_one(const row *r, XLA_FFI_AttrType type, const void *value, tsr_xla_attributes *out)
{
    void *const at = (char *)out + r->offset;
    switch (r->form) {
    case TEXT:
        return read_text(out->context, r, type, value, at);
    case NUMBER:
        return read_number(r, type, value, at);
    case NUMBERS:
        return read_numbers(out->context, r, type, value, at);
    default:
        return read_bytes(out->context, r, type, value, at);
    }
}

tsr_status tsr_xla_attributes_read(const XLA_FFI_Attrs *attrs, tsr_xla_kind kind, tsr_context *context,
                                   tsr_xla_attributes *out)
{
    *out = (tsr_xla_attributes){.context = context, .timeout_ms = 60000, .channel = -1};
    for (int64_t a = 0; a < attrs->size; a++) {
        const row *const r = find_row(attrs->names[a], kind);
        if (!r)
            return refuse_name(attrs->names[a], kind);
        TSR_TRY(read_one(r, attrs->types[a], attrs->attrs[a], out));
    }
    return TSR_OK;
}

void tsr_xla_attributes_free(tsr_xla_attributes *attributes)
{
    for (int r = 0; attributes->context && r < ROWS; r++) {
        char *const at = (char *)attributes + rows[r].offset;
        if (rows[r].form == TEXT)
            tsr_release(attributes->context, *(char **)at);
        else if (rows[r].form == NUMBERS)
            tsr_release(attributes->context, ((tsr_xla_numbers *)at)->values);
        else if (rows[r].form == BYTES)
            tsr_release(attributes->context, ((tsr_xla_bytes *)at)->data);
    }
}
