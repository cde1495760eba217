#include "cli/guess.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* Longer words are not compared: no name is so long. */
#define LONGEST 31

static bool same_letter(char a, char b)
{
    return tolower((unsigned char)a) == tolower((unsigned char)b);
}

static size_t least_of(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* The optimal string alignment distance; row i of the table is for the first i letters of `a`. */
static size_t distance_of(const char *a, size_t rows, const char *b, size_t columns)
{
    size_t table[LONGEST + 1][LONGEST + 1];
    for (size_t i = 0; i <= rows; i++) {
        for (size_t j = 0; j <= columns; j++) {
            if (i == 0 || j == 0) {
                table[i][j] = i + j;
                continue;
            }
            const size_t kept = table[i - 1][j - 1] + !same_letter(a[i - 1], b[j - 1]);
            table[i][j] = least_of(kept, least_of(table[i - 1][j], table[i][j - 1]) + 1);
            if (i > 1 && j > 1 && same_letter(a[i - 1], b[j - 2]) && same_letter(a[i - 2], b[j - 1]))
                table[i][j] = least_of(table[i][j], table[i - 2][j - 2] + 1);
        }
    }
    return table[rows][columns];
}

void guess_try(guess *g, const char *name)
{
    const size_t length = strlen(g->word), other = strlen(name);
    if (length > LONGEST || other > LONGEST)
        return;
    const size_t distance = distance_of(g->word, length, name, other);
    if (distance > (length > other ? length : other) / 3 || (g->name && distance >= g->distance))
        return;
    g->name = name;
    g->distance = distance;
}

const char *guess_say(const guess *g, const char *before, char text[GUESS_TEXT])
{
    text[0] = '\0';
    if (g->name)
        snprintf(text, GUESS_TEXT, " (did you mean '%s%s'?)", before, g->name);
    return text;
}
