/* SPDX-License-Identifier: Apache-2.0 */
/*
 * view/samples/sample_tree_text.c - Pyinstrument's tree: its console renderer and the steps before it.
 *
 *     [self]       a leaf for the time in which a function was innermost, where others are shown
 *     irrelevant   below a hundredth of the whole: left out
 *     groups       library functions that call each other: all but the first, those that lead
 *                  out of the library and those that matter are hidden, and counted; none where
 *                  all that ran is libraries (pip, sphinx)
 */
#include "view/samples/sample_tree_text.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/data/map.h"
#include "base/text/compare.h"
#include "base/text/utf8.h"
#include "view/render/format.h"
#include "view/source/native_names.h"

#define DEPTH_MAX 1000u /* deeper frames count for the one above */
#define LEAST_SHARE 0.01
#define NO_GROUP UINT32_MAX

enum what { A_FRAME, A_ROOT, A_SELF };

/* A frame that is shown; a child comes after its parent, and all below it before the next. */
struct frame {
    const struct sonde_sample_node *node; /* NULL: [self] */
    enum what                       what;
    uint32_t                        parent, end; /* end: of its children */
    uint32_t                        depth, group;
    int64_t                         time_ns, self_ns; /* self: that of no shown function below */
    bool                            is_app, is_exit, rendered;
};

struct tree {
    const struct sonde_samples    *samples;
    const struct snd_sample_style *style;
    struct snd_out                *out;
    struct frame                  *frames;
    uint32_t                       count, room;
    struct sonde_buffer            text, indent;
    bool                           failed;
};

struct sonde_text snd_sample_function(const struct sonde_sample_node *node)
{
    static const char locals[] = "<locals>.";
    struct sonde_text name = node->function;
    size_t            length = sizeof locals - 1;

    if (node->is_native)
        return snd_native_name(name);
    for (size_t i = name.length; i-- > length;)
        if (memcmp(name.bytes + i - length, locals, length) == 0)
            return (struct sonde_text){ name.bytes + i, name.length - i };
    return name;
}

/* ---------------------------------------------------------------- the frames */

/* Whether it is the program's own code and not a library's. */
static bool is_app(const struct tree *t, const struct sonde_sample_node *node, uint32_t parent)
{
    if (node && node->is_range)
        return true; /* operators and ranges are what the program is about */
    if (!node || node->is_native || node->file.length == 0 ||
        snd_pypaths_is_library(t->style->paths, node->file))
        return false;
    if (node->file.bytes[0] != '<')
        return true;
    if (snd_equals_at(node->file.bytes, node->file.length, "<string>") ||
        snd_equals_at(node->file.bytes, node->file.length, "<stdin>"))
        return parent == NO_GROUP || t->frames[parent].what == A_ROOT || t->frames[parent].is_app;
    return snd_begins_with_at(node->file.bytes, node->file.length, "<ipython-input-");
}

static uint32_t add_frame(struct tree *t, uint32_t parent, const struct sonde_sample_node *node,
                          enum what what, int64_t time_ns)
{
    if (!snd_grow(&t->frames, &t->room, t->count, sizeof *t->frames)) {
        t->failed = true;
        return NO_GROUP;
    }
    t->frames[t->count] = (struct frame){
        .node = node,
        .what = what,
        .parent = parent,
        .end = t->count + 1,
        .depth = parent == NO_GROUP ? 0 : t->frames[parent].depth + 1,
        .group = NO_GROUP,
        .time_ns = time_ns,
        .self_ns = time_ns,
    };
    t->frames[t->count].is_app = what == A_FRAME && is_app(t, node, parent);
    return t->count++;
}

static bool is_shown(const struct tree *t, int64_t time_ns)
{
    int64_t total = t->frames[0].time_ns > 0 ? t->frames[0].time_ns : 1;

    return t->style->show_all || (double)time_ns / (double)total >= LEAST_SHARE;
}

/* A frame, its [self] where others are beside it, and those below, longest first. */
static void add_frames(struct tree *t, uint32_t parent, const struct sonde_sample_node *node,
                       enum what what)
{
    uint32_t at = add_frame(t, parent, node, what, node->time_ns);
    bool     self_done = node->self_ns == 0, any = false;

