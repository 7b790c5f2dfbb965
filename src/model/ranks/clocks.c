/* SPDX-License-Identifier: Apache-2.0 */
#include "model/ranks/clocks.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/data/map.h"
#include "base/data/sort.h"
#include "model/ranks/clock_line.h"
#include "read/file/scale.h"

#define CELLS_MAX 1000000u /* of all collectives that are kept; then every second one goes */
#define SAMPLES_MAX 4096u  /* of what ranks of one host differ by */
#define PIECE_LEAST 8u     /* collectives of a piece of a line */
#define FEW 8u             /* with fewer collectives than that exits say nothing */
#define STEEPEST 1e6       /* ns a second that one clock may be faster than another: 1,000 ppm */
#define SPREAD_SHARE 0.9 /* of the times by which ranks of one host leave apart, so many are less */
#define LEAST_NS 1e3     /* no clock is read better than that */
#define NOISE_SHARE 0.95 /* of the exits, so many lie as near to the line */

/* What a host's ranks did in a collective. */
struct cell {
    uint32_t host;
    int64_t  enter_ns;       /* the last of them */
    int64_t  first_exit_ns;  /* the first of them */
    int64_t  middle_exit_ns; /* their median */
};

struct meeting {
    uint32_t    count;
    double      stay_ns; /* of its hosts, together: the less, the more it says */
    struct cell cells[]; /* by host */
};

/* The collectives of a group: of each `fold` that follow each other the one that says most. */
struct kept {
    struct meeting **items;
    struct meeting  *best; /* of those since the last item ... */
    uint32_t         seen; /* ... how many they are */
    uint32_t         fold, count, room;
};

/* Some of many numbers, each as likely as another. */
struct some {
    double  *values;
    uint32_t count;
    uint64_t seen, state;
};

struct snd_clock_meetings {
    struct kept   *groups;
    uint32_t       group_count, group_room;
    struct snd_map index; /* group: its number in groups */
    uint64_t       cells;
    struct some    spreads, slopes;
    double        *rank_sums; /* of each host: of the ranks seen on it, and how many */
    uint64_t      *rank_counts;
};

/* -------------------------------------------------------------------- keeping */

static void add_some(struct some *some, double value)
{
    uint64_t at = some->seen++;

    if (at >= SAMPLES_MAX) {
        some->state = some->state * 6364136223846793005u + 1442695040888963407u;
        at = (some->state >> 33) % some->seen;
    }
    if (at >= SAMPLES_MAX)
        return;
    some->values[at] = value;
    if (some->count < SAMPLES_MAX)
        some->count++;
}

bool snd_clocks_init(struct snd_clocks *c, uint32_t hosts)
{
    *c = (struct snd_clocks){ .host_count = hosts, .spread_ns = -1 };
    c->clocks = calloc((size_t)hosts + 1, sizeof *c->clocks);
    c->meetings = calloc(1, sizeof *c->meetings);
    if (!c->clocks || !c->meetings)
        return false;
    struct snd_clock_meetings *m = c->meetings;
    m->spreads.values = calloc(SAMPLES_MAX, sizeof *m->spreads.values);
    m->slopes.values = calloc(SAMPLES_MAX, sizeof *m->slopes.values);
    m->rank_sums = calloc((size_t)hosts + 1, sizeof *m->rank_sums);
    m->rank_counts = calloc((size_t)hosts + 1, sizeof *m->rank_counts);
    return m->spreads.values && m->slopes.values && m->rank_sums && m->rank_counts;
}

static void release_meetings(struct snd_clock_meetings *m)
{
    for (uint32_t i = 0; i < m->group_count; i++) {
        for (uint32_t k = 0; k < m->groups[i].count; k++)
            free(m->groups[i].items[k]);
        free(m->groups[i].items);
        free(m->groups[i].best);
    }
    free(m->groups);
    snd_map_release(&m->index);
    free(m->spreads.values);
    free(m->slopes.values);
    free(m->rank_sums);
    free(m->rank_counts);
    free(m);
}

void snd_clocks_release(struct snd_clocks *c)
{
    for (uint32_t i = 0; c->clocks && i < c->host_count; i++)
        free(c->clocks[i].knots);
    free(c->clocks);
    if (c->meetings)
        release_meetings(c->meetings);
    *c = (struct snd_clocks){ 0 };
}

