/**
 * Other spellings of values: PyTorch's, and blanks.
 *
 * Each function rewrites a text in place into the spelling that the library reads, and leaves alone
 * what it does not know, for the parsers to refuse. Our spelling is never the longer one.
 */
#ifndef TESSERA_TOOLS_CLI_SPELLING_H
#define TESSERA_TOOLS_CLI_SPELLING_H

#include <stdbool.h>

/** Dtypes, one or a list: "torch.float32, bfloat16" becomes "f32,bf16". */
void spell_dtypes(char *text);

/** "[Shard(0), Replicate()]" becomes "S(0),R", "Partial(max)" becomes "P(max)", and
 * "_StridedShard(0, sf=2)" becomes "S(0;interleave=2)". */
void spell_placements(char *text);

/** "(64, 64)", "[64, 64]", "torch.Size([64, 64])" and "64 x 64" become "64x64"; so does "64, 64"
 * unless commas part the shapes of a `list`. Returns `text`; for "()" and "[]", which have no room
 * for ours, "scalar". */
const char *spell_shape(char *text, bool list);

/** "(2, 4)", "2,4" and "2 x 4" become "2x4"; "(dp=2, tp=4)" becomes "dp=2,tp=4". */
void spell_mesh(char *text);

/** The dtype that an unknown name probably means, in our spelling; NULL: none is near. */
const char *guess_dtype(const char *name);

#endif
