/** Text from the weights as they are, on the mesh on which they are trained. */
#ifndef TRAIN_SAMPLER_H
#define TRAIN_SAMPLER_H

#include "generate.h"
#include "trainer.h"

typedef struct train_sampler train_sampler;

/** Collective: makes a sampler for one request, which is borrowed, as the trainer is. */
tsr_status train_sampler_create(const train_trainer *trainer, const llama_request *request, train_sampler **out);
void train_sampler_destroy(train_sampler *sampler);

/** Collective: generates text after step `step`, which has random numbers of its own. All ranks get
 * the same tokens. Free `*out` with llama_generation_finish(). */
tsr_status train_sampler_generate(train_sampler *sampler, int64_t step, llama_generation *out);

#endif
