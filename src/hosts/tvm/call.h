/** A call of one of the module's functions: its arguments as TVM-FFI passes them, and its result.
 * Whatever fails gets a sentence, which begins with the function's name where an argument is at
 * fault. */
#ifndef TSR_HOSTS_TVM_CALL_H
#define TSR_HOSTS_TVM_CALL_H

#include <tessera/dtype.h>

#include <stdbool.h>
#include <tvm/ffi/c_api.h>

typedef struct tsr_tvm_call {
    const char *name;           /**< the function's */
    const TVMFFIAny *arguments; /**< borrowed by the call */
    int32_t count;
    TVMFFIAny *result; /**< None until the function returns something */
    bool wrong_type;   /**< the failure is a TypeError */
    bool raised;       /**< TVM-FFI has the error already */
} tsr_tvm_call;

/** A function of the module: its name, the least and the largest number of arguments, and what it
 * does. */
typedef struct tsr_tvm_function {
    const char *name;
    int32_t least, most;
    tsr_status (*body)(tsr_tvm_call *call);
} tsr_tvm_function;

/** Calls a tsr_tvm_function, `function`, by TVM-FFI's convention (TVMFFISafeCallType): 0, or -1
 * with an error that TVM-FFI has. */
int tsr_tvm_enter(void *function, const TVMFFIAny *arguments, int32_t count, TVMFFIAny *result);

/** True if the argument is there and not None. */
bool tsr_tvm_given(const tsr_tvm_call *call, int32_t index);

/** Read argument `index`, which sentences call `what`. Text and bytes are borrowed by the call. A
 * value of another type is a TypeError. */
tsr_status tsr_tvm_text(tsr_tvm_call *call, int32_t index, const char *what, const char **out);
tsr_status tsr_tvm_bytes(tsr_tvm_call *call, int32_t index, const char *what, TVMFFIByteArray *out);
tsr_status tsr_tvm_integer(tsr_tvm_call *call, int32_t index, const char *what, int64_t *out);
/** A shape, or a list of integers, of at most TSR_MAX_DIMS sizes. */
tsr_status tsr_tvm_sizes(tsr_tvm_call *call, int32_t index, const char *what, int *ndim, int64_t *sizes);
/** "f32", "float32" or a dtype of TVM-FFI. */
tsr_status tsr_tvm_dtype(tsr_tvm_call *call, int32_t index, const char *what, tsr_dtype *out);
/** The values of a list or tuple, borrowed by the call. */
tsr_status tsr_tvm_list(tsr_tvm_call *call, int32_t index, const char *what, const TVMFFIAny **values, int64_t *count);

/** Fails with a TypeError: argument `index` should be `wanted`. */
tsr_status tsr_tvm_refuse_type(tsr_tvm_call *call, int32_t index, const char *what, const char *wanted);

/** The name of a value's type, for sentences; static text. */
const char *tsr_tvm_type_name(const TVMFFIAny *value);

/** Set the result. The bytes are copied. */
tsr_status tsr_tvm_return_text(tsr_tvm_call *call, const char *text);
tsr_status tsr_tvm_return_bytes(tsr_tvm_call *call, const void *bytes, size_t size);
tsr_status tsr_tvm_return_integer(tsr_tvm_call *call, int64_t value);
/** A Shape of TVM-FFI. */
tsr_status tsr_tvm_return_sizes(tsr_tvm_call *call, int count, const int64_t *sizes);

/** Calls a global function of TVM-FFI. Its error becomes the call's own. */
tsr_status tsr_tvm_call_global(tsr_tvm_call *call, const char *name, const TVMFFIAny *arguments, int32_t count,
                               TVMFFIAny *result);

/** The call has failed in TVM-FFI, which has the error. */
tsr_status tsr_tvm_raised(tsr_tvm_call *call);

#endif