static int compare_stays(const void *a, const void *b)
{
    const struct snd_stay *x = a, *y = b;

    return SND_ORDER(SND_RISING(x->host, y->host), SND_RISING(x->exit_ns, y->exit_ns));
}

/* How much later each rank of a host leaves than the one before it: the slope of a line through them. */
static bool find_slope(const struct snd_stay *stays, uint32_t count, double *slope)
{
    double x = 0, y = 0, xx = 0, xy = 0;

    for (uint32_t i = 0; i < count; i++) {
        x += stays[i].rank;
        y += (double)snd_sub(stays[i].exit_ns, stays[0].exit_ns);
    }
    x /= count;
    y /= count;
    for (uint32_t i = 0; i < count; i++) {
        xx += (stays[i].rank - x) * (stays[i].rank - x);
        xy += (stays[i].rank - x) * ((double)snd_sub(stays[i].exit_ns, stays[0].exit_ns) - y);
    }
    *slope = xx > 0 ? xy / xx : 0;
    return xx > 0;
}

/* What the ranks of one host say, in the order of their exits. */
static struct cell add_host(struct snd_clock_meetings *m, const struct snd_stay *stays,
                            uint32_t count)
{
    struct cell cell = { .host = stays[0].host,
                         .enter_ns = stays[0].enter_ns,
                         .first_exit_ns = stays[0].exit_ns,
                         .middle_exit_ns = stays[count / 2].exit_ns };
    double      slope;

    if (count % 2 == 0)
        cell.middle_exit_ns =
            snd_sub(cell.middle_exit_ns,
                    snd_sub(stays[count / 2].exit_ns, stays[count / 2 - 1].exit_ns) / 2);
    for (uint32_t i = 0; i < count; i++) {
        cell.enter_ns = stays[i].enter_ns > cell.enter_ns ? stays[i].enter_ns : cell.enter_ns;
        m->rank_sums[cell.host] += stays[i].rank;
        m->rank_counts[cell.host]++;
    }
    if (count > 1)
        add_some(&m->spreads, (double)snd_sub(stays[count - 1].exit_ns, stays[0].exit_ns));
    if (count > 1 && find_slope(stays, count, &slope))
        add_some(&m->slopes, slope);
    return cell;
}

static struct kept *find_kept(struct snd_clock_meetings *m, uint32_t group)
{
    struct snd_key key = { group, 0, 0 };
    uint32_t       at;

    if (snd_map_get(&m->index, key, &at))
        return &m->groups[at];
    at = m->group_count;
    if (!snd_grow(&m->groups, &m->group_room, at, sizeof *m->groups) ||
        !snd_map_put(&m->index, key, at))
        return NULL;
    m->groups[m->group_count++] = (struct kept){ .fold = 1 };
    return &m->groups[at];
}

static struct meeting *take_better(struct snd_clock_meetings *m, struct meeting *a,
                                   struct meeting *b)
{
    bool            first = b->stay_ns >= a->stay_ns;
    struct meeting *gone = first ? b : a;

    m->cells -= gone->count;
    free(gone);
    return first ? a : b;
}

/* Of the group with most, of each two that follow each other the one that says more. */
static void halve(struct snd_clock_meetings *m)
{
    struct kept *most = &m->groups[0];

    for (uint32_t i = 1; i < m->group_count; i++)
        if (m->groups[i].count > most->count)
            most = &m->groups[i];
    uint32_t pairs = most->count / 2;
    for (uint32_t i = 0; i < pairs; i++)
        most->items[i] = take_better(m, most->items[2 * i], most->items[2 * i + 1]);
    if (most->count % 2)
        most->items[pairs] = most->items[most->count - 1];
    most->count -= pairs;
    most->fold *= 2;
}

static bool push_best(struct snd_clock_meetings *m, struct kept *kept)
{
    if (!kept->best)
        return true;
    if (!snd_grow(&kept->items, &kept->room, kept->count, sizeof *kept->items))
        return false;
    kept->items[kept->count++] = kept->best;
    kept->best = NULL;
    kept->seen = 0;
    if (m->cells > CELLS_MAX)
        halve(m);
    return true;
}

