/** Sums of products as data: which dims of operands and of the result are one factor. Pure. */
#ifndef TSR_OPS_KERNELS_PRODUCTS_EQUATION_H
#define TSR_OPS_KERNELS_PRODUCTS_EQUATION_H

#include <tessera/layout.h>

#include <stdbool.h>

/** The most operands of an equation, and the most letters. */
#define TSR_EQUATION_OPERANDS 4
#define TSR_EQUATION_LETTERS  12

/** Factors of an equation: the dims of "..." are the first TSR_MAX_DIMS, aligned at the right;
 * letters follow. */
#define TSR_EQUATION_FACTORS (TSR_MAX_DIMS + TSR_EQUATION_LETTERS)

/** A dim of size 1 that is repeated along "...". */
#define TSR_EQUATION_ONE (-1)

/** Room for the name of a factor in a rule. */
#define TSR_EQUATION_NAME 3

typedef struct tsr_equation_term {
    int ndim;
    int factor[TSR_MAX_DIMS];
} tsr_equation_term;

typedef struct tsr_equation {
    int operand_count, letter_count;
    tsr_equation_term operands[TSR_EQUATION_OPERANDS], result;
    bool ellipses[TSR_EQUATION_OPERANDS + 1]; /**< which operands, and the result, have "..." */
    char letters[TSR_EQUATION_LETTERS];       /**< in the order in which they appear */
} tsr_equation;

/**
 * Reads an einsum's equation, "...ij,jk->...ik", for operands of these layouts: letters and "...";
 * without "->" the result has "..." and, in alphabetical order, the letters that appear once.
 * TSR_ERROR_ARGUMENT, in a sentence that begins with `caller`: the text points at the character
 * that is wrong; or numbers of operands or dims do not match.
 */
tsr_status tsr_equation_parse(const char *caller, const char *text, int count, const tsr_layout *const *operands,
                              tsr_equation *out);

/** The equation of matmul(a, b): operands of one dim are a row on the left and a column on the
 * right. TSR_ERROR_ARGUMENT: an operand has no dims. */
tsr_status tsr_equation_of_matmul(const char *caller, const tsr_layout *const *operands, tsr_equation *out);

/** The bits of a term's factors. */
unsigned tsr_equation_bits(const tsr_equation_term *term);

/** The name of a factor in a rule: its letter, or two for an upper-case one; "d0", .. for dims of
 * "...". */
const char *tsr_equation_name(const tsr_equation *equation, int factor, char name[TSR_EQUATION_NAME]);

#endif
