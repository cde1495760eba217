/** A host of TVM-FFI in C: it loads a module, and calls its functions with values of its own. */
#ifndef TESTS_HOSTS_TVM_HOST_H
#define TESTS_HOSTS_TVM_HOST_H

#include <stdbool.h>
#include <tvm/ffi/c_api.h>

/** A loaded module, which the host drops. */
typedef struct host {
    TVMFFIAny module;
} host;

/** Values, borrowed but for those of host_list() and host_shape(). */
TVMFFIAny host_none(void);
TVMFFIAny host_int(int64_t value);
TVMFFIAny host_text(const char *value);
TVMFFIAny host_tensor(DLTensor *value);
TVMFFIAny host_list(const TVMFFIAny *values, int32_t count);
TVMFFIAny host_shape(const int64_t *sizes, int32_t count);

/** Gives a value's reference back; values that are not objects are fine. */
void host_drop(TVMFFIAny value);

/** Loads the module at `path`; a failure fails the test. */
host host_load(const char *path);

/** Calls a function of the module, and returns its result, which the caller drops; an error fails
 * the test. */
TVMFFIAny host_call(const host *h, const char *name, const TVMFFIAny *arguments, int32_t count);

/** Calls a function that must fail with an error of that kind, whose message contains `part`. */
void host_fails(const host *h, const char *name, const TVMFFIAny *arguments, int32_t count, const char *kind,
                const char *part);

/** host_call(), but false if there was an error, which is kept in `message`, of `size` bytes. For
 * any thread. */
bool host_try(const host *h, const char *name, const TVMFFIAny *arguments, int32_t count, TVMFFIAny *result,
              char *message, size_t size);

/** Takes the raised error: its kind and its message, each of at most `size` bytes. */
void host_take_error(char *kind, char *message, size_t size);

/** The text of a str. It belongs to the value, which stays in place as long as it is read. */
const char *host_text_of(const TVMFFIAny *value);

/** A number of a Shape. */
int64_t host_size_of(const TVMFFIAny *shape, size_t index);

#endif