bool snd_clocks_add(struct snd_clocks *c, uint32_t group, struct snd_stay *stays, uint32_t count)
{
    struct snd_clock_meetings *m = c->meetings;
    uint32_t                   hosts = 0;

    if (count == 0)
        return true;
    snd_sort(stays, count, sizeof *stays, compare_stays);
    for (uint32_t i = 0; i < count; i++)
        hosts += i == 0 || stays[i].host != stays[i - 1].host;
    struct meeting *meeting = malloc(sizeof *meeting + hosts * sizeof *meeting->cells);
    if (!meeting)
        return false;
    meeting->count = 0;
    meeting->stay_ns = 0;
    for (uint32_t from = 0, to; from < count; from = to) {
        for (to = from; to < count && stays[to].host == stays[from].host;)
            to++;
        struct cell cell = add_host(m, stays + from, to - from);
        meeting->stay_ns += (double)snd_sub(cell.first_exit_ns, cell.enter_ns) / hosts;
        meeting->cells[meeting->count++] = cell;
    }
    struct kept *kept = hosts > 1 ? find_kept(m, group) : NULL;
    if (!kept) {
        free(meeting);
        return hosts <= 1;
    }
    m->cells += hosts;
    kept->best = kept->best ? take_better(m, kept->best, meeting) : meeting;
    return ++kept->seen < kept->fold || push_best(m, kept);
}

/* ----------------------------------------------------------- who refers to whom */

static const struct cell *find_cell(const struct meeting *meeting, uint32_t host)
{
    uint32_t from = 0, to = meeting->count;

    while (from < to) {
        uint32_t middle = from + (to - from) / 2;
        if (meeting->cells[middle].host < host)
            from = middle + 1;
        else
            to = middle;
    }
    return from < meeting->count && meeting->cells[from].host == host ? &meeting->cells[from]
                                                                      : NULL;
}

typedef void meeting_fn(void *user, const struct meeting *meeting);

static void each_meeting(const struct snd_clocks *c, meeting_fn *call, void *user)
{
    for (uint32_t i = 0; i < c->meetings->group_count; i++)
        for (uint32_t k = 0; k < c->meetings->groups[i].count; k++)
            call(user, c->meetings->groups[i].items[k]);
}

struct tried {
    uint32_t meetings;
    double   last, fair; /* how often it came last, and would by chance */
};

/* Who stays the shortest came last, whatever the clocks say. */
static void count_last(void *user, const struct meeting *meeting)
{
    struct tried      *tried = user;
    const struct cell *last = &meeting->cells[0];

    for (uint32_t i = 0; i < meeting->count; i++) {
        const struct cell *cell = &meeting->cells[i];
        tried[cell->host].meetings++;
        tried[cell->host].fair += 1.0 / meeting->count;
        if (snd_sub(cell->first_exit_ns, cell->enter_ns) <
            snd_sub(last->first_exit_ns, last->enter_ns))
            last = cell;
    }
    tried[last->host].last++;
}

/*
 * The first host that has met as many as any, and does not come last more often than others: what is particular to
 * a straggler's exits is then an error of its clock alone, not of all.
 */
static uint32_t choose_reference(const struct snd_clocks *c, struct tried *tried)
{
    uint32_t most = 0, best = 0;
    double   least = INFINITY;

    each_meeting(c, count_last, tried);
    for (uint32_t i = 0; i < c->host_count; i++)
        most = tried[i].meetings > most ? tried[i].meetings : most;
    for (uint32_t i = 0; i < c->host_count; i++) {
        if (tried[i].meetings < most - most / 10 || tried[i].meetings == 0)
            continue;
        double share = tried[i].last / tried[i].fair;
        if (share <= 1.5)
            return i;
        if (share < least) {
            least = share;
            best = i;
        }
    }
    return best;
}

/* ------------------------------------------------------------------ one clock */

/* What a host's collectives with its parent say of its offset: x in seconds, y in ns. */
struct evidence {
    struct snd_point *exits, *low, *high;
    struct snd_point *scratch_low, *scratch_high; /* of a piece */
    double           *scratch;
    uint32_t          count, room;
    double            spread_ns; /* never state less; negative: not known */
    double            ring_ns;   /* that the exits may be beside, if ranks leave in their order */
};

/* A part of the time in which the clock goes along a line. */
struct piece {
    struct snd_line line;
    double          from, to;
    double          error_from, error_to;
};

struct solver {
    struct snd_clocks *clocks;
    struct evidence    seen;
    uint32_t           host, parent;
    struct piece      *pieces;
    uint32_t           piece_count, piece_room;
    int64_t            origin_ns;
    bool               failed;
};

