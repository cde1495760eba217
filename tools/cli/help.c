#include "cli/help.h"

#include "command.h"

#include <string.h>

/* Columns: where the text of an option begins, the gap after an option too long for that, and the
 * width of lines. */
enum { DOES_COLUMN = 29, LEAST_GAP = 3, WIDTH = 79 };

void help_words(const char *text, int column, int indent)
{
    const char *gap = "";
    for (const char *at = text; *at != '\0';) {
        const int length = (int)strcspn(at, " \n");
        if (*gap != '\0' && column + 1 + length > WIDTH) {
            say("\n%*s", indent, "");
            column = indent;
            gap = "";
        }
        say("%s%.*s", gap, length, at);
        column += (int)strlen(gap) + length;
        gap = " ";
        at += length;
        for (; *at == '\n'; at++, gap = "", column = 0)
            say_text("\n");
        at += *at == ' ';
    }
    say_text("\n");
}

void help_option(char letter, const char *name, const char *value, const char *does)
{
    const char *const joint = value ? "=" : "", *const what = value ? value : "";
    const char brief[] = {'-', letter, ',', '\0'};
    const int used = 8 + (int)(strlen(name) + strlen(joint) + strlen(what));
    say("  %3s --%s%s%s", letter != 0 ? brief : "", name, joint, what);
    const int gap = used < DOES_COLUMN - 1 ? DOES_COLUMN - used : LEAST_GAP;
    say("%*s", gap, "");
    help_words(does, used + gap, DOES_COLUMN);
}
