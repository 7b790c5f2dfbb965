/* SPDX-License-Identifier: Apache-2.0 */
#include "base/error.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/count_of.h"

/* glibc's strerror_r returns the text, which need not be in the buffer; that of other libraries fills the buffer. */
static const char *describe(int os_error, char *text, size_t size)
{
#ifdef __GLIBC__
    return strerror_r(os_error, text, size);
#else
    return strerror_r(os_error, text, size) == 0 ? text : "unknown error";
#endif
}

static void SONDE_PRINTF(4, 0) fill(struct sonde_error *err, enum sonde_status status, int os_error,
                                    const char *format, va_list args)
{
    err->status = status;
    err->os_error = os_error;
    int n = vsnprintf(err->message, sizeof err->message, format, args);
    if (os_error != 0 && n >= 0 && (size_t)n < sizeof err->message) {
        char text[128];
        snprintf(err->message + n, sizeof err->message - (size_t)n, ": %s",
                 describe(os_error, text, sizeof text));
    }
}

enum sonde_status snd_fail(struct sonde_error *err, enum sonde_status status, const char *format,
                           ...)
{
    if (err) {
        va_list args;
        va_start(args, format);
        fill(err, status, 0, format, args);
        va_end(args);
    }
    return status;
}

enum sonde_status snd_fail_os(struct sonde_error *err, enum sonde_status status, const char *format,
                              ...)
{
    int os_error = errno;

    if (err) {
        va_list args;
        va_start(args, format);
        fill(err, status, os_error, format, args);
        va_end(args);
    }
    return status;
}

const char *sonde_status_text(enum sonde_status status)
{
    static const struct {
        enum sonde_status status;
        const char       *text;
    } texts[] = {
#define TEXT(name, value, text) { SONDE_##name, text },
        SONDE_STATUS_MAP(TEXT)
#undef TEXT
    };

    for (size_t i = 0; i < SND_COUNT_OF(texts); i++)
        if (texts[i].status == status)
            return texts[i].text;
    return "unknown status";
}
