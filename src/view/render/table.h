/* SPDX-License-Identifier: Apache-2.0 */
/*
 * view/render/table.h - rows of typed cells under described columns: what every view is made of.
 *
 * A view describes its columns once (key, title, kind) and fills rows; text, JSON and CSV
 * come from that (render.h). So a new column is one line, and has all three.
 *
 * Layer: view. Threads: a table belongs to one thread.
 */
#ifndef SND_VIEW_RENDER_TABLE_H
#define SND_VIEW_RENDER_TABLE_H

#include "base/error.h"
#include "sonde/trace.h"

#define SND_COLUMNS_MAX 40

/* What a cell holds, and in which member. */
enum snd_kind {
    SND_TEXT,   /* text */
    SND_COUNT,  /* number */
    SND_TIME,   /* number: nanoseconds */
    SND_MEAN,   /* real: microseconds */
    SND_SHARE,  /* real: per cent; not a number: a share of nothing */
    SND_BYTES,  /* number */
    SND_FLOPS,  /* real */
    SND_SHAPES, /* text: lists of integers */
    SND_LINES,  /* text: one entry a line */
    SND_FLAG,   /* number: 0 or 1 */
    SND_REAL,   /* real */
};

/* How wide a column of text output is; what is longer is cut as torch cuts it. */
enum snd_fit {
    SND_FIT_FIXED,     /* 12, or more where a value needs more; never cut */
    SND_FIT_NAME,      /* its longest + 4, up to max_name */
    SND_FIT_LIKE_NAME, /* as wide as the first column, cut as names are */
    SND_FIT_SHAPES,    /* its longest + 4, up to max_shapes */
    SND_FIT_SOURCE,    /* its longest + 4, up to max_source; aligned left */
    SND_FIT_CONTENT,   /* its longest; aligned left; its end is cut in a narrow terminal */
};

struct snd_column {
    const char   *key;   /* in JSON and CSV, and to sort by; NULL: in text alone */
    const char   *title; /* in text; NULL: not shown there */
    enum snd_kind kind;
    enum snd_fit  fit;
};

struct snd_cell {
    struct sonde_text text; /* borrowed */
    int64_t           number;
    double            real;
    bool              none; /* nothing known: empty, null */
};

struct snd_table;

/* Makes a cell of a table whose rows are not kept; `row` is a row of its source. */
typedef struct snd_cell snd_cell_fn(const struct snd_table *table, size_t row, size_t column);

struct snd_table {
    const struct snd_column *columns; /* borrowed */
    size_t                   column_count;
    bool                     hidden[SND_COLUMNS_MAX]; /* left out of text */
    bool                     absent[SND_COLUMNS_MAX]; /* left out of text and data */
    const char *const
                    *spare; /* titles that a narrow terminal does without, in this order; or NULL */
    size_t           filter; /* plus one: of a flag that a row of text must have */
    size_t           most;   /* rows of a section in text, unless all are asked for; 0: all */
    size_t           share;  /* plus one: rows with little of it are one line at the end of text */
    size_t           time;   /* plus one: what such rows add up to */
    bool             torch_units; /* data in torch's unit, microseconds, not nanoseconds */
    struct snd_cell *cells;
    size_t           row_count, capacity;
    bool             failed; /* memory ran out */
    snd_cell_fn     *make;   /* NULL: the cells are kept */
    void            *source; /* of `make`: freed with the table by free() */
    struct snd_cell *made;   /* the row returned last */
    uint32_t        *order;  /* order of the source's rows after sorting; NULL: unsorted */
    struct snd_cell  scratch[SND_COLUMNS_MAX];
};

void snd_table_init(struct snd_table *table, const struct snd_column *columns, size_t count);
void snd_table_release(struct snd_table *table);

/* The trace has nothing for this column: it is in neither text nor data, and no sort key. */
static inline void snd_table_leave_out(struct snd_table *table, size_t column)
{
    table->hidden[column] = table->absent[column] = true;
}

/* Cells of a new row, to be filled; never NULL: when memory ran out, a row that is lost. */
struct snd_cell *snd_table_add(struct snd_table *table);
/*
 * Rows that are made on demand instead of added: a table of a million rows, of which few are shown,
 * takes a few bytes for each. `source` is the table's from then on.
 */
void snd_table_lazy(struct snd_table *table, size_t row_count, snd_cell_fn *make, void *source);
/* A row; valid until the next call. */
const struct snd_cell *snd_table_row(const struct snd_table *table, size_t row);

struct snd_cell snd_table_cell(const struct snd_table *table, size_t row, size_t column);

/*
 * Sorts by the column `key`, greatest first, equal rows as they were; `cuda_x` and `xpu_x`
 * mean `device_x`.
 * Errors: SONDE_E_ARGUMENT, naming the keys there are; SONDE_E_NOMEM.
 */
enum sonde_status snd_table_sort(struct snd_table *table, const char *key, struct sonde_error *err);

struct snd_cell snd_cell_text(struct sonde_text text);
struct snd_cell snd_cell_string(const char *text);
struct snd_cell snd_cell_number(int64_t number);
struct snd_cell snd_cell_real(double real);
struct snd_cell snd_cell_none(void);
/* `part` of `whole` in per cent. */
struct snd_cell snd_cell_share(int64_t part_ns, int64_t whole_ns);

#endif
