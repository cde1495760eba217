/**
 * @file
 * Programs and executables as bytes: recorded once, kept in files, loaded by every rank, in place
 * of recording them again. JAX's serialized executables.
 *
 * Saved bytes hold what was recorded: values, ops by name with their attributes, redistributions
 * (also those that a policy put in), stores and outputs. They hold neither parameters' elements,
 * which tsr_executable_bind() gives, nor plans, which are made anew. They do not depend on the
 * machine, nor, of a program, on the rank.
 *
 * @par Loading
 * Loading records the program again in `context`, on abstract meshes: tsr_compile() is given the
 * rank, and tsr_executable_prepare() the communicator. The policy of the context changes nothing
 * that is loaded. Ops of a program's own (tsr_context_options.ops) are found by name, so the
 * context has rows of the same names.
 *
 * @par Trust
 * Bytes are not trusted. Any that saving would not write are refused with a sentence. Memory and
 * time to load a program grow with the number of the bytes alone. An executable is compiled, too,
 * which costs as much as tsr_compile() of the same program: plans, which
 * tsr_context_options.plan_entries bounds, and constants, which the context's allocator may refuse.
 * Running it touches only the memory that the run is given.
 */
#ifndef TESSERA_SAVED_PROGRAM_H
#define TESSERA_SAVED_PROGRAM_H

#include <tessera/executable.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Saves the program as it is now: writes at most `capacity` bytes to `buffer` (NULL where
 * `capacity` is 0), and the number of bytes of the whole saved program to `*bytes`. It is saved
 * whole if `*bytes` <= `capacity`. Does not communicate. An error of the program is returned.
 */
TSR_API tsr_status tsr_program_save(const tsr_program *program, void *buffer, size_t capacity,
                                    size_t *bytes);

/**
 * The program that `size` bytes hold; values have the numbers that they had, and recording may go
 * on. The program keeps a reference to the context. The caller owns `*out`. Does not communicate;
 * any thread.
 *
 * TSR_ERROR_ARGUMENT: not a saved program, cut short, damaged, with values that no program has, or
 * with an op that the context does not know; the sentence says which. TSR_ERROR_UNSUPPORTED: saved
 * in another format, or by a library whose rules give other layouts: record it again.
 */
TSR_API tsr_status tsr_program_load(tsr_context *context, const void *bytes, size_t size,
                                    tsr_program **out);

/** tsr_program_save() of the program as it was compiled, with the rank whose part the executable
 * is. Bound tensors, and lengths and keys that were set, are not saved. */
TSR_API tsr_status tsr_executable_save(const tsr_executable *executable, void *buffer,
                                       size_t capacity, size_t *bytes);

/** The executable that `size` bytes hold, of the rank that saved it, with the same steps: to be
 * prepared, and bound, like any other. To have another rank's part, save the program. The caller
 * owns `*out`. Does not communicate; any thread. Errors as of tsr_program_load() and tsr_compile().
 */
TSR_API tsr_status tsr_executable_load(tsr_context *context, const void *bytes, size_t size,
                                       tsr_executable **out);

/** tsr_executable_load() for tensors on `device` (tsr_compile_options.device), which is not saved.
 */
TSR_API tsr_status tsr_executable_load_on(tsr_context *context, const void *bytes, size_t size,
                                          tsr_device device, tsr_executable **out);

#ifdef __cplusplus
}
#endif

#endif
