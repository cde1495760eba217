/**
 * @file
 * Programs: a model written once over whole tensors, without data. JAX's jaxpr, torch.fx; a
 * program here knows how each of its values lies over a mesh, so that what it communicates is known
 * before it runs. tsr_compile() (executable.h) makes from it what one rank runs.
 *
 * @par Recording
 * Values are made by tsr_input(), tsr_parameter(), tsr_state() and tsr_constant(); ops take values
 * and give values (program_ops.h, or tsr_program_apply() by the op's name). Each value has a
 * layout, which the op's rule gives (docs/rules.md) as soon as it is recorded. A value is a number
 * that means something in its own program alone. Recording is pure: meshes may be abstract, and
 * nothing communicates. One thread records at a time.
 *
 * @par Errors
 * The first error sticks to the program: the calls after it do nothing and return TSR_NONE, and
 * tsr_program_status() and tsr_compile() tell it, with the op's name and its place in the program.
 *
 * @par Policies
 * Where operands do not fit an op's rule, the policy of the program's context
 * (tsr_context_options.policy) decides: forbid, the default, refuses them with the layouts that
 * would work; others put redistributions in, which tsr_executable_describe() lists.
 *
 * @par Gradients
 * A value has a layout and a gradient layout: Shard -> Shard, Partial(sum) -> Replicate, and
 * Replicate -> Replicate (invariant: every rank did the same work) or Partial (varying: each rank
 * has a term). Results of varying values vary; tsr_op_vary() makes a varying value of an invariant
 * one, and its backward is the all-reduce. The I and R of spmd_types; Megatron's f.
 */
#ifndef TESSERA_PROGRAM_H
#define TESSERA_PROGRAM_H

#include <tessera/random.h>

