/* All writes to standard output pass through here, so that a program which exits with 0 has written
 * its whole answer. */
#include "command.h"

#include <errno.h>
#include <stdarg.h>

/* errno of the first write of this process that failed, ENOMEM for a lack of memory; 0 before
 * that. */
static int reason;

static void remember_failure(int error)
{
    if (reason == 0)
        reason = error != 0 ? error : EIO;
}

void say(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    errno = 0;
    if (vprintf(format, arguments) < 0)
        remember_failure(errno);
    va_end(arguments);
}

void say_text(const char *text)
{
    errno = 0;
    if (!text)
        say_memory_is_short();
    else if (fputs(text, stdout) == EOF)
        remember_failure(errno);
}

void say_memory_is_short(void)
{
    remember_failure(ENOMEM);
}

bool memory_was_short(void)
{
    return reason == ENOMEM;
}

int finish_stdout(void)
{
    errno = 0;
    if (fflush(stdout) != 0 || ferror(stdout))
        remember_failure(errno);
    if (reason == 0)
        return EXIT_DONE;
    return complain(EXIT_REFUSED,
                    memory_was_short() ? "there is no memory for the answer" : "standard output cannot be written");
}
