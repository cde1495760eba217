#include "proof.h"

#include <string.h>

static const tsr_dtype dtypes[] = {TSR_F32, TSR_F64, TSR_F32};

static const char *const matmuls[] = {"...mk,...kn->...mn", "...mk,...kn->...mn", "k,...kn->...n", "...mk,k->...m",
                                      "k,k->"};

static const char *const equations[] = {
    "ik,kj->ij", "bik,bkj->bij", "...ij,...kj->...ik", "ij,ik->jk",    "i,j->ij",     "ij->ji",
    "ij->",      "ijk,k",        "bhqd,bhkd->bqhk",    "...i,i->...",  "ab,cd->dbca", "ij,kj->k",
    "Ab,bC",     "...,...j->j",  "bkij,kji->b",        "...ab->...ba",
};

/* Equations of three operands, and of four. */
static const char *const chains[] = {"ij,jk,kl->il",    "a,ab,b->",    "bi,bj,ij->b",
                                     "...a,a,ab->...b", "i,ij,j,k->k", "ab,bc,cd,da->ac"};

/* The sizes of letters, and of the dims of "..." from the last on. */
typedef struct sizes {
    int64_t letter[128], leading[2];
    tsr_dtype dtype;
} sizes;

static void draw_sizes(draw *d, sizes *s)
{
    for (int i = 0; i < 128; i++)
        s->letter[i] = draw_below(d, 24) ? 1 + draw_below(d, 4) : 0;
    for (int i = 0; i < 2; i++)
        s->leading[i] = 1 + draw_below(d, 3);
    s->dtype = dtypes[draw_below(d, 3)];
}

/* Draws a tensor of the term at `term`; its "..." is shorter than that of results, or repeated,
 * unless `full`. */
static void draw_term(draw *d, const sizes *s, const char *term, int leading, bool full, whole *w)
{
    w->ndim = 0;
    for (; *term && *term != ',' && *term != '-'; term++) {
        const int own = full ? leading : draw_below(d, leading + 1);
        if (*term != '.')
            w->shape[w->ndim++] = s->letter[(unsigned char)*term];
        for (int dim = own - 1; dim >= 0 && *term == '.'; dim--)
            w->shape[w->ndim++] = !full && draw_below(d, 4) == 0 ? 1 : s->leading[dim];
        term += *term == '.' ? 2 : 0;
    }
    w->dtype = s->dtype;
    draw_values(d, w);
}

/* Draws the operands of an equation; with `gradient` dout is in front. */
static void draw_equation(draw *d, proof *p, const char *equation, bool gradient)
{
    sizes s;
    int operand = gradient;
    draw_sizes(d, &s);
    const int leading = draw_below(d, 3);
    const char *const result = strstr(equation, "->");
    if (gradient)
        draw_term(d, &s, result + 2, leading, true, &p->operands[0]);
    const char *const open = strchr(equation, '.');
    for (const char *at = equation; at; at = at && (!result || at < result) ? at + 1 : NULL) {
        draw_term(d, &s, at, leading, !open || at <= open, &p->operands[operand++]);
        at = strchr(at, ',');
    }
}

static void matmul(draw *d, proof *p)
{
    draw_equation(d, p, matmuls[draw_below(d, 5)], false);
}

static void matmul_gradient(draw *d, proof *p)
{
    draw_equation(d, p, matmuls[draw_below(d, 5)], true);
}

/* Of at least that many operands. */
static void draw_einsum(draw *d, proof *p, bool gradient, int operands)
{
    const char *equation;
    do
        equation = operands == 4   ? chains[4 + draw_below(d, 2)]
                   : operands == 3 ? chains[draw_below(d, 6)]
                                   : equations[draw_below(d, 16)];
    while ((gradient && !strstr(equation, "->")) || (operands == 2 && !strchr(equation, ',')));
    proof_attribute(p, "equation")->words = equation;
    draw_equation(d, p, equation, gradient);
}

static void einsum(draw *d, proof *p)
{
    draw_einsum(d, p, false, 1 + draw_below(d, 3));
}

static void einsum_gradient_a(draw *d, proof *p)
{
    draw_einsum(d, p, true, 1 + draw_below(d, 3));
}

static void einsum_gradient_b(draw *d, proof *p)
{
    draw_einsum(d, p, true, 2);
}

static void einsum_gradient_c(draw *d, proof *p)
{
    draw_einsum(d, p, true, 3);
}

static void einsum_gradient_d(draw *d, proof *p)
{
    draw_einsum(d, p, true, 4);
}

static void linear(draw *d, proof *p)
{
    draw_equation(d, p, draw_below(d, 2) ? "...k,ok,o->...o" : "...k,ok->...o", false);
}

static void linear_gradient_x(draw *d, proof *p)
{
    draw_equation(d, p, "...o,ok", false);
}

static void linear_gradient_w(draw *d, proof *p)
{
    sizes s;
    draw_sizes(d, &s);
    const int leading = draw_below(d, 3);
    draw_term(d, &s, "...o", leading, true, &p->operands[0]);
    draw_term(d, &s, "...k", leading, true, &p->operands[1]);
}