/* Times of a damaged trace may give anything. */
static int64_t whole_ns(double ns)
{
    if (!(fabs(ns) < (double)SND_TIME_MAX))
        return ns < 0 ? -SND_TIME_MAX : SND_TIME_MAX;
    return llround(ns);
}

/* How much the exits scatter from one collective to the next: slow changes of the clock are not in it. */
static double find_jitter(const struct evidence *e, uint32_t from, uint32_t to)
{
    uint32_t count = 0;

    for (uint32_t i = from + 1; i < to; i++)
        e->scratch[count++] = fabs(e->exits[i].y - e->exits[i - 1].y);
    return snd_value_at_share(e->scratch, count, 0.5) * 1.4826 / sqrt(2);
}

/* Whether parts of a piece lie beside its line, by more than exits scatter. */
static bool is_bent(const struct evidence *e, uint32_t from, uint32_t to, struct snd_line line)
{
    enum { PARTS = 8 };
    double allowed = 4 * 1.25 * find_jitter(e, from, to) / sqrt((to - from) / (double)PARTS);

    allowed = fmax(fmax(allowed, 1000), e->spread_ns / 4);
    for (uint32_t part = 0; part < PARTS; part++) {
        uint32_t first = from + (to - from) * part / PARTS, count = 0;
        for (uint32_t i = first; i < from + (to - from) * (part + 1) / PARTS; i++)
            e->scratch[count++] = e->exits[i].y - snd_line_y(line, e->exits[i].x);
        if (fabs(snd_value_at_share(e->scratch, count, 0.5)) > allowed)
            return true;
    }
    return false;
}

static double find_noise(const struct evidence *e, uint32_t from, uint32_t to, struct snd_line line)
{
    for (uint32_t i = from; i < to; i++)
        e->scratch[i - from] = fabs(e->exits[i].y - snd_line_y(line, e->exits[i].x));
    return snd_value_at_share(e->scratch, to - from, NOISE_SHARE);
}

/* By how much the points near an end lie beside the line: it bends there, or is a little off. */
static double find_end(const struct evidence *e, uint32_t from, uint32_t to, struct snd_line line)
{
    for (uint32_t i = from; i < to; i++)
        e->scratch[i - from] = e->exits[i].y - snd_line_y(line, e->exits[i].x);
    return fabs(snd_value_at_share(e->scratch, to - from, 0.5));
}

/* The certain intervals of a piece, relative to its line. False: no line fits them all. */
static bool find_gap(const struct evidence *e, uint32_t from, uint32_t to, struct snd_line line,
                     struct snd_gap *gap)
{
    *gap = (struct snd_gap){ e->scratch_low, e->scratch_high, to - from, to - from, 0, 0 };
    for (uint32_t i = from; i < to; i++) {
        struct snd_point low = e->low[i], high = e->high[i];
        gap->low[i - from] = (struct snd_point){ low.x, low.y - snd_line_y(line, low.x) };
        gap->high[i - from] = (struct snd_point){ high.x, high.y - snd_line_y(line, high.x) };
    }
    return snd_gap_find(gap, -STEEPEST - line.slope, STEEPEST - line.slope);
}

/* Moves an end of the line into what is certain, and states its error. */
static double settle_end(const struct snd_gap *gap, bool is_certain, double x, double stated_ns,
                         double *y)
{
    double low, high;

    if (!is_certain)
        return stated_ns;
    snd_gap_at(gap, x, &low, &high);
    *y = *y < low ? low : *y > high ? high : *y;
    return fmin(stated_ns, fmax(*y - low, high - *y));
}

static void add_piece(struct solver *s, uint32_t from, uint32_t to, struct snd_line line,
                      const struct snd_gap *gap, bool is_certain)
{
    const struct evidence *e = &s->seen;
    double                 noise = find_noise(e, from, to, line),
           stated = fmax(fmax(e->spread_ns, noise), LEAST_NS) + e->ring_ns;
    double x0 = e->exits[from].x, x1 = e->exits[to - 1].x, y0 = 0, y1 = 0;

    if (e->spread_ns < 0 || e->count < FEW) /* exits alone prove nothing */
        stated = is_certain ? INFINITY : 2 * noise + fmax(e->spread_ns, 1e6);
    uint32_t     near = (to - from) / 8 > 4 ? (to - from) / 8 : to - from < 4 ? to - from : 4;
    struct piece piece = { line, x0, x1, 0, 0 };
    piece.error_from = settle_end(gap, is_certain, x0,
                                  stated + find_end(e, from, from + near, line), &y0);
    piece.error_to = settle_end(gap, is_certain, x1, stated + find_end(e, to - near, to, line),
                                &y1);
    double turn = x1 > x0 ? (y1 - y0) / (x1 - x0) : 0;
    piece.line.slope += turn;
    piece.line.at += y0 - turn * x0;
    if (!snd_grow(&s->pieces, &s->piece_room, s->piece_count, sizeof *s->pieces)) {
        s->failed = true;
        return;
    }
    s->pieces[s->piece_count++] = piece;
}