    for (uint32_t child = at == NO_GROUP ? 0 : node->first_child; child != 0 && !t->failed;) {
        const struct sonde_sample_node *n = sonde_samples_node(t->samples, child);
        child = n->next_sibling;
        if (!is_shown(t, n->time_ns) || t->frames[at].depth + 1 >= DEPTH_MAX)
            continue;
        if (!self_done && node->self_ns > n->time_ns) {
            self_done = true;
            if (is_shown(t, node->self_ns))
                add_frame(t, at, NULL, A_SELF, node->self_ns);
        }
        any = true;
        t->frames[at].self_ns -= n->time_ns;
        add_frames(t, at, n, A_FRAME);
    }
    if (any && !self_done && is_shown(t, node->self_ns))
        add_frame(t, at, NULL, A_SELF, node->self_ns);
    if (at != NO_GROUP && !t->failed)
        t->frames[at].end = t->count;
}

/* ---------------------------------------------------------------- the groups */

static uint32_t next_child(const struct tree *t, uint32_t parent, uint32_t child)
{
    uint32_t next = child == NO_GROUP ? parent + 1 : t->frames[child].end;

    return next < t->frames[parent].end ? next : NO_GROUP;
}

static bool calls_library(const struct tree *t, uint32_t frame)
{
    for (uint32_t c = next_child(t, frame, NO_GROUP); c != NO_GROUP; c = next_child(t, frame, c))
        if (!t->frames[c].is_app)
            return true;
    return false;
}

/* A script that a package installs to start itself: /usr/local/bin/black. */
static bool is_launcher(struct sonde_text file)
{
    static const char folder[] = "/bin/";
    size_t            length = sizeof folder - 1;
    const char       *slash = memrchr(file.bytes, '/', file.length);

    return slash && (size_t)(slash + 1 - file.bytes) >= length &&
           memcmp(slash + 1 - length, folder, length) == 0 &&
           !memchr(slash, '.', (size_t)(file.bytes + file.length - slash));
}

/* Whether any frame is the program's own, so that it can be distinguished from libraries'. */
static bool has_app(const struct tree *t)
{
    for (uint32_t i = 0; i < t->count; i++)
        if (t->frames[i].is_app && !is_launcher(t->frames[i].node->file))
            return true;
    return false;
}

/* A library's frame joins its parent's group, or begins one if it calls its like. */
static void find_groups(struct tree *t)
{
    for (uint32_t i = 1; i < t->count; i++) {
        struct frame *f = &t->frames[i];
        uint32_t      above = t->frames[f->parent].group;
        if (f->is_app)
            continue;
        if (above != NO_GROUP)
            f->group = above;
        else if (calls_library(t, i))
            f->group = i;
    }
    for (uint32_t i = 1; i < t->count; i++)
        if (t->frames[t->frames[i].parent].group != t->frames[i].group)
            t->frames[t->frames[i].parent].is_exit = true;
}

static bool is_rendered(const struct tree *t, uint32_t i)
{
    const struct frame *f = &t->frames[i];

    return f->group == NO_GROUP || f->group == i || f->is_exit ||
           (double)f->self_ns > 0.2 * (double)t->frames[0].time_ns;
}

/* Decides what is rendered. A group of which fewer than two would be hidden is shown whole. */
static void render_groups(struct tree *t)
{
    for (uint32_t i = 0; i < t->count; i++)
        t->frames[i].rendered = is_rendered(t, i);
    for (uint32_t i = 1; i < t->count; i++) {
        uint32_t hidden = 0, last = NO_GROUP;
        if (t->frames[i].group != i)
            continue;
        for (uint32_t k = i; k < t->frames[i].end; k++) {
            if (t->frames[k].group == i && !t->frames[k].rendered) {
                hidden++;
                last = k;
            }
        }
        if (hidden == 1)
            t->frames[last].rendered = true;
        if (hidden < 2)
            for (uint32_t k = i; k < t->frames[i].end; k++)
                if (t->frames[k].group == i)
                    t->frames[k].group = NO_GROUP;
    }
}

/* --------------------------------------------------------------------- lines */

#define RED "\033[31m"
#define YELLOW "\033[33m"
#define GREEN "\033[32m"
#define PALE "\033[92m\033[2m"
#define APP "\033[48;5;24m\033[38;5;15m"
#define FAINT "\033[2m"
#define PLAIN "\033[0m"

