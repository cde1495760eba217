#include "cli/spelling.h"

#include "cli/guess.h"

#include <tessera/dtype.h>

#include <ctype.h>
#include <string.h>

/* PyTorch's names of dtypes. */
static const struct {
    const char *name;
    tsr_dtype dtype;
} dtypes[] = {
    {"float64", TSR_F64},
    {"double", TSR_F64},
    {"float32", TSR_F32},
    {"float", TSR_F32},
    {"float16", TSR_F16},
    {"half", TSR_F16},
    {"bfloat16", TSR_BF16},
    {"float8_e4m3fn", TSR_F8E4M3},
    {"float8_e5m2", TSR_F8E5M2},
    {"int64", TSR_I64},
    {"long", TSR_I64},
    {"int32", TSR_I32},
    {"int", TSR_I32},
    {"int16", TSR_I16},
    {"short", TSR_I16},
    {"int8", TSR_I8},
    {"uint64", TSR_U64},
    {"uint32", TSR_U32},
    {"uint16", TSR_U16},
    {"uint8", TSR_U8},
    {"bool", TSR_BOOL},
    {"complex64", TSR_C64},
    {"cfloat", TSR_C64},
    {"complex128", TSR_C128},
    {"cdouble", TSR_C128},
};

enum { DTYPES = sizeof dtypes / sizeof *dtypes };

