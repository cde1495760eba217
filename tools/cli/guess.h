/** Finds the name that a misspelled word probably means. Pure. */
#ifndef TESSERA_TOOLS_CLI_GUESS_H
#define TESSERA_TOOLS_CLI_GUESS_H

#include <stddef.h>

/** The nearest name so far. Begin with {.word = WORD}; names outlive it. */
typedef struct guess {
    const char *word;
    const char *name; /**< NULL: no name is near enough */
    size_t distance;
} guess;

/** Takes `name` if it is nearer to the word than the names before. The distance counts letters that
 * are changed, added, left out, or exchanged with the next one, whatever their case. It may be a
 * third of the longer one's length. */
void guess_try(guess *g, const char *name);

/** Room for any text of guess_say(). */
#define GUESS_TEXT 80

/** Writes " (did you mean 'NAME'?)", or nothing without a name, and returns `text`. `before` stands
 * in front of the name: "--". */
const char *guess_say(const guess *g, const char *before, char text[GUESS_TEXT]);

#endif
