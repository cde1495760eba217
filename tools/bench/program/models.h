/** The models that `bench program` measures: an MLP with a gate, a block of a Llama around it, and
 * a whole Llama. */
#ifndef TESSERA_TOOLS_BENCH_PROGRAM_MODELS_H
#define TESSERA_TOOLS_BENCH_PROGRAM_MODELS_H

#include <tessera/program.h>

#include <stdbool.h>
#include <stdint.h>

/** Sizes of a model. There are as many sequences as ranks along all mesh dims but the last; a whole
 * Llama has one, of at most `tokens`, and `layers` blocks. */
typedef struct model_sizes {
    int64_t sequences, tokens, hidden, intermediate, heads, kv_heads, layers;
} model_sizes;

/** Values that are given; the MLP takes the first four alone. */
enum {
    MODEL_X,
    MODEL_GATE,
    MODEL_UP,
    MODEL_DOWN,
    MODEL_NORM,
    MODEL_WQ,
    MODEL_WK,
    MODEL_WV,
    MODEL_WO,
    MODEL_MLP_NORM,
    MODEL_POSITIONS,
    MODEL_GIVEN
};

/** The most ops of a model. */
enum { MODEL_CALLS = 32, MODEL_ATTRIBUTES = 3 };

/** An op that a model has recorded. */
typedef struct model_call {
    const char *op;
    size_t count;
    tsr_attribute attributes[MODEL_ATTRIBUTES];
    tsr_value operands[TSR_OP_MOST_OPERANDS], result;
    bool computes; /**< it is neither a view nor a move */
} model_call;

/** A model that is recorded. */
typedef struct model {
    tsr_program *program; /**< borrowed */
    const tsr_mesh *mesh;
    model_sizes sizes;
    tsr_value given[MODEL_GIVEN]; /**< TSR_NONE: the model does not take it */
    model_call calls[MODEL_CALLS];
    int call_count;
} model;

/** Records a model on m->mesh, whose last dim cuts weights and whose other dims cut sequences. Its
 * output is "y". Errors stick to the program. */
void model_record_mlp(model *m);
void model_record_block(model *m);

/** Records a whole Llama, with lengths and caches as examples/llama has them; only its sizes and
 * program are read, and nothing is noted in `m`. Its output is "logits". */
void model_record_llama(model *m);

/** The placements of a tensor as text: `cut` on the last mesh dim, `others` on the others. */
void model_placements(const model *m, const char *others, const char *cut, char text[256]);

/** Element `index` of a given value other than positions: of few enough bits for f32, and such that
 * sums over a row are about 1. */
double model_value(const model_sizes *sizes, int given, int64_t index);

/** The number of rows, and elements of a row, of a weight. */
int64_t model_rows(const model_sizes *sizes, int given);
int64_t model_columns(const model_sizes *sizes, int given);

/** The bases of rotary positions, and what is added to squares under a root. */
#define MODEL_ROPE_BASE 10000.0
#define MODEL_EPSILON   1e-5

/** The vocabulary of a whole Llama. */
#define MODEL_VOCABULARY 32000

#endif
