/* SPDX-License-Identifier: Apache-2.0 */
#include "export/encode/yaml_json.h"

#include <assert.h>
#include <ctype.h>
#include <math.h>
#include <string.h>
#include <strings.h>

#include "base/count_of.h"
#include "base/text/buf.h"

void snd_emit_init(struct snd_emit *e, struct snd_out *out, bool is_json)
{
    memset(e, 0, sizeof *e);
    e->out = out;
    e->is_json = is_json;
    snd_json_init(&e->json, out);
    if (is_json) {
        snd_json_break_at(&e->json, 1);
        snd_json_object(&e->json, NULL);
    }
}

void snd_emit_finish(struct snd_emit *e)
{
    assert(e->depth == 0);
    if (e->is_json)
        snd_json_end(&e->json);
    else if (!e->filled)
        snd_out_text(e->out, "{}\n");
}

/* Ends the line of a map or list when its first entry is written. */
static void enter(struct snd_emit *e)
{
    if (!e->filled && !e->dash && e->depth > 0)
        snd_out_text(e->out, "\n");
}

/* "  - key:", of YAML. */
static void begin_line(struct snd_emit *e, const char *key)
{
    enter(e);
    snd_out_repeat(e->out, ' ', 2 * (size_t)(e->indent - e->dash));
    snd_out_text(e->out, e->dash ? "- " : "");
    snd_out_format(e->out, "%s:", key);
    e->dash = false;
    e->filled = true;
}

static void descend(struct snd_emit *e, bool is_list)
{
    assert(e->depth < SND_JSON_DEPTH - 1);
    e->is_list[e->depth++] = is_list;
    e->indent += !is_list; /* items stand under their key, as PyYAML has them */
    e->filled = false;
}

void snd_emit_map(struct snd_emit *e, const char *key)
{
    if (e->is_json) {
        snd_json_object(&e->json, key);
    } else {
        begin_line(e, key);
        descend(e, false);
    }
}

void snd_emit_list(struct snd_emit *e, const char *key)
{
    if (e->is_json) {
        snd_json_array(&e->json, key);
    } else {
        begin_line(e, key);
        descend(e, true);
    }
}

void snd_emit_item(struct snd_emit *e)
{
    if (e->is_json) {
        snd_json_object(&e->json, NULL);
        return;
    }
    enter(e);
    descend(e, false);
    e->dash = true;
}

void snd_emit_end(struct snd_emit *e)
{
    if (e->is_json) {
        snd_json_end(&e->json);
        return;
    }
    assert(e->depth > 0);
    bool is_list = e->is_list[--e->depth];
    if (!e->filled)
        snd_out_text(e->out, is_list ? " []\n" : " {}\n");
    e->indent -= !is_list;
    e->dash = false;
    e->filled = true;
}

/* ------------------------------------------------------------------- scalars */

static void put_scalar(struct snd_emit *e, const char *key, const char *text)
{
    begin_line(e, key);
    snd_out_format(e->out, " %s\n", text);
}

/* Words that YAML 1.1 would read as something else than text. */
static bool is_plain(const char *bytes, size_t length)
{
    static const char *const words[] = {
        "y", "n", "yes", "no", "on", "off", "true", "false", "null"
    };

    if (length == 0 || !isalpha((unsigned char)bytes[0]))
        return false;
    for (size_t i = 0; i < length; i++)
        if (!isalnum((unsigned char)bytes[i]) && !strchr("_./-", bytes[i]))
            return false;
    for (size_t i = 0; i < SND_COUNT_OF(words); i++)
        if (strlen(words[i]) == length && strncasecmp(words[i], bytes, length) == 0)
            return false;
    return memchr(bytes, '\0', length) == NULL;
}

void snd_emit_text(struct snd_emit *e, const char *key, const char *bytes, size_t length)
{
    struct snd_json quoted;

    if (e->is_json) {
        snd_json_string(&e->json, key, bytes, length);
        return;
    }
    begin_line(e, key);
    snd_out_text(e->out, " ");
    if (is_plain(bytes, length)) {
        snd_out_put(e->out, bytes, length);
    } else {
        snd_json_init(&quoted, e->out);
        snd_json_string(&quoted, NULL, bytes, length);
    }
    snd_out_text(e->out, "\n");
}

void snd_emit_string(struct snd_emit *e, const char *key, const char *text)
{
    snd_emit_text(e, key, text, strlen(text));
}

void snd_emit_int(struct snd_emit *e, const char *key, int64_t value)
{
    char text[32];

    if (e->is_json) {
        snd_json_int(&e->json, key, value);
        return;
    }
    snprintf(text, sizeof text, "%lld", (long long)value);
    put_scalar(e, key, text);
}

/* YAML 1.1 takes a number for one only with a point and a signed exponent: 1.0e-05. */
static void fix_real(char text[SND_NUMBER_MAX])
{
    char  *power = strchr(text, 'e');
    size_t digits = power ? (size_t)(power - text) : strlen(text);

    if (memchr(text, '.', digits) == NULL) {
        memmove(text + digits + 2, text + digits, strlen(text + digits) + 1);
        text[digits] = '.';
        text[digits + 1] = '0';
        power = strchr(text, 'e');
    }
    if (power && power[1] != '-' && power[1] != '+') {
        memmove(power + 2, power + 1, strlen(power + 1) + 1);
        power[1] = '+';
    }
}

void snd_emit_real(struct snd_emit *e, const char *key, double value)
{
    char text[SND_NUMBER_MAX];

    if (!isfinite(value)) {
        snd_emit_null(e, key);
    } else if (e->is_json) {
        snd_json_real(&e->json, key, value);
    } else {
        snd_number_shortest(text, value);
        fix_real(text);
        put_scalar(e, key, text);
    }
}

void snd_emit_null(struct snd_emit *e, const char *key)
{
    if (e->is_json)
        snd_json_null(&e->json, key);
    else
        put_scalar(e, key, "null");
}

void snd_emit_shapes(struct snd_emit *e, const char *key, const char *bytes, size_t length)
{
    if (!snd_json_is_int_lists(bytes, length)) {
        snd_emit_text(e, key, bytes, length);
    } else if (e->is_json) {
        snd_json_raw(&e->json, key, bytes, length);
    } else {
        begin_line(e, key);
        snd_out_text(e->out, " ");
        snd_out_put(e->out, bytes, length);
        snd_out_text(e->out, "\n");
    }
}
