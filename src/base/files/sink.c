/* SPDX-License-Identifier: Apache-2.0 */
#include "base/files/sink.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files/behind_sink.h"
#include "base/files/fd_io.h"
#include "base/text/utf8.h"

/* ------------------------------------------------------------ ready sinks */

static bool write_file(void *user, const void *data, size_t length)
{
    return fwrite(data, 1, length, user) == length;
}

static bool write_fd(void *user, const void *data, size_t length)
{
    return snd_write_all((int)(intptr_t)user, data, length);
}

static bool write_buffer(void *user, const void *data, size_t length)
{
    struct sonde_buffer *buffer = user;

    snd_buf_put(buffer, data, length);
    if (buffer->failed)
        errno = ENOMEM;
    return !buffer->failed;
}

struct sonde_sink sonde_sink_file(FILE *file)
{
    return (struct sonde_sink){ write_file, file };
}

struct sonde_sink sonde_sink_fd(int fd)
{
    return (struct sonde_sink){ write_fd, (void *)(intptr_t)fd };
}

struct sonde_sink sonde_sink_buffer(struct sonde_buffer *buffer)
{
    return (struct sonde_sink){ write_buffer, buffer };
}

bool snd_sink_is_fd(const struct sonde_sink *sink)
{
    return sink->write == write_fd;
}

int snd_sink_empty_file(const struct sonde_sink *sink)
{
    int         fd = (int)(intptr_t)sink->user;
    struct stat st;

    if (!snd_sink_is_fd(sink) || fstat(fd, &st) != 0 || !S_ISREG(st.st_mode) || st.st_size != 0 ||
        lseek(fd, 0, SEEK_CUR) != 0)
        return -1;
    int flags = fcntl(fd, F_GETFL);
    return flags >= 0 && !(flags & O_APPEND) ? fd : -1; /* Linux appends whatever the offset */
}

/* ----------------------------------------------------------------- writer */

#define DIGITS_MAX 20    /* of 64 bits */
#define EIGHT 100000000u /* the least number that has more than eight digits */

#define BEHIND_AFTER 16u /* buffers: a short text is written before a thread has begun */

/* What is put goes to these bytes from now on. */
static void use(struct snd_out *out, char *bytes, size_t size)
{
    out->bytes = out->at = bytes;
    out->end = bytes + size;
}

void snd_out_init(struct snd_out *out, const struct sonde_sink *sink)
{
    out->sink = sink;
    out->failed = false;
    out->os_error = 0;
    out->flushes = 0;
    out->ahead = 0;
    out->behind = NULL;
    use(out, out->own, sizeof out->own);
}

void snd_out_apart(struct snd_out *out, size_t ahead)
{
    out->ahead = ahead;
}

static void push(struct snd_out *out, const void *data, size_t length)
{
    if (length == 0 || out->failed)
        return;
    errno = 0;
    if (!out->sink->write(out->sink->user, data, length))
        snd_out_fail(out, errno);
}

static void begin_behind(struct snd_out *out)
{
    out->behind = snd_behind_new(out->sink, out->ahead);
    if (out->behind)
        use(out, snd_behind_block(out->behind), SND_BEHIND_BYTES);
}

static void hand_on(struct snd_out *out)
{
    char *next = snd_behind_next(out->behind, (size_t)(out->at - out->bytes));

    if (!next)
        snd_out_fail(out, errno);
    use(out, next ? next : out->bytes, SND_BEHIND_BYTES);
}

static void flush(struct snd_out *out)
{
    out->flushes++;
    if (out->behind && !out->failed) {
        hand_on(out);
        return;
    }
    push(out, out->bytes, (size_t)(out->at - out->bytes));
    out->at = out->bytes;
    if (out->ahead > 0 && out->flushes == BEHIND_AFTER && !out->failed)
        begin_behind(out);
}

void snd_out_overflow(struct snd_out *out, const void *data, size_t length)
{
    flush(out);
    for (; out->behind && length > SND_BEHIND_BYTES; flush(out)) {
        snd_out_put(out, data, SND_BEHIND_BYTES);
        data = (const char *)data + SND_BEHIND_BYTES;
        length -= SND_BEHIND_BYTES;
    }
    if (length > (size_t)(out->end - out->at))
        push(out, data, length);
    else
        snd_out_put(out, data, length);
}

void snd_out_repeat(struct snd_out *out, char byte, size_t count)
{
    char run[64];

    memset(run, byte, sizeof run);
    while (count > 0) {
        size_t n = count < sizeof run ? count : sizeof run;
        snd_out_put(out, run, n);
        count -= n;
    }
}

/* By hand: an export has several numbers an event, and printf takes most of its time. */
static inline void put_pair(char *to, uint32_t value)
{
    static const char pairs[] = "0001020304050607080910111213141516171819"
                                "2021222324252627282930313233343536373839"
                                "4041424344454647484950515253545556575859"
                                "6061626364656667686970717273747576777879"
                                "8081828384858687888990919293949596979899";

    memcpy(to, pairs + (size_t)2 * value, 2);
}

static inline void put_four(char *to, uint32_t value)
{
    put_pair(to, value / 100);
    put_pair(to + 2, value % 100);
}

/* Of a value below 100: without a zero in front. */
static inline char *put_first(char *to, uint32_t value)
{
    if (value < 10) {
        *to = (char)('0' + value);
        return to + 1;
    }
    put_pair(to, value);
    return to + 2;
}

/* Of a value below 10000. */
static inline char *put_short(char *to, uint32_t value)
{
    if (value < 100)
        return put_first(to, value);
    to = put_first(to, value / 100);
    put_pair(to, value % 100);
    return to + 2;
}