static bool is_word(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

static bool is_digit(char c)
{
    return isdigit((unsigned char)c);
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

/* Removes blanks, but for those between two characters that would become one word or number. */
static void drop_blanks(char *text, bool (*joins)(char))
{
    char *out = text;
    for (const char *at = text; *at != '\0'; at++) {
        const char next = at[strspn(at, " \t")];
        if (!is_blank(*at) || (out > text && joins(out[-1]) && joins(next)))
            *out++ = *at;
    }
    *out = '\0';
}

/* Steps over `word` if it comes next. */
static bool accept(const char **at, const char *word)
{
    const size_t length = strlen(word);
    if (strncmp(*at, word, length) != 0)
        return false;
    *at += length;
    return true;
}

static char *append(char *out, const char *from, size_t length)
{
    memmove(out, from, length);
    return out + length;
}

/* Our name of the dtype that PyTorch calls so; NULL: PyTorch has no such dtype. */
static const char *name_of(const char *name, size_t length)
{
    static const char module[] = "torch.";
    const size_t begin = strncmp(name, module, strlen(module)) == 0 ? strlen(module) : 0;
    for (int i = 0; i < DTYPES && begin <= length; i++)
        if (strlen(dtypes[i].name) == length - begin && memcmp(dtypes[i].name, name + begin, length - begin) == 0)
            return tsr_dtype_name(dtypes[i].dtype);
    return NULL;
}

void spell_dtypes(char *text)
{
    drop_blanks(text, is_word);
    char *out = text;
    for (const char *at = text;; at++) {
        const size_t length = strcspn(at, ",");
        const char *const ours = name_of(at, length);
        out = ours ? append(out, ours, strlen(ours)) : append(out, at, length);
        at += length;
        if (*at == '\0')
            break;
        *out++ = ',';
    }
    *out = '\0';
}

const char *guess_dtype(const char *name)
{
    guess ours = {.word = name}, theirs = {.word = name};
    for (tsr_dtype dtype = TSR_DTYPE_NONE + 1; dtype < TSR_DTYPE_END; dtype++)
        guess_try(&ours, tsr_dtype_name(dtype));
    for (int i = 0; i < DTYPES; i++)
        guess_try(&theirs, dtypes[i].name);
    if (theirs.name && (!ours.name || theirs.distance < ours.distance))
        return name_of(theirs.name, strlen(theirs.name));
    return ours.name;
}

/* Takes away brackets around the whole of a text, and a comma before the last one. */
static void drop_brackets(char *text)
{
    const size_t length = strlen(text);
    if (length < 2 || !((text[0] == '[' && text[length - 1] == ']') || (text[0] == '(' && text[length - 1] == ')')))
        return;
    const size_t inside = length - 2 - (length > 2 && text[length - 2] == ',');
    memmove(text, text + 1, inside);
    text[inside] = '\0';
}

/* Reads "(reduce_op='max')", "(max)", "()" or nothing behind Partial, and appends our P(max). */
static bool spell_partial(const char **in, char **out)
{
    const char *at = *in, *op = at;
    size_t length = 0;
    if (accept(&at, "(")) {
        accept(&at, "reduce_op=");
        const char quote[] = {*at == '\'' || *at == '"' ? *at : '\0', '\0'};
        accept(&at, quote);
        op = at;
        length = strspn(at, "abcdefghijklmnopqrstuvwxyz");
        at += length;
        if (!accept(&at, quote) || !accept(&at, ")"))
            return false;
    }
    *in = at;
    *out = append(*out, "P", 1);
    if (length == 0 || (length == 3 && memcmp(op, "sum", 3) == 0))
        return true;
    *out = append(*out, "(", 1);
    *out = append(*out, op, length == 7 && memcmp(op, "product", 7) == 0 ? strlen("prod") : length);
    *out = append(*out, ")", 1);
    return true;
}

/* Reads a number, which may come behind "name=", and returns its length; 0: there is none. */
static size_t find_number(const char **at, const char *name, const char **number)
{
    const char *begin = *at;
    if (accept(&begin, name) && !accept(&begin, "="))
        return 0;
    const size_t length = strspn(begin, "-0123456789");
    *number = begin;
    *at = begin + length;
    return length;
}

/* Reads what stands between the brackets of Shard() and _StridedShard(), and appends our S(). */
static bool spell_cut(const char **in, char **out, bool strided)
{
    const char *at = *in, *dim, *factor = NULL;
    const size_t dim_length = find_number(&at, "dim", &dim);
    size_t factor_length = 0;
    if (strided && accept(&at, ","))
        factor_length = find_number(&at, *at == 's' && at[1] == 'f' ? "sf" : "split_factor", &factor);
    if (dim_length == 0 || strided != (factor_length > 0) || !accept(&at, ")"))
        return false;
    *out = append(*out, "S(", 2);
    *out = append(*out, dim, dim_length);
    if (strided) {
        *out = append(*out, ";interleave=", 12);
        *out = append(*out, factor, factor_length);
    }
    *out = append(*out, ")", 1);
    *in = at;
    return true;
}

/* Rewrites one placement of PyTorch's; false, and nothing is read, if there is none. */
static bool spell_placement(const char **in, char **out)
{
    const char *at = *in;
    char *end = *out;
    if (accept(&at, "Replicate")) {
        accept(&at, "()");
        end = append(end, "R", 1);
    } else if (accept(&at, "Partial") || accept(&at, "_Partial")) {
        if (!spell_partial(&at, &end))
            return false;
    } else {
        const bool strided = accept(&at, "_StridedShard(");
        if ((!strided && !accept(&at, "Shard(")) || !spell_cut(&at, &end, strided))
            return false;
    }
    *in = at;
    *out = end;
    return true;
}

void spell_placements(char *text)
{
    drop_blanks(text, is_word);
    drop_brackets(text);
    char *out = text;
    int depth = 0;
    bool begins = true;
    for (const char *at = text; *at != '\0';) {
        if (begins && spell_placement(&at, &out)) {
            begins = false;
            continue;
        }
        depth += (*at == '(' || *at == '[') - (*at == ')' || *at == ']');
        begins = depth == 0 && *at == ',';
        *out++ = *at++;
    }
    *out = '\0';
}

static bool opens(char c)
{
    return c == '(' || c == '[';
}

static bool closes(char c)
{
    return c == ')' || c == ']';
}

/* True if a bracket may stand here, at this depth: around a whole shape, or directly inside another
 * bracket, as in "([64,64])". */
static bool may_be_bracket(const char *text, const char *at, int depth)
{
    if (opens(*at))
        return depth == 0 ? at == text || at[-1] == ',' : depth == 1 && opens(at[-1]);
    return depth == 1 ? at[1] == '\0' || at[1] == ',' : depth == 2 && closes(at[1]);
}

/* True if the text has nothing but sizes, commas, x, and brackets where they may be. */
static bool is_of_shapes(const char *text)
{
    int depth = 0;
    for (const char *at = text; *at != '\0'; at++) {
        const bool bracket = opens(*at) || closes(*at);
        if (bracket ? !may_be_bracket(text, at, depth) : !is_digit(*at) && *at != ',' && *at != 'x')
            return false;
        depth += opens(*at) - closes(*at);
    }
    return depth == 0;
}

/* Writes x for the commas of a shape, and leaves out its brackets. */
static void join_sizes(char *text, bool list)
{
    char *out = text;
    int depth = 0;
    for (const char *at = text; *at != '\0'; at++) {
        depth += opens(*at) - closes(*at);
        if (closes(*at) && out > text && out[-1] == 'x')
            out--;
        if (!opens(*at) && !closes(*at))
            *out++ = *at == ',' && (depth > 0 || !list) ? 'x' : *at;
    }
    *out = '\0';
}

const char *spell_shape(char *text, bool list)
{
    static const char name[] = "torch.Size";
    drop_blanks(text, is_digit);
    for (char *at = strstr(text, name); at; at = strstr(at, name))
        memmove(at, at + strlen(name), strlen(at + strlen(name)) + 1);
    if (strcmp(text, "()") == 0 || strcmp(text, "[]") == 0 || strcmp(text, "([])") == 0)
        return "scalar";
    if (is_of_shapes(text))
        join_sizes(text, list);
    return text;
}

void spell_mesh(char *text)
{
    const bool named = strchr(text, '=') != NULL;
    drop_blanks(text, named ? is_word : is_digit);
    const size_t length = strcspn(text, "@");
    const char ranks = text[length];
    /* The ranks behind @ have brackets and commas of their own. */
    text[length] = '\0';
    if (named)
        drop_brackets(text);
    else if (is_of_shapes(text))
        join_sizes(text, false);
    if (ranks != '\0') {
        char *const end = text + strlen(text);
        *end = '@';
        memmove(end + 1, text + length + 1, strlen(text + length + 1) + 1);
    }
}
