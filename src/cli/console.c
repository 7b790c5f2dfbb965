/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/console.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

int snd_report_error(const struct snd_command *command, const char *object,
                     const struct sonde_error *err)
{
    if (err->status == SONDE_E_ARGUMENT)
        return snd_usage_error(command, "%s", err->message);
    if (strstr(err->message, object)) /* once is enough */
        return snd_failure("%s: %s", command->name, err->message);
    return snd_failure("%s %s: %s", command->name, object, err->message);
}

void snd_say_notes(const struct snd_command *command, const struct sonde_buffer *notes)
{
    for (char *line = notes->bytes; line && *line;) {
        char *end = line + strcspn(line, "\n");
        bool  more = *end != '\0';
        *end = '\0';
        fprintf(stderr, "sonde: %s: %s\n", command->name, snd_make_plain(line));
        line = end + more;
    }
}

struct snd_json *snd_stdout_json_begin(struct snd_stdout_json *output, unsigned lines)
{
    output->sink = sonde_sink_file(stdout);
    snd_out_init(&output->out, &output->sink);
    snd_json_init(&output->json, &output->out);
    snd_json_break_at(&output->json, lines);
    snd_json_object(&output->json, NULL);
    return &output->json;
}

void snd_stdout_json_end(struct snd_stdout_json *output)
{
    snd_json_end(&output->json);
    (void)snd_out_finish(&output->out, NULL); /* snd_finish_stdout reports it */
}

int snd_finish_stdout(const struct snd_command *command)
{
    if (fflush(stdout) != 0 || ferror(stdout))
        return snd_failure("%s: cannot write to standard output: %s", command->name,
                           strerror(errno));
    return SND_EXIT_OK;
}

/* --------------------------------------------------------------- terminals */

/* A terminal that understands escape sequences: $TERM is not "dumb". */
static bool has_escapes(FILE *out)
{
    const char *terminal = getenv("TERM");

    return isatty(fileno(out)) && !(terminal && strcmp(terminal, "dumb") == 0);
}

bool snd_has_colours(FILE *out)
{
    return has_escapes(out) && !getenv("NO_COLOR");
}

static volatile sig_atomic_t seconds;
static const char           *doing;

static void on_second(int signal)
{
    static const char erase[] = "\r\033[K";
    char              text[160];
    size_t            at = sizeof text, n = (size_t)++seconds, length = strlen(doing);
    int               saved = errno;

    (void)signal;
    if (n >= 2 && length < 100) {
        /* Only what is allowed in a signal handler: digits by hand. */
        memcpy(text + (at -= 2), " s", 2);
        do
            text[--at] = (char)('0' + n % 10);
        while ((n /= 10) > 0);
        memcpy(text + (at -= 2), ", ", 2);
        memcpy(text + (at -= length), doing, length);
        memcpy(text + (at -= sizeof erase - 1), erase, sizeof erase - 1);
        if (write(STDERR_FILENO, text + at, sizeof text - at) < 0)
            seconds = 0;
    }
    errno = saved;
}

void snd_progress_start(const char *what)
{
    struct sigaction action = { .sa_handler = on_second, .sa_flags = SA_RESTART };
    struct itimerval every = { { 1, 0 }, { 1, 0 } };

    if (!has_escapes(stderr))
        return;
    doing = what;
    seconds = 0;
    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &every, NULL);
}

void snd_progress_stop(void)
{
    struct itimerval never = { { 0, 0 }, { 0, 0 } };

    if (!has_escapes(stderr))
        return;
    setitimer(ITIMER_REAL, &never, NULL);
    if (seconds >= 2)
        fprintf(stderr, "\r\033[K");
}