static const char *colour_of(const struct tree *t, int64_t time_ns)
{
    double whole = (double)t->frames[0].time_ns;
    double share = whole > 0 ? (double)time_ns / whole : 1;

    if (!t->style->colour)
        return "";
    return share > 0.6 ? RED : share > 0.2 ? YELLOW : share > 0.05 ? GREEN : PALE;
}

static void put_text(struct tree *t, struct sonde_text text)
{
    struct sonde_buffer shown = { 0 };

    snd_format_text(&shown, text.bytes, text.length);
    snd_out_put(t->out, snd_buf_string(&shown), shown.length);
    sonde_buffer_release(&shown);
}

/* The file of a frame, or of the one that [self] belongs to, from the nearest folder on. */
static struct sonde_text shorten(struct tree *t, const struct frame *f)
{
    const struct sonde_sample_node *node = f->node ? f->node : t->frames[f->parent].node;

    snd_buf_clear(&t->text);
    if (node && node->is_native) {
        const char *slash = memrchr(node->file.bytes, '/', node->file.length);
        size_t      skip = slash ? (size_t)(slash + 1 - node->file.bytes) : 0;
        snd_buf_put(&t->text, node->file.bytes + skip, node->file.length - skip);
    } else if (node) {
        snd_pypaths_shorten(t->style->paths, node->file, &t->text);
    }
    return (struct sonde_text){ snd_buf_string(&t->text), t->text.length };
}

/* "fib", "fib ×17" of one that called itself so deep. */
static void format_function(const struct tree *t, const struct frame *f, struct sonde_buffer *text)
{
    if (f->what != A_FRAME) {
        snd_buf_text(text, f->what == A_SELF ? "[self]" : "[root]");
        return;
    }
    struct sonde_text name = snd_sample_function(f->node);
    snd_format_text(text, name.bytes, name.length);
    if (f->node->levels > 1)
        snd_buf_format(text, t->style->ascii ? " x%" PRIu32 : " ×%" PRIu32, f->node->levels);
}

/* "json/encoder.py:180", of which the end is what counts where the line has not that much room. */
static void put_place(struct tree *t, const struct frame *f, size_t room)
{
    struct sonde_text   file = shorten(t, f);
    struct sonde_buffer text = { 0 };

    if (file.length == 0)
        return;
    snd_format_text(&text, file.bytes, file.length);
    if (f->node && f->node->line != 0)
        snd_buf_format(&text, ":%" PRIu32, f->node->line);
    const char *cut = t->style->ascii ? "..." : "…", *shown = snd_buf_string(&text);
    size_t      count = snd_utf8_count(shown, text.length), mark = snd_utf8_count(cut, strlen(cut));
    bool        long_one = count > room && room > mark + 8;
    if (long_one)
        shown += snd_utf8_prefix(shown, text.length, count - room + mark);
    snd_out_text(t->out, t->style->colour ? FAINT : "");
    snd_out_text(t->out, long_one ? cut : "");
    snd_out_text(t->out, shown);
    snd_out_text(t->out, t->style->colour ? PLAIN : "");
    sonde_buffer_release(&text);
}

/* `used`: columns of the line that are taken already. */
static void put_frame(struct tree *t, const struct frame *f, size_t used)
{
    const char         *plain = t->style->colour ? PLAIN : "";
    char                number[SND_NUMBER_MAX];
    struct sonde_buffer function = { 0 };

    format_function(t, f, &function);
    snd_number_fixed(number, t->style->decimals, (double)f->time_ns / 1e9);
    snd_out_format(t->out, "%s%s%s %s", colour_of(t, f->time_ns), number, plain,
                   t->style->colour && f->is_app ? APP : "");
    snd_out_text(t->out, snd_buf_string(&function));
    snd_out_format(t->out, "%s  ", plain);
    used += strlen(number) + snd_utf8_count(snd_buf_string(&function), function.length) + 3;
    if (f->what != A_ROOT)
        put_place(t, f,
                  t->style->width > used ? t->style->width - used
                  : t->style->width      ? 0
                                         : SIZE_MAX);
    snd_out_text(t->out, "\n");
    sonde_buffer_release(&function);
}

#define LIBRARIES_MAX 40

