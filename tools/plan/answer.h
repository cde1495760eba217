/** What `tessera plan` answers: figures of all ranks, or of one, as JSON, in words and as a picture. */
#ifndef TESSERA_TOOLS_PLAN_ANSWER_H
#define TESSERA_TOOLS_PLAN_ANSWER_H

#include "cli/text_buffer.h"
#include "plan/request.h"

#include <tessera/explain.h>

typedef struct plan_answer {
    const plan_request *request;
    tsr_plan *plan;
    bool one_rank; /**< --rank: the figures are that rank's, its own as most and in all */
    tsr_plan_survey figures;
} plan_answer;

/** Plans and counts. Returns the tool's exit status; the caller calls plan_answer_finish() in any case. */
int plan_answer_make(const plan_request *request, plan_answer *out);
void plan_answer_finish(plan_answer *a);

/** Write it to a text, whose own failures are for the caller to find. */
int plan_write_json(const plan_answer *a, text_buffer *to);
int plan_write_text(const plan_answer *a, text_buffer *to);

/** An SVG picture as text, which the caller frees; NULL on failure. */
int plan_draw(const plan_answer *a, char **text, size_t *bytes);

/** A step in words; on the heap, NULL if there is no memory. */
char *plan_step_text(const plan_answer *a, size_t step);

#endif