/* In pieces, halved until each is a line; no deeper than there are halves of PIECE_LEAST. */
static void find_pieces(struct solver *s, uint32_t from, uint32_t to)
{
    struct snd_line line = snd_line_through(s->seen.exits + from, to - from, STEEPEST,
                                            s->seen.scratch);
    struct snd_gap  gap;
    bool            is_certain = find_gap(&s->seen, from, to, line, &gap);
    uint32_t        middle = from + (to - from) / 2;

    if (to - from >= 2 * PIECE_LEAST && (!is_certain || is_bent(&s->seen, from, to, line))) {
        find_pieces(s, from, middle);
        find_pieces(s, middle, to);
        return;
    }
    add_piece(s, from, to, line, &gap, is_certain);
}

/* No further from the last one than two clocks turn, which an axis can be bent by (read/bend_axis.c): the rest is an error. */
static bool add_knot(struct solver *s, double x, double y, double error_ns)
{
    struct snd_host_clock *clock = &s->clocks->clocks[s->host];
    struct snd_clock_knot  knot = { snd_add(s->origin_ns, whole_ns(x * 1e9)), y, error_ns };
    double                 before = 0;

    if (!snd_grow(&clock->knots, &clock->room, clock->count, sizeof *clock->knots))
        return false;
    if (clock->count > 0) {
        const struct snd_clock_knot *last = &clock->knots[clock->count - 1];
        double                       passed = (double)snd_sub(knot.at_ns, last->at_ns) / 1e9;
        double most = 2 * STEEPEST * fmax(passed, 0), turned = knot.offset_ns - last->offset_ns;
        double kept = fmin(fmax(turned, -most), most);
        knot.offset_ns = last->offset_ns + kept;
        knot.error_ns += fabs(turned - kept);
    }
    if (s->parent != s->clocks->reference)
        (void)snd_clock_offset(&s->clocks->clocks[s->parent],
                               snd_sub(snd_sub(knot.at_ns, clock->base_ns), whole_ns(y)), &before);
    knot.error_ns += before;
    clock->knots[clock->count++] = knot;
    return true;
}

/* Pieces meet half way between what they say of the moment between them. */
static bool join_pieces(struct solver *s)
{
    const struct piece *first = &s->pieces[0], *last = &s->pieces[s->piece_count - 1];
    bool good = add_knot(s, first->from, snd_line_y(first->line, first->from), first->error_from);

    for (uint32_t i = 0; good && i + 1 < s->piece_count; i++) {
        const struct piece *a = &s->pieces[i], *b = &s->pieces[i + 1];
        double              x = (a->to + b->from) / 2;
        double              ya = snd_line_y(a->line, x), yb = snd_line_y(b->line, x);
        good = add_knot(s, x, (ya + yb) / 2, fmax(a->error_to, b->error_from) + fabs(ya - yb) / 2);
    }
    return good && (last->to <= first->from ||
                    add_knot(s, last->to, snd_line_y(last->line, last->to), last->error_to));
}

/* What is known of the drift beyond the ends: that of the whole. */
static void find_drift(const struct solver *s)
{
    const struct evidence *e = &s->seen;
    struct snd_host_clock *clock = &s->clocks->clocks[s->host];
    double                 span = e->exits[e->count - 1].x - e->exits[0].x;

    clock->drift = 0;
    clock->drift_error = 1e-4;
    if (e->count < FEW || span <= 0)
        return;
    struct snd_line line = snd_line_through(e->exits, e->count, STEEPEST, e->scratch);
    clock->drift = line.slope / 1e9;
    clock->drift_error = 2 * find_noise(e, 0, e->count, line) / span / 1e9;
}

static int64_t to_reference(const struct solver *s, int64_t parent_ns)
{
    if (s->parent == s->clocks->reference)
        return parent_ns;
    return snd_sub(parent_ns, snd_clock_offset(&s->clocks->clocks[s->parent], parent_ns, NULL));
}

