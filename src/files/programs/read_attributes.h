/** Reads the attributes of an op, by the kinds that its row gives them. */
#ifndef TSR_FILES_PROGRAMS_READ_ATTRIBUTES_H
#define TSR_FILES_PROGRAMS_READ_ATTRIBUTES_H

#include "files/programs/reader.h"

/** The attributes of an op; their texts are borrowed from the JSON, or from `joined`. */
typedef struct tsr_program_attributes {
    size_t count;
    tsr_attribute all[TSR_OP_MOST_ATTRIBUTES];
    char *joined[TSR_OP_MOST_ATTRIBUTES]; /**< lists as one text, on the heap */
} tsr_program_attributes;

/** Reads an object; NULL or null: none. The caller calls tsr_program_free_attributes() in any
 * case. */
tsr_status tsr_program_read_attributes(const tsr_program_reader *r, const char *where, const tsr_op_info *op,
                                       json_t *object, tsr_program_attributes *out);

/** Frees the texts. */
void tsr_program_free_attributes(tsr_program_attributes *attributes);

#endif
