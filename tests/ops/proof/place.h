/** Places whole tensors of a proof on meshes, and draws how. */
#ifndef TESTS_OPS_PROOF_PLACE_H
#define TESTS_OPS_PROOF_PLACE_H

#include "proof.h"

/** Draws placements for the operands: often all of them cut one of the last dims, else each as it
 * likes. */
void draw_placements(draw *d, proof *p);

/** A whole tensor as a dtensor. `*memory`, under it, is another one, to be destroyed after it. On
 * the mesh of all ranks Partial ones are terms, which `seed` draws. */
tsr_status place_whole(const proof *p, const tsr_mesh *mesh, const tsr_placement *placements, const whole *w,
                       uint64_t seed, tsr_dtensor **memory, tsr_dtensor **out);

/** The attributes on a mesh: a list of placements is for the mesh of all ranks, and one rank has
 * "R". */
const tsr_attribute *attributes_on(const proof *p, const tsr_mesh *mesh, tsr_attribute *out);

/** Draws attributes and operands by the line, as `p->before` does with that salt. */
void draw_case(proof *p, uint64_t salt);

/** Prints the operands' placements, for errors. */
void print_placements(const proof *p, char *text, size_t capacity);

#endif