static void add_evidence(void *user, const struct meeting *meeting)
{
    struct solver     *s = user;
    struct evidence   *e = &s->seen;
    const struct cell *own = find_cell(meeting, s->host), *other = find_cell(meeting, s->parent);

    if (!own || !other || e->count >= e->room)
        return;
    int64_t enter = to_reference(s, other->enter_ns);
    int64_t first = to_reference(s, other->first_exit_ns);
    int64_t middle = to_reference(s, other->middle_exit_ns);
    int64_t base = s->clocks->clocks[s->host].base_ns;
    if (e->count == 0) {
        base = s->clocks->clocks[s->host].base_ns = snd_sub(own->middle_exit_ns, middle);
        s->origin_ns = own->middle_exit_ns;
    }
    uint32_t at = e->count++;
    e->exits[at] =
        (struct snd_point){ (double)snd_sub(own->middle_exit_ns, s->origin_ns) / 1e9,
                            (double)snd_sub(snd_sub(own->middle_exit_ns, middle), base) };
    e->low[at] = (struct snd_point){ (double)snd_sub(own->enter_ns, s->origin_ns) / 1e9,
                                     (double)snd_sub(snd_sub(own->enter_ns, first), base) };
    e->high[at] = (struct snd_point){ (double)snd_sub(own->first_exit_ns, s->origin_ns) / 1e9,
                                      (double)snd_sub(snd_sub(own->first_exit_ns, enter), base) };
}

struct trio {
    struct snd_point exit, low, high;
};

static int compare_trios(const void *a, const void *b)
{
    const struct trio *p = a, *q = b;

    return SND_RISING(p->exit.x, q->exit.x);
}

/* By time: groups follow each other in the meetings. */
static bool sort_evidence(struct evidence *e)
{
    struct trio *trios = malloc((size_t)e->count * sizeof *trios);

    for (uint32_t i = 0; trios && i < e->count; i++)
        trios[i] = (struct trio){ e->exits[i], e->low[i], e->high[i] };
    if (trios)
        snd_sort(trios, e->count, sizeof *trios, compare_trios);
    for (uint32_t i = 0; trios && i < e->count; i++) {
        e->exits[i] = trios[i].exit;
        e->low[i] = trios[i].low;
        e->high[i] = trios[i].high;
    }
    free(trios);
    return trios != NULL;
}

static double mean_rank(const struct snd_clocks *c, uint32_t host)
{
    return c->meetings->rank_sums[host] / (double)c->meetings->rank_counts[host];
}

/* A host against one that is known. */
static bool solve_host(struct solver *s, uint32_t host, uint32_t parent)
{
    const struct snd_clocks *c = s->clocks;

    s->host = host;
    s->parent = parent;
    s->seen.count = s->piece_count = 0;
    s->seen.spread_ns = c->spread_ns;
    /* As far as an order that goes on from host to host carries it. */
    s->seen.ring_ns = fabs(c->by_rank_ns * (mean_rank(c, host) - mean_rank(c, parent)));
    each_meeting(c, add_evidence, s);
    if (s->seen.count == 0 || !sort_evidence(&s->seen))
        return s->seen.count == 0;
    find_pieces(s, 0, s->seen.count);
    if (s->failed || !join_pieces(s))
        return false;
    find_drift(s);
    s->clocks->clocks[host].is_known = true;
    return true;
}

/* --------------------------------------------------------------------- all */

struct sharing {
    uint32_t  host;
    uint32_t *counts; /* collectives with each other host */
};

static void count_shared(void *user, const struct meeting *meeting)
{
    struct sharing *sharing = user;

    if (!find_cell(meeting, sharing->host))
        return;
    for (uint32_t i = 0; i < meeting->count; i++)
        sharing->counts[meeting->cells[i].host]++;
}

/* From the reference on: whoever has met a host that is known. */
static bool solve_from(struct solver *s, uint32_t *queue, uint32_t *counts)
{
    struct snd_clocks *c = s->clocks;
    uint32_t           queued = 1;

    queue[0] = c->reference;
    for (uint32_t at = 0; at < queued && queued < c->host_count; at++) {
        struct sharing sharing = { queue[at], counts };
        memset(counts, 0, c->host_count * sizeof *counts);
        each_meeting(c, count_shared, &sharing);
        for (uint32_t host = 0; host < c->host_count; host++) {
            if (counts[host] == 0 || c->clocks[host].is_known)
                continue;
            if (!solve_host(s, host, queue[at]))
                return false;
            if (c->clocks[host].is_known)
                queue[queued++] = host;
        }
    }
    return true;
}