static void linear_gradient_b(draw *d, proof *p)
{
    draw_equation(d, p, "...o", false);
}

/* Sizes of `groups` groups that are together at most `rows`. */
static void draw_groups(draw *d, int64_t groups, int64_t rows, whole *w)
{
    set_shape(w, 1, &groups);
    w->dtype = TSR_I64;
    draw_values(d, w);
    for (int64_t group = 0; group < groups; group++) {
        const int64_t size = draw_below(d, 3) ? draw_below(d, (int)(rows > 4 ? 4 : rows) + 1) : rows;
        w->values[group] = (double)size;
        rows -= size;
    }
}

/* x (t, k), w (e, k, n) and dout (t, n); those of `order`, then sizes. */
static void draw_grouped(draw *d, proof *p, const char *order)
{
    const int64_t t = draw_below(d, 10), k = 1 + draw_below(d, 4), n = 1 + draw_below(d, 4), e = 1 + draw_below(d, 5);
    const tsr_dtype dtype = dtypes[draw_below(d, 3)];
    for (int i = 0; i < 2; i++) {
        whole *const w = &p->operands[i];
        if (order[i] == 'x')
            set_shape(w, 2, (const int64_t[]){t, k});
        else if (order[i] == 'w')
            set_shape(w, 3, (const int64_t[]){e, k, n});
        else
            set_shape(w, 2, (const int64_t[]){t, n});
        w->dtype = dtype;
        draw_values(d, w);
    }
    draw_groups(d, e, t, &p->operands[2]);
}

static void grouped(draw *d, proof *p)
{
    draw_grouped(d, p, "xw");
}

static void grouped_gradient_x(draw *d, proof *p)
{
    draw_grouped(d, p, "dw");
}

static void grouped_gradient_w(draw *d, proof *p)
{
    draw_grouped(d, p, "xd");
}

/* Weights of 8 bits (o, k) and scales, as operands 1 and 2, and a first operand (.., k), or (.., o)
 * for the gradient. */
static void draw_q8(draw *d, proof *p, bool gradient)
{
    const int64_t o = 1 + draw_below(d, 4), blocks = 1 + draw_below(d, 3), k = blocks * TSR_Q8_SCALED;
    whole *const x = &p->operands[0], *const w = &p->operands[1], *const scales = &p->operands[2];
    set_shape(x, 2, (const int64_t[]){draw_below(d, 5), gradient ? o : k});
    set_shape(w, 2, (const int64_t[]){o, k});
    set_shape(scales, 2, (const int64_t[]){o, blocks});
    x->dtype = scales->dtype = TSR_F32;
    w->dtype = TSR_I8;
    draw_values(d, x);
    draw_values(d, w);
    draw_positive(d, scales);
}

static void q8(draw *d, proof *p)
{
    draw_q8(d, p, false);
    if (draw_below(d, 2) == 0)
        return;
    set_shape(&p->operands[3], 1, p->operands[1].shape);
    p->operands[3].dtype = TSR_F32;
    draw_values(d, &p->operands[3]);
}

static void q8_gradient_x(draw *d, proof *p)
{
    draw_q8(d, p, true);
}

#define EXACT .exact = true, .exact_gradients = true

const proof_case proof_products[] = {
    {"matmul", matmul, EXACT, .strict = STRICT_VALUES},
    {"einsum", einsum, EXACT, .draws = 36, .strict = STRICT_VALUES},
    {"linear", linear, EXACT, .strict = STRICT_VALUES},
    {"matmul_gradient_a", matmul_gradient, EXACT, .strict = STRICT_LIKE},
    {"matmul_gradient_b", matmul_gradient, EXACT, .strict = STRICT_LIKE},
    {"einsum_gradient_a", einsum_gradient_a, EXACT, .strict = STRICT_LIKE},
    {"einsum_gradient_b", einsum_gradient_b, EXACT, .strict = STRICT_LIKE},
    {"einsum_gradient_c", einsum_gradient_c, EXACT, .strict = STRICT_LIKE},
    {"einsum_gradient_d", einsum_gradient_d, EXACT, .strict = STRICT_LIKE},
    {"linear_gradient_x", linear_gradient_x, EXACT, .strict = STRICT_LIKE},
    {"linear_gradient_w", linear_gradient_w, EXACT, .strict = STRICT_LIKE},
    {"linear_gradient_b", linear_gradient_b, EXACT, .strict = STRICT_LIKE},
    {"grouped_matmul", grouped, EXACT, .strict = STRICT_VALUES},
    {"grouped_matmul_gradient_x", grouped_gradient_x, EXACT, .strict = STRICT_LIKE},
    {"grouped_matmul_gradient_w", grouped_gradient_w, EXACT, .strict = STRICT_LIKE},
    {"linear_q8", q8, EXACT, .constants = 1 << 2, .strict = STRICT_VALUES},
    {"linear_q8_gradient_x", q8_gradient_x, EXACT, .strict = STRICT_LIKE},
    {NULL},
};
