/**
 * @file
 * Programs written as JSON. In libtessera-programs (`pkg-config tessera-programs`).
 *
 * @par The text
 * One object. `values` are inputs, parameters, states and constants: {"name", "kind", "shape",
 * "dtype"}, with "placements", one text a mesh dim, or null for Replicate; "gradient": "P" where a
 * Replicate value varies, else "R"; and "value" of a constant. `ops` are {"op", "inputs",
 * "outputs", "attributes"} in order, with names of values, null for an operand that is left out,
 * and attributes of the op's row: numbers, lists, words, dtypes by name. {"op": "store", "inputs":
 * [state, value, position]} is tsr_op_store(); position may be null. `outputs` are {"name",
 * "placements"}, null for what the rule gives. `gradients`, {"of", "to"}, records the gradients of
 * a loss; that of w is the output `d.w`.
 *
 * `optimizer` records an update (optimizer.h) of the states of gradients.to: {"name": "adamw" (sgd,
 * lion, adafactor, muon), "rate", "step"}, with names of values that runs give; "shard_over", a
 * list of mesh dims; "clip"; and the fields of tsr_optimizer_options: "weight_decay", "betas",
 * "epsilon", "momentum", "dampening", "nesterov", "masters", "beta2_decay", "least_scale",
 * "threshold". Gradients are then outputs only if they are among `outputs`; a state there is what
 * the update leaves.
 */
#ifndef TESSERA_PROGRAM_JSON_H
#define TESSERA_PROGRAM_JSON_H

#include <tessera/program.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Records the program of a text of `bytes` bytes on a mesh, which may be abstract; the policy is
 * that of the mesh's context. `name`, such as the path of the text, begins sentences. Nothing of
 * the text is trusted. Values have the text's names as labels (tsr_value_label()). The caller owns
 * `*out`. Pure: does not communicate. Any thread.
 *
 * TSR_ERROR_IO: the text is not a program; the sentence points at the value or op. Other errors
 * are those of recording: TSR_ERROR_ARGUMENT: a layout, or an op, refuses what it is given.
 */
TSR_API tsr_status tsr_program_parse(const char *name, const void *text, size_t bytes,
                                     const tsr_mesh *mesh, tsr_program **out);

#ifdef __cplusplus
}
#endif

#endif