/* The first part of the file's name: its package. Each once, cut as Pyinstrument cuts. */
static void list_libraries(struct tree *t, uint32_t group, struct sonde_buffer *list)
{
    for (uint32_t i = group; i < t->frames[group].end && list->length <= LIBRARIES_MAX; i++) {
        if (t->frames[i].group != group || t->frames[i].rendered)
            continue;
        struct sonde_text   file = shorten(t, &t->frames[i]);
        size_t              length = strcspn(file.bytes, "\\/.");
        struct sonde_buffer padded = { 0 }, word = { 0 };
        snd_buf_format(&padded, ", %s, ", snd_buf_string(list));
        snd_buf_format(&word, ", %.*s, ", (int)length, file.bytes);
        if (length > 0 && !strstr(snd_buf_string(&padded), snd_buf_string(&word)))
            snd_buf_format(list, "%s%.*s", list->length ? ", " : "", (int)length, file.bytes);
        sonde_buffer_release(&padded);
        sonde_buffer_release(&word);
    }
}

static void put_group(struct tree *t, uint32_t group)
{
    struct sonde_buffer list = { 0 };
    uint32_t            hidden = 0;

    for (uint32_t i = group; i < t->frames[group].end; i++)
        hidden += t->frames[i].group == group && !t->frames[i].rendered;
    list_libraries(t, group, &list);
    snd_out_format(t->out, "%s   [%" PRIu32 " frames hidden]  %s", snd_buf_string(&t->indent),
                   hidden, t->style->colour ? FAINT : "");
    bool cut = list.length > LIBRARIES_MAX;
    put_text(t,
             (struct sonde_text){ snd_buf_string(&list), cut ? LIBRARIES_MAX - 3 : list.length });
    snd_out_format(t->out, "%s%s\n", cut ? "..." : "", t->style->colour ? PLAIN : "");
    sonde_buffer_release(&list);
}

/* What is printed before the children of a frame. */
struct indents {
    const char *middle, *below_middle, *last, *below_last;
};

static void put_below(struct tree *t, uint32_t at, const char *own);

static void put_children(struct tree *t, uint32_t at, const struct indents *by)
{
    size_t   length = t->indent.length;
    uint32_t last = NO_GROUP;

    for (uint32_t c = next_child(t, at, NO_GROUP); c != NO_GROUP; c = next_child(t, at, c))
        if (t->frames[c].rendered)
            last = c;
    for (uint32_t c = next_child(t, at, NO_GROUP); c != NO_GROUP; c = next_child(t, at, c)) {
        bool middle = last != NO_GROUP && c < last;
        snd_buf_text(&t->indent, middle ? by->below_middle : by->below_last);
        /* The frame's own line has another mark where those below it have a bar. */
        struct sonde_buffer own = { 0 };
        snd_buf_put(&own, snd_buf_string(&t->indent), length);
        snd_buf_text(&own, middle ? by->middle : by->last);
        put_below(t, c, snd_buf_string(&own));
        sonde_buffer_release(&own);
        t->indent.length = length;
        if (t->indent.bytes)
            t->indent.bytes[length] = '\0';
    }
}

static void put_below(struct tree *t, uint32_t at, const char *own)
{
    static const struct indents shown[] = { { "├─ ", "│  ", "└─ ", "   " },
                                            { "|- ", "|  ", "`- ", "   " } };
    static const struct indents grouped = { "      ", "      ", "      ", "      " };
    static const struct indents hidden = { "", "", "", "" };
    const struct frame         *f = &t->frames[at];

    if (!f->rendered) {
        put_children(t, at, &hidden);
        return;
    }
    snd_out_text(t->out, own);
    put_frame(t, f, snd_utf8_count(own, strlen(own)));
    if (f->group == at)
        put_group(t, at);
    put_children(t, at, f->group == at ? &grouped : &shown[t->style->ascii]);
}

bool snd_sample_tree_put(const struct sonde_samples *samples, uint32_t root,
                         const struct snd_sample_style *style, struct snd_out *out)
{
    struct tree                     t = { .samples = samples, .style = style, .out = out };
    const struct sonde_sample_node *node = sonde_samples_node(samples, root);

    add_frames(&t, NO_GROUP, node, node->parent == 0 ? A_ROOT : A_FRAME);
    if (!t.failed) {
        if (!style->show_all && has_app(&t))
            find_groups(&t);
        render_groups(&t);
        put_below(&t, 0, "");
    }
    free(t.frames);
    sonde_buffer_release(&t.text);
    sonde_buffer_release(&t.indent);
    return !t.failed;
}
