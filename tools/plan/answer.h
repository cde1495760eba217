/** The answer of `tessera plan`: figures of all ranks, or of one, as JSON, text and a picture. */
#ifndef TESSERA_TOOLS_PLAN_ANSWER_H
#define TESSERA_TOOLS_PLAN_ANSWER_H

#include "cli/text_buffer.h"
#include "plan/request.h"

#include <tessera/explain.h>

typedef struct plan_answer {
    const plan_request *request;
    tsr_plan *plan;
    bool one_rank; /**< --rank: the figures are of that rank alone, each both maximum and total */
    tsr_plan_survey figures;
} plan_answer;

/** Plans the move and counts its figures; `request` is borrowed. Returns the tool's exit status;
 * the caller calls plan_answer_finish() in any case. */
int plan_answer_make(const plan_request *request, plan_answer *out);
void plan_answer_finish(plan_answer *a);

/** Write the answer as JSON or text. Return the tool's exit status; the caller checks `to` for a
 * lack of memory. */
int plan_write_json(const plan_answer *a, text_buffer *to);
int plan_write_text(const plan_answer *a, text_buffer *to);

/** Draws the answer as SVG of `*bytes`, which the caller frees; NULL on failure. Returns the tool's
 * exit status. */
int plan_draw(const plan_answer *a, char **text, size_t *bytes);

/** A step in words, which the caller frees; NULL if there is no memory. */
char *plan_step_text(const plan_answer *a, size_t step);

#endif
