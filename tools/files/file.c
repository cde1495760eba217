#include "files/file.h"

#include "command.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Milliseconds to wait for the writer of a pipe. */
#define WRITER_MS 1000

/* Milliseconds that a pipe may be silent before the user is told. */
#define SILENT_MS 3000

static bool is_pipe(int file)
{
    struct stat facts;
    return fstat(file, &facts) == 0 && S_ISFIFO(facts.st_mode);
}

/* Waits for more to read. Tells the user once of a silent pipe, whose writer may just be slow. */
static void await_more(const char *option, const char *path, int file, bool *told)
{
    struct pollfd next = {.fd = file, .events = POLLIN};
    if (poll(&next, 1, *told ? -1 : SILENT_MS) != 0)
        return;
    remark("%s %s is a pipe whose writer has written nothing for %d seconds; it is read until its writer closes it",
           option, path, SILENT_MS / 1000);
    *told = true;
}

/* Reads to the end of the file, at most `most` bytes; a pipe ends when its writers close it.
 * Returns the bytes read, or -1 with errno set. */
static ssize_t read_all(const char *option, const char *path, int file, char *to, size_t most)
{
    size_t bytes = 0;
    bool told = !is_pipe(file); /* only a pipe is reported: the user of a terminal knows */
    while (bytes < most) {
        const ssize_t got = read(file, to + bytes, most - bytes);
        if (got < 0 && errno == EAGAIN)
            await_more(option, path, file, &told);
        else if (got < 0 && errno != EINTR)
            return -1;
        if (got < 0)
            continue;
        if (got == 0)
            break;
        bytes += (size_t)got;
    }
    return (ssize_t)bytes;
}

static int read_open_file(const char *option, const char *path, size_t most, int file, char **out)
{
    char *const text = malloc(most);
    if (!text)
        return complain(EXIT_REFUSED, "there is no memory for %s %s", option, path);
    int status = EXIT_DONE;
    const ssize_t bytes = read_all(option, path, file, text, most);
    if (bytes < 0)
        status = complain(EXIT_REFUSED, "%s %s cannot be read: %s", option, path, strerror(errno));
    else if ((size_t)bytes == most)
        status = complain(EXIT_REFUSED, "%s %s has %zu bytes or more, which is too long for text", option, path, most);
    else if (bytes == 0 && is_pipe(file))
        status = complain(EXIT_REFUSED, "%s %s is a pipe into which nothing was written", option, path);
    else if (memchr(text, '\0', (size_t)bytes))
        status = complain(EXIT_REFUSED, "%s %s is not text: byte %zu is 0", option, path, strlen(text) + 1);
    if (status == EXIT_DONE) {
        text[bytes] = '\0';
        *out = text;
    } else
        free(text);
    return status;
}

/* Waits up to WRITER_MS for a writer of a named pipe; without one the pipe then reads as empty. */
static void await_writer(int file)
{
    struct pollfd first = {.fd = file, .events = POLLIN};
    (void)poll(&first, 1, WRITER_MS);
}

static int open_file(const char *option, const char *path, int *out)
{
    const int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (file < 0)
        return complain(EXIT_REFUSED, "%s %s cannot be read: %s", option, path, strerror(errno));
    if (is_pipe(file))
        await_writer(file);
    *out = file;
    return EXIT_DONE;
}

int file_read_text(const char *option, const char *path, size_t most, char **out)
{
    int file = -1, status = open_file(option, path, &file);
    if (status != EXIT_DONE)
        return status;
    status = read_open_file(option, path, most, file, out);
    close(file);
    return status;
}

static int check_final(const char *option, const char *path)
{
    struct stat facts;
    if (*path == '\0')
        return complain(EXIT_REFUSED, "%s is empty; it names a file", option);
    if (stat(path, &facts) == 0 && !S_ISREG(facts.st_mode))
        return complain(EXIT_REFUSED, "%s %s is not a regular file", option, path);
    char *const copy = strdup(path);
    if (!copy)
        return complain(EXIT_REFUSED, "there is no memory for the path of %s", option);
    int status = EXIT_DONE;
    if (access(dirname(copy), W_OK | X_OK) != 0)
        status = complain(EXIT_REFUSED, "%s %s cannot be written: %s", option, path, strerror(errno));
    free(copy);
    return status;
}

int file_check_output(const char *option, const char *path)
{
    /* The path of a new file, symbolic links resolved. */
    char *final = realpath(path, NULL);
    if (!final && errno != ENOMEM)
        final = strdup(path);
    if (!final)
        return complain(EXIT_REFUSED, "there is no memory for the path of %s", option);
    const int status = check_final(option, final);
    free(final);
    return status;
}

int file_prepare(const char *option, const char *path, const void *data, size_t bytes, tsr_new_file **out)
{
    tsr_new_file *file = NULL;
    const int refused = file_check_output(option, path);
    if (refused != EXIT_DONE)
        return refused;
    tsr_status status = tsr_new_file_create(path, &file);
    if (status == TSR_OK)
        status = tsr_new_file_write(file, data, bytes);
    if (status == TSR_OK)
        status = tsr_new_file_settle(file);
    if (status == TSR_OK) {
        *out = file;
        return EXIT_DONE;
    }
    tsr_new_file_discard(file);
    return complain(EXIT_REFUSED, "%s %s cannot be written: %s", option, path,
                    strerror(status == TSR_ERROR_IO ? errno : ENOMEM));
}

int file_publish(const char *option, const char *path, tsr_new_file *file)
{
    if (tsr_new_file_publish(file) == TSR_OK)
        return EXIT_DONE;
    return complain(EXIT_REFUSED, "%s %s cannot be written: %s", option, path, strerror(errno));
}