/* What ranks of one host differ by; and by how much each leaves later than the one before it, if that is no chance. */
static void measure_ranks(struct snd_clocks *c)
{
    struct some *slopes = &c->meetings->slopes, *spreads = &c->meetings->spreads;

    if (spreads->count > 0)
        c->spread_ns = snd_value_at_share(spreads->values, spreads->count, SPREAD_SHARE);
    if (slopes->count == 0)
        return;
    double middle = snd_value_at_share(slopes->values, slopes->count, 0.5);
    for (uint32_t i = 0; i < slopes->count; i++)
        slopes->values[i] = fabs(slopes->values[i] - middle);
    double error = snd_value_at_share(slopes->values, slopes->count, 0.5) * 1.4826 * 1.25 /
                   sqrt(slopes->count);
    c->by_rank_ns = fabs(middle) > 3 * error ? middle : 0;
}

static bool make_room(struct evidence *e, uint32_t room)
{
    e->room = room;
    e->exits = calloc(room, sizeof *e->exits);
    e->low = calloc(room, sizeof *e->low);
    e->high = calloc(room, sizeof *e->high);
    e->scratch_low = calloc(room, sizeof *e->scratch_low);
    e->scratch_high = calloc(room, sizeof *e->scratch_high);
    e->scratch = calloc((size_t)room + SND_LINE_SCRATCH, sizeof *e->scratch);
    return e->exits && e->low && e->high && e->scratch_low && e->scratch_high && e->scratch;
}

bool snd_clocks_solve(struct snd_clocks *c)
{
    struct solver s = { .clocks = c };
    uint32_t      room = 1;
    bool          good = true;

    for (uint32_t i = 0; i < c->meetings->group_count; i++) {
        good &= push_best(c->meetings, &c->meetings->groups[i]);
        room += c->meetings->groups[i].count;
    }
    struct tried *tried = calloc((size_t)c->host_count + 1, sizeof *tried);
    uint32_t     *queue = calloc((size_t)c->host_count + 1, sizeof *queue);
    uint32_t     *counts = calloc((size_t)c->host_count + 1, sizeof *counts);
    if (good && tried && queue && counts && make_room(&s.seen, room)) {
        measure_ranks(c);
        c->reference = choose_reference(c, tried);
        c->clocks[c->reference].is_known = c->host_count > 0;
        good = solve_from(&s, queue, counts);
    } else {
        good = false;
    }
    free(tried);
    free(queue);
    free(counts);
    free(s.seen.exits);
    free(s.seen.low);
    free(s.seen.high);
    free(s.seen.scratch_low);
    free(s.seen.scratch_high);
    free(s.seen.scratch);
    free(s.pieces);
    return good;
}

bool snd_clocks_any(const struct snd_clocks *c)
{
    return c->meetings->group_count > 0;
}

int64_t snd_clock_offset(const struct snd_host_clock *clock, int64_t at_ns, double *error_ns)
{
    const struct snd_clock_knot *knots = clock->knots;
    uint32_t                     from = 0, to = clock->count;
    double                       unused;

    error_ns = error_ns ? error_ns : &unused;
    *error_ns = 0;
    if (clock->count == 0)
        return clock->base_ns;
    while (from < to) { /* the first that is later */
        uint32_t middle = from + (to - from) / 2;
        if (knots[middle].at_ns <= at_ns)
            from = middle + 1;
        else
            to = middle;
    }
    if (from == 0 || from == clock->count) {
        const struct snd_clock_knot *end = &knots[from == 0 ? 0 : from - 1];
        double                       beyond = (double)snd_sub(at_ns, end->at_ns);
        *error_ns = end->error_ns + fabs(beyond) * clock->drift_error;
        return snd_add(clock->base_ns, whole_ns(end->offset_ns + beyond * clock->drift));
    }
    const struct snd_clock_knot *a = &knots[from - 1], *b = &knots[from];
    double share = (double)snd_sub(at_ns, a->at_ns) / (double)snd_sub(b->at_ns, a->at_ns);
    *error_ns = a->error_ns + (b->error_ns - a->error_ns) * share;
    return snd_add(clock->base_ns, whole_ns(a->offset_ns + (b->offset_ns - a->offset_ns) * share));
}
