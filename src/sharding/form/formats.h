/** What readers and writers of formats share. */
#ifndef TSR_SHARDING_FORM_FORMATS_H
#define TSR_SHARDING_FORM_FORMATS_H

#include "base/text/text.h"
#include "sharding/form/form.h"
#include "sharding/text/token.h"

/** What a reader is given besides the text. */
typedef struct tsr_sharding_case {
    const tsr_mesh *mesh;
    int ndim;
    const int64_t *shape;
    tsr_dtype dtype;
} tsr_sharding_case;

/** Reads the whole of a text; errors as for tsr_sharding_parse(). */
typedef tsr_status tsr_sharding_reader(tsr_scan *scan, const tsr_sharding_case *given, tsr_layout **out);

/** Appends the text of a layout; errors as for tsr_sharding_print(). */
typedef tsr_status tsr_sharding_writer(const tsr_layout *layout, tsr_text *out);

#endif
