#include "files/output.h"

#include "command.h"
#include "files/npy.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool is_directory(const char *path)
{
    struct stat facts;
    return stat(path, &facts) == 0 && S_ISDIR(facts.st_mode);
}

int output_check(const char *directory)
{
    if (*directory == '\0')
        return complain(EXIT_REFUSED, "--output is empty; it names a folder");
    if (access(directory, F_OK) != 0)
        return EXIT_DONE;
    if (!is_directory(directory))
        return complain(EXIT_REFUSED, "--output %s is not a folder", directory);
    if (access(directory, W_OK | X_OK) != 0)
        return complain(EXIT_REFUSED, "--output %s cannot be written: %s", directory, strerror(errno));
    return EXIT_DONE;
}

static void remove_folders(output *o)
{
    for (; o->path && o->made > 0; o->made--) {
        size_t length = strlen(o->path);
        while (length > 1 && o->path[length - 1] == '/')
            o->path[--length] = '\0';
        rmdir(o->path);
        while (length > 0 && o->path[length - 1] != '/')
            o->path[--length] = '\0';
    }
}

/* Makes the folders of the path, as mkdir -p does, and counts those that are new in o->made. */
static int make_folders(output *o)
{
    int status = EXIT_DONE;
    for (char *at = o->path; status == EXIT_DONE && *at != '\0';) {
        at += strspn(at, "/");
        at += strcspn(at, "/");
        const char rest = *at;
        *at = '\0';
        if (mkdir(o->path, 0777) == 0)
            o->made++;
        else if (errno != EEXIST || !is_directory(o->path))
            status = complain(EXIT_REFUSED, "--output %s cannot be made: %s", o->path, strerror(errno));
        *at = rest;
        if (rest != '\0' && at[strspn(at, "/")] == '\0')
            break;
    }
    return status;
}

static int open_folder(output *o)
{
    o->path = strdup(o->directory);
    if (!o->path)
        return complain(EXIT_REFUSED, "there is no memory for the path of --output");
    const int status = make_folders(o);
    if (status != EXIT_DONE)
        return status;
    o->folder = open(o->path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (o->folder < 0)
        return complain(EXIT_REFUSED, "--output %s cannot be opened: %s", o->directory, strerror(errno));
    return EXIT_DONE;
}

/* Signals that end the program and can be held. The last, SIGPIPE, is dropped: the write fails
 * anyway. */
static const int enders[OUTPUT_SIGNALS] = {SIGINT, SIGTERM, SIGHUP, SIGPIPE};

/* The last signal since output_begin(); 0 if there was none. A handler records it, because a
 * blocked signal would go to any thread that does not block it. */
static volatile sig_atomic_t came;

static void remember(int signal)
{
    if (signal != SIGPIPE)
        came = signal;
}

static void hold_signals(output *o)
{
    struct sigaction action = {.sa_handler = remember, .sa_flags = SA_RESTART};
    came = 0;
    for (int i = 0; i < OUTPUT_SIGNALS; i++) {
        sigaction(enders[i], NULL, &o->before[i]);
        if (o->before[i].sa_handler != SIG_IGN)
            sigaction(enders[i], &action, NULL);
    }
}

/* Restores the actions, and raises the signal that came meanwhile. */
static void release_signals(const output *o)
{
    for (int i = 0; i < OUTPUT_SIGNALS; i++)
        sigaction(enders[i], &o->before[i], NULL);
    if (came != 0)
        raise(came);
}

void output_finish(output *o)
{
    if (o->folder >= 0)
        close(o->folder);
    free(o->files);
    free(o->path);
    release_signals(o);
}

int output_begin(const char *directory, output *out)
{
    output o = {.directory = directory, .folder = -1};
    hold_signals(&o);
    const int status = open_folder(&o);
    if (status == EXIT_DONE)
        *out = o;
    else
        output_cancel(&o);
    return status;
}

static int complain_about(const output *o, const char *name)
{
    return complain(EXIT_REFUSED, "%s/%s cannot be written: %s", o->directory, name, strerror(errno));
}

/* Makes a file and adds it to o->files, from where output_cancel() removes it. Returns its
 * descriptor, or -1 with errno set. */
static int create_file(output *o, const char *name)
{
    output_file *const files = realloc(o->files, (o->count + 1) * sizeof *files);
    if (!files)
        return -1;
    o->files = files;
    snprintf(files[o->count].name, OUTPUT_NAME_BYTES, "%s", name);
    const int file = fresh_file_create(o->folder, files[o->count].temporary);
    o->count += file >= 0;
    return file;
}

int output_add(output *o, const char *name, const tsr_tensor *tensor)
{
    if (came != 0)
        return complain(EXIT_REFUSED, "interrupted; nothing is left in %s", o->directory);
    const int file = create_file(o, name);
    if (file < 0)
        return complain_about(o, name);
    const bool written = npy_write(file, tensor);
    const int reason = errno;
    if (close(file) == 0 && written)
        return EXIT_DONE;
    errno = written ? errno : reason;
    return complain_about(o, name);
}

int output_publish(output *o)
{
    for (; o->published < o->count; o->published++) {
        const output_file *const f = &o->files[o->published];
        if (renameat(o->folder, f->temporary, o->folder, f->name) != 0)
            return complain_about(o, f->name);
    }
    return EXIT_DONE;
}

void output_cancel(output *o)
{
    for (size_t i = 0; i < o->count; i++)
        unlinkat(o->folder, i < o->published ? o->files[i].name : o->files[i].temporary, 0);
    remove_folders(o);
    output_finish(o);
}
