/** Text for people on standard output, in lines that fit a terminal. */
#ifndef TESSERA_TOOLS_CLI_HELP_H
#define TESSERA_TOOLS_CLI_HELP_H

/** Prints words, the first at column `column` of the line begun; wrapped lines begin at column
 * `indent`. A line feed in the text ends a line, and so does the end of the text. */
void help_words(const char *text, int column, int indent);

/** Prints an option, as "-b, --begin=BYTES", and what it does. `letter` is 0, and `value` NULL, for
 * an option without one. */
void help_option(char letter, const char *name, const char *value, const char *does);

#endif
