/** What reads a program: the text, the program that is recorded, and the names of its values. Texts
 * of the JSON hold no character of code 0, which Jansson refuses. */
#ifndef TSR_FILES_PROGRAMS_READER_H
#define TSR_FILES_PROGRAMS_READER_H

#include <tessera/program_json.h>
#include <tessera/sys/status.h>

#include <jansson.h>

/** A program that is being read. */
typedef struct tsr_program_reader {
    const char *name; /**< begins sentences */
    const tsr_mesh *mesh;
    tsr_program *program;
    json_t *names;  /**< an object: the value of each name */
    json_t *states; /**< an object: the state of each name of one */
} tsr_program_reader;

/** Room for what a sentence is about: `ops[3], which makes "y"`. */
#define TSR_PROGRAM_WHERE 400

/** TSR_ERROR_IO: "NAME: WHERE: SENTENCE". */
tsr_status tsr_program_refuse(const tsr_program_reader *r, const char *where, const char *format, ...) TSR_PRINTF(3, 4);

/** TSR_OK, or the program's first error, its sentence behind "NAME: WHERE: ". */
tsr_status tsr_program_check(const tsr_program_reader *r, const char *where);

/** This thread's last error, for `status`, its sentence behind "NAME: WHERE: ". */
tsr_status tsr_program_pass(const tsr_program_reader *r, const char *where, tsr_status status);

/** Refuses an item that is not an object, or has a key that is not among `keys`, which end in
 * NULL. */
tsr_status tsr_program_check_keys(const tsr_program_reader *r, const char *where, json_t *object,
                                  const char *const *keys);

/** A member that must be text. Borrowed from the object. */
tsr_status tsr_program_read_text(const tsr_program_reader *r, const char *where, const json_t *object, const char *key,
                                 const char **out);

/** A member that is a list; NULL where it is missing or null. */
tsr_status tsr_program_read_list(const tsr_program_reader *r, const char *where, const json_t *object, const char *key,
                                 const json_t **out);

/** Numbers of a list, at most TSR_MAX_DIMS. `what` is "shape". */
tsr_status tsr_program_read_numbers(const tsr_program_reader *r, const char *where, const char *what,
                                    const json_t *list, int64_t *out, int *count);

/** The texts of a list as one, apart by commas, on the heap; NULL for a list that is missing or
 * null. */
tsr_status tsr_program_join(const tsr_program_reader *r, const char *where, const char *what, const json_t *list,
                            char **out);

/** Gives a value a name, which no other value has. */
tsr_status tsr_program_name(const tsr_program_reader *r, const char *where, const char *name, tsr_value value);

/** Gives a state a name; `value` is the state, or a varying copy of it. */
tsr_status tsr_program_name_state(const tsr_program_reader *r, const char *where, const char *name, tsr_value state,
                                  tsr_value value);

/** The state of a name. */
tsr_status tsr_program_find_state(const tsr_program_reader *r, const char *where, const char *name, tsr_value *out);

/** After a store, lets the name of a varying state stand for what was stored. */
tsr_status tsr_program_renew_state(const tsr_program_reader *r, const char *where, const char *name);

/** A varying copy of a value. */
tsr_value tsr_program_vary(const tsr_program_reader *r, tsr_value value);

/** The value of a name. */
tsr_status tsr_program_find(const tsr_program_reader *r, const char *where, const char *name, tsr_value *out);

#endif