#ifdef __cplusplus
extern "C" {
#endif

/** A program. */
typedef struct tsr_program tsr_program;

/** A value of a program; TSR_NONE: an optional operand that is left out, or the value of a call
 * that failed. */
typedef int32_t tsr_value;

#define TSR_NONE (-1) /**< no value */

/** Makes an empty program, which keeps a reference to the context. The caller owns `*out`. Does not
 * communicate. TSR_ERROR_ARGUMENT: an argument is NULL. */
TSR_API tsr_status tsr_program_create(tsr_context *context, tsr_program **out);

/** Frees a program; NULL is fine. Executables that were made of it live on. */
TSR_API void tsr_program_destroy(tsr_program *program);

/** The program's first error, and in `*sentence`, where not NULL, its sentence, which is borrowed
 * from the program; TSR_OK and NULL where there is none. */
TSR_API tsr_status tsr_program_status(const tsr_program *program, const char **sentence);

/**
 * A value that each run is given, a tensor of `ndim` dims on `mesh`; `placements` is one a mesh dim
 * as text ("S(0),R"), NULL: Replicate. `name` is copied: letters, digits, `_`, `.` and `-`,
 * not used by another value of the program. The mesh is retained.
 */
TSR_API tsr_value tsr_input(tsr_program *program, const char *name, const tsr_mesh *mesh,
                            tsr_dtype dtype, int ndim, const int64_t *shape,
                            const char *placements);

/** A value that stays between runs and that no run changes: a weight. tsr_executable_bind() gives
 * it. The layout is retained, and the name is as for tsr_input(). */
TSR_API tsr_value tsr_parameter(tsr_program *program, const char *name, const tsr_layout *layout);

/** A value that stays between runs and that tsr_op_store() changes: a key/value cache, a trained
 * weight, a step count. tsr_executable_bind() gives it. The layout, which is retained, may be
 * Partial: terms that runs add to, before one of them sums them over ranks. The name is as for
 * tsr_input(). Ops recorded after a store see what it stored. */
TSR_API tsr_value tsr_state(tsr_program *program, const char *name, const tsr_layout *layout);

/**
 * A length that each run gives by tsr_executable_set_length(), from 1 to `maximum`, such as the
 * number of tokens: returns a number, -2^63 + 0, 1, .., that stands for it in shapes of tsr_input()
 * and in integer attributes other than keys. Executables have memory for the maximum. A dim of such
 * a length is not sharded, and its sizes follow from lengths by sums and multiples. The name is
 * copied. At most 8.
 */
TSR_API int64_t tsr_length(tsr_program *program, const char *name, int64_t maximum);

/**
 * A key of random numbers (random.h) that each run gives by tsr_executable_set_key(), of
 * `generator`: returns a key that stands for it in the functions of program_ops.h. The name is
 * copied. At most 8; each layer derives its own by tsr_random_key_fold_in() or
 * tsr_random_key_split(), which give here what they give of the run's key:
 *
 *     tsr_random_key key = tsr_run_key(p, "dropout", TSR_RANDOM_THREEFRY);
 *     for (int i = 0; i < layers; i++) {
 *         tsr_random_key own = tsr_random_key_fold_in(key, i);
 *         x = tsr_op_dropout(p, layer(p, x, i), 0.1, &own);
 *     }
 *
 * Two numbers may follow one another so, or up to 4 that are all below 2^32; with more than that
 * the key is refused when it is used. It means something in its own program alone, and calls on
 * dtensors refuse it.
 */
TSR_API tsr_random_key tsr_run_key(tsr_program *program, const char *name,
                                   tsr_random_generator generator);

/** A tensor all of whose elements are `value`, converted to the layout's dtype. The layout, which
 * is retained, has no Partial dim. */
TSR_API tsr_value tsr_constant(tsr_program *program, double value, const tsr_layout *layout);

/** Makes `value` an output, written by each run to memory that the caller gives. `placements`: as
 * text, to which the value is redistributed as the policy allows; NULL: as it lies. `name` is as
 * for tsr_input(), but may be that of a value that is no output. */
TSR_API void tsr_output(tsr_program *program, const char *name, tsr_value value,
                        const char *placements);

/**
 * Records an op by its name (docs/ops.md): `operands` has a value for each of the op's operands,
 * and `attributes` are `count` in any order, copied. Returns the first result; `results`, where not
 * NULL, has room for TSR_OP_MOST_RESULTS and gets all, TSR_NONE past the last. The same op with the
 * same attributes and operands gives the value that is there already.
 */
TSR_API tsr_value tsr_program_apply(tsr_program *program, const char *op, size_t count,
                                    const tsr_attribute *attributes, const tsr_value *operands,
                                    tsr_value *results);

/** Writes a value into a state, in place, after all reads of it that are recorded before.
 * `position` TSR_NONE: the whole state; else one integer (i32 or i64, Replicate), from which on the
 * value lies in the dim in which it is shorter than the state, as keys in a cache. The value has
 * the state's dtype, and is brought to its placements as the policy allows; that dim of a state is
 * not sharded. */
TSR_API void tsr_op_store(tsr_program *program, tsr_value state, tsr_value value,
                          tsr_value position);

/** Marks a value, and returns it: tsr_gradients() then uses it as computed again from its operands,
 * and these again where they are marked too, so that it need not be kept until the backward.
 * PyTorch's checkpoint(), jax.checkpoint. tsr_program_apply() takes it by the name "recompute". */
TSR_API tsr_value tsr_op_recompute(tsr_program *program, tsr_value x);

/** Redistributes a value to another layout of the same tensor, on its mesh or, with the ranks of
 * both in one communicator, on another. The layout is retained. */
TSR_API tsr_value tsr_op_to_mesh(tsr_program *program, tsr_value x, const tsr_layout *layout);

/**
 * Records the gradients of `loss`, a tensor of floats with one element, by `count` values: `out[i]`
 * is that by `values[i]`, in that value's gradient layout, or a constant 0 where the loss does not
 * depend on it. Integers and bools pass no gradients on, such as the indices of tsr_op_topk() or
 * the condition of tsr_op_where(). Under the policy forbid gradients communicate only as the
 * transpose of what the program says; where a rule leaves terms of an invariant value's gradient,
 * the error names the use that needs tsr_op_vary(). The loss is whole or Partial(sum). Call it once
 * all uses are recorded.
 */
TSR_API void tsr_gradients(tsr_program *program, tsr_value loss, size_t count,
                           const tsr_value *values, tsr_value *out);

/** The layout of a value, borrowed from the program; NULL: there is no such value. */
TSR_API const tsr_layout *tsr_value_layout(const tsr_program *program, tsr_value value);

/** The mesh dims, by bits, on which the value is Replicate and its gradient Partial. */
TSR_API unsigned tsr_value_varying(const tsr_program *program, tsr_value value);

/** The name of an input, parameter or state, borrowed from the program; NULL: it has none. */
TSR_API const char *tsr_value_name(const tsr_program *program, tsr_value value);

/** Gives a value a label, which is copied, for people who read what the program does. The first
 * label of a value stays; labels change nothing else. Does not communicate. */
TSR_API void tsr_value_set_label(tsr_program *program, tsr_value value, const char *label);

/** The label of a value, else its name; borrowed from the program; NULL: it has neither. */
TSR_API const char *tsr_value_label(const tsr_program *program, tsr_value value);

#ifdef __cplusplus
}
#endif

#endif