static inline char *put_eight(char *to, uint32_t value)
{
    put_four(to, value / 10000);
    put_four(to + 4, value % 10000);
    return to + 8;
}

/* Of a value below 10^8. */
static inline char *put_long(char *to, uint32_t value)
{
    if (value < 10000)
        return put_short(to, value);
    to = put_short(to, value / 10000);
    put_four(to, value % 10000);
    return to + 4;
}

static char *put_uint(char *to, uint64_t value)
{
    if (value < EIGHT)
        return put_long(to, (uint32_t)value);
    uint64_t above = value / EIGHT;
    if (above < EIGHT) {
        to = put_long(to, (uint32_t)above);
    } else {
        to = put_short(to, (uint32_t)(above / EIGHT));
        to = put_eight(to, (uint32_t)(above % EIGHT));
    }
    return put_eight(to, (uint32_t)(value % EIGHT));
}

static uint64_t put_sign(char **to, int64_t value)
{
    **to = '-';
    *to += value < 0;
    return value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
}

void snd_out_uint(struct snd_out *out, uint64_t value)
{
    out->at = put_uint(snd_out_room(out, DIGITS_MAX), value);
}

char *snd_put_int(char *to, int64_t value)
{
    uint64_t size = put_sign(&to, value);

    return put_uint(to, size);
}

void snd_out_int(struct snd_out *out, int64_t value)
{
    out->at = snd_put_int(snd_out_room(out, SND_INT_BYTES), value);
}

void snd_out_us(struct snd_out *out, int64_t ns)
{
    char    *to = snd_out_room(out, 1 + DIGITS_MAX + 4);
    uint64_t size = put_sign(&to, ns);
    unsigned rest = (unsigned)(size % 1000);

    to = put_uint(to, size / 1000);
    put_four(to, rest); /* its first digit is 0 */
    *to = '.';
    out->at = to + 4;
}

void snd_out_format(struct snd_out *out, const char *format, ...)
{
    char    text[512];
    va_list args;

    va_start(args, format);
    int length = vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (length > 0)
        snd_out_put(out, text, (size_t)length < sizeof text ? (size_t)length : sizeof text - 1);
}

static void put_plain_lines(struct sonde_buffer *text, const char *bytes, size_t length)
{
    for (const char *end = bytes + length; bytes < end;) {
        const char *stop = memchr(bytes, '\n', (size_t)(end - bytes));
        snd_plain_put(text, SND_PLAIN_CONTROLS, bytes, (size_t)((stop ? stop : end) - bytes));
        snd_buf_text(text, stop ? "\n" : "");
        bytes = stop ? stop + 1 : end;
    }
}

/* What spreadsheets take for the begin of a formula. */
static bool is_formula(char c)
{
    return c == '=' || c == '+' || c == '-' || c == '@';
}

static bool needs_quotes(const char *bytes, size_t length)
{
    for (size_t i = 0; i < length; i++)
        if (bytes[i] == '"' || bytes[i] == ',' || bytes[i] == '\n' ||
            (bytes[i] == ' ' && (i == 0 || i + 1 == length)))
            return true;
    return false;
}

static void put_field(struct snd_out *out, const char *bytes, size_t length)
{
    bool quote = needs_quotes(bytes, length);

    snd_out_text(out, quote ? "\"" : "");
    snd_out_text(out, length > 0 && is_formula(bytes[0]) ? "'" : "");
    for (size_t i = 0, start = 0; i < length; start = i) {
        for (; i < length && bytes[i] != '"'; i++)
            ;
        snd_out_put(out, bytes + start, i - start);
        if (i < length) {
            snd_out_text(out, "\"\"");
            i++;
        }
    }
    snd_out_text(out, quote ? "\"" : "");
}

static void put_csv(struct snd_out *out, const char *bytes, size_t length, bool lines)
{
    struct sonde_buffer text = { 0 };
    size_t              plain = 0;

    while (plain < length && bytes[plain] >= ' ' && bytes[plain] < 0x7f)
        plain++;
    if (plain == length) { /* nearly all names */
        put_field(out, bytes, length);
        return;
    }
    if (lines)
        put_plain_lines(&text, bytes, length);
    else
        snd_plain_put(&text, SND_PLAIN_CONTROLS, bytes, length);
    if (text.failed)
        snd_out_fail(out, ENOMEM);
    put_field(out, snd_buf_string(&text), text.length);
    sonde_buffer_release(&text);
}

void snd_out_csv(struct snd_out *out, const char *bytes, size_t length)
{
    put_csv(out, bytes, length, false);
}

void snd_out_csv_lines(struct snd_out *out, const char *bytes, size_t length)
{
    put_csv(out, bytes, length, true);
}

void snd_out_fail(struct snd_out *out, int os_error)
{
    if (!out->failed)
        out->os_error = os_error;
    out->failed = true;
}

/* Failure sticks: the first reason stays. */
static void end_behind(struct snd_out *out)
{
    if (out->behind && !snd_behind_end(out->behind))
        snd_out_fail(out, errno);
    out->behind = NULL;
    use(out, out->own, sizeof out->own);
}

enum sonde_status snd_out_finish(struct snd_out *out, struct sonde_error *err)
{
    flush(out);
    end_behind(out);
    if (!out->failed)
        return SONDE_OK;
    errno = out->os_error;
    return out->os_error ? snd_fail_os(err, SONDE_E_IO, "cannot write the output")
                         : snd_fail(err, SONDE_E_IO, "cannot write the output");
}

enum sonde_status snd_out_end(struct snd_out *out, enum sonde_status status,
                              struct sonde_error *err)
{
    if (status == SONDE_OK)
        return snd_out_finish(out, err);
    end_behind(out);
    return status;
}
