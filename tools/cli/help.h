/** Text for people on standard output, in lines that fit a terminal. */
#ifndef TESSERA_TOOLS_CLI_HELP_H
#define TESSERA_TOOLS_CLI_HELP_H

/** Says words from column `column`, where the line at hand is, on; lines that follow begin at
 * `indent`. A line feed in the text ends a line, and so does the end of the text. */
void help_words(const char *text, int column, int indent);

/** An option, as "-b, --begin=BYTES", and what it does. `letter` may be 0, `value` NULL. */
void help_option(char letter, const char *name, const char *value, const char *does);

#endif
