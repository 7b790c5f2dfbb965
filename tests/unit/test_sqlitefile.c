/* SPDX-License-Identifier: Apache-2.0 */
/* export/sqlite/sqlite_file.c, export/tables/row_lists.c: databases that SQLite itself, Python's, finds sound and reads back. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <setjmp.h>

#include <cmocka.h>
#include <fcntl.h>
#include <unistd.h>

#include "export/tables/row_lists.h"
#include "export/sqlite/sqlite_file.h"

#define ROWS 40000 /* two levels above the leaves */
#define BIG 40
#define LOCK_PAGE 262145u

static struct snd_sqlite_file file;

static void test_varints(void **state)
{
    static const struct {
        uint64_t    value;
        size_t      length;
        const char *bytes;
    } cases[] = {
        { 0, 1, "\x00" },
        { 0x7f, 1, "\x7f" },
        { 0x80, 2, "\x81\x00" },
        { 0x3fff, 2, "\xff\x7f" },
        { 0x4000, 3, "\x81\x80\x00" },
        { ((uint64_t)1 << 56) - 1, 8, "\xff\xff\xff\xff\xff\xff\xff\x7f" },
        { (uint64_t)1 << 56, 9, "\x80\xc0\x80\x80\x80\x80\x80\x80\x00" },
        { UINT64_MAX, 9, "\xff\xff\xff\xff\xff\xff\xff\xff\xff" },
    };
    uint8_t bytes[SND_SQLITE_VARINT_MAX];

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_int_equal(snd_sqlite_varint_size(cases[i].value), cases[i].length);
        assert_int_equal(snd_sqlite_varint(bytes, cases[i].value), cases[i].length);
        assert_memory_equal(bytes, cases[i].bytes, cases[i].length);
    }
}

/* ------------------------------------------------------------------- a database */

/* A record of a text and an integer. */
static size_t make_record(uint8_t *to, const char *text, size_t length, int64_t number)
{
    uint8_t head[16], *type = head + 1;
    uint8_t value[8];

    type += snd_sqlite_varint(type, SND_SQLITE_TEXT(length));
    size_t bytes = snd_sqlite_integer(value, number, type++);
    head[0] = (uint8_t)(type - head);
    memcpy(to, head, (size_t)(type - head));
    memcpy(to + (type - head), text, length);
    memcpy(to + (type - head) + length, value, bytes);
    return (size_t)(type - head) + length + bytes;
}

/* Numbers of every width and both signs. */
static int64_t number_of(int64_t row)
{
    return (row % 2 ? -1 : 1) * (int64_t)((uint64_t)row * 0x9e3779b97f4a7c15u >> (1 + row % 63));
}

/* Lengths around every border: of a cell, a page, a chain of pages. */
static size_t big_length(int64_t row)
{
    return (size_t)row * 509;
}

static uint8_t record[70000];
static char    text[70000];

static uint32_t put_rows(void)
{
    struct snd_sqlite_tree tree = { 0 };

    for (int64_t row = 1; row <= ROWS; row++) {
        int length = snprintf(text, sizeof text, "name %lld", (long long)(row * 7919 % ROWS));
        snd_sqlite_add(&file, &tree, row, record,
                       make_record(record, text, (size_t)length, number_of(row)));
    }
    return snd_sqlite_end_tree(&file, &tree);
}

static uint32_t put_big(void)
{
    struct snd_sqlite_tree tree = { 0 };

    memset(text, 'x', sizeof text);
    for (int64_t row = 1; row <= BIG; row++)
        snd_sqlite_add(&file, &tree, 3 * row, record,
                       make_record(record, text, big_length(row), row));
    return snd_sqlite_end_tree(&file, &tree);
}

/* Of the names of put_rows(), which are all different; or of the texts of put_big(), which differ in length alone. */
static uint32_t put_index(bool is_big)
{
    struct snd_rowlists    lists = { 0 };
    struct snd_sqlite_tree tree = { .is_index = true };
    int64_t                rowid;

    for (int64_t row = 1; row <= (is_big ? BIG : ROWS); row++) {
        int length = (int)big_length(row);
        if (!is_big)
            length = snprintf(text, sizeof text, "name %lld", (long long)(row * 7919 % ROWS));
        assert_true(snd_rowlists_add(&lists, (struct sonde_text){ text, (size_t)length },
                                     row % 3 ? (uint32_t)row : 0, is_big ? 3 * row : row));
    }
    snd_rowlists_sort(&lists);
    for (uint32_t i = 0; i < lists.list_count; i++) {
        struct snd_rowlist_position at = snd_rowlist_first(&lists.lists[i]);
        const struct snd_text      *name = &lists.texts.items[lists.lists[i].text];
        while (snd_rowlist_next(&lists, &at, &rowid))
            snd_sqlite_add(&file, &tree, 0, record,
                           make_record(record, name->bytes, name->length, rowid));
    }
    snd_rowlists_release(&lists);
    return snd_sqlite_end_tree(&file, &tree);
}

static void put_schema(struct snd_sqlite_tree *schema, const char *type, const char *name,
                       const char *table, uint32_t root, const char *sql)
{
    const char *const texts[] = { type, name, table, sql };
    uint8_t           body[1000], *at = body, head[32], *next = head + 1;

    for (size_t i = 0; i < 4; i++) {
        if (i == 3)
            at += snd_sqlite_integer(at, root, next++);
        next += snd_sqlite_varint(next, SND_SQLITE_TEXT(strlen(texts[i])));
        memcpy(at, texts[i], strlen(texts[i]));
        at += strlen(texts[i]);
    }
    head[0] = (uint8_t)(next - head);
    memcpy(record, head, head[0]);
    memcpy(record + head[0], body, (size_t)(at - body));
    snd_sqlite_add(&file, schema, schema->rowid + 1, record, head[0] + (size_t)(at - body));
}

/* As many empty tables as make the schema larger than page 1. */
static void put_empty_tables(struct snd_sqlite_tree *schema)
{
    char name[32], sql[100];

    for (int i = 0; i < 100; i++) {
        struct snd_sqlite_tree tree = { 0 };
        snprintf(name, sizeof name, "empty%d", i);
        snprintf(sql, sizeof sql, "CREATE TABLE %s (name text, number integer)", name);
        put_schema(schema, "table", name, name, snd_sqlite_end_tree(&file, &tree), sql);
    }
}

static const char CHECK[] =
    "import sqlite3, sys\n"
    "db = sqlite3.connect(sys.argv[1])\n"
    "assert db.execute('pragma integrity_check').fetchall() == [('ok',)]\n"
    "def number(row):\n"
    "    return (-1 if row % 2 else 1) * ((row * 0x9e3779b97f4a7c15 % 2**64) >> (1 + row % 63))\n"
    "rows = db.execute('select rowid, name, number from rows').fetchall()\n"
    "assert rows == [(i, f'name {i * 7919 % 40000}', number(i)) for i in range(1, 40001)]\n"
    "big = db.execute('select rowid, name, number from big').fetchall()\n"
    "assert big == [(3 * i, 'x' * (509 * i), i) for i in range(1, 41)]\n"
    "for table, found in ('rows', rows), ('big', big):\n"
    "    query = f'select rowid from {table} where name = ?'\n"
    "    assert 'USING COVERING INDEX' in db.execute('explain query plan ' + query, "
    "'x').fetchone()[3]\n"
    "    for rowid, name, _ in found[::97] + found[-1:]:\n"
    "        assert db.execute(query, (name,)).fetchall() == [(rowid,)]\n"
    "tables = [name for name, in db.execute(\"select name from sqlite_master where type = "
    "'table'\")]\n"
    "assert len(tables) == 102 and db.execute('select * from empty99').fetchall() == []\n"
    "db.execute(\"insert into rows values ('new', 1)\")\n" /* it can be written to as well */
    "db.execute('delete from big where number > 20')\n"
    "db.commit()\n"
    "assert db.execute('pragma integrity_check').fetchall() == [('ok',)]\n";

static void write_and_read(bool apart)
{
    char                   path[] = "/tmp/sonde-sqlitefile-XXXXXX", command[4000];
    struct snd_sqlite_tree schema = { .is_schema = true };
    int                    fd = mkostemp(path, O_CLOEXEC);

    assert_true(fd >= 0);
    snd_sqlite_begin(&file, fd, apart);
    put_schema(&schema, "table", "rows", "rows", put_rows(),
               "CREATE TABLE rows (name text, number integer)");
    put_schema(&schema, "table", "big", "big", put_big(),
               "CREATE TABLE big (name text, number integer)");
    put_schema(&schema, "index", "names", "rows", put_index(false),
               "CREATE INDEX names on rows (name)");
    memset(text, 'x', sizeof text);
    put_schema(&schema, "index", "bigs", "big", put_index(true), "CREATE INDEX bigs on big (name)");
    put_empty_tables(&schema);
    assert_int_equal(snd_sqlite_finish(&file, &schema, NULL), SONDE_OK);
    snd_sqlite_end(&file);
    close(fd);
    snprintf(command, sizeof command, "python3 - %s <<'END'\n%sEND\n", path, CHECK);
    int rc = system(command); /* NOLINT(cert-env33-c): the words are ours */
    unlink(path);
    assert_int_equal(rc, 0);
}

static void test_sqlite_reads_it(void **state)
{
    (void)state;
    write_and_read(false);
}

static void test_what_another_thread_writes(void **state)
{
    (void)state;
    write_and_read(true);
}

/* SQLite locks bytes of the page at 2^30, which may hold nothing. */
static void test_lock_page_is_left_out(void **state)
{
    struct snd_sqlite_tree tree = { 0 };
    int                    fd = open("/dev/null", O_WRONLY | O_CLOEXEC);

    (void)state;
    assert_true(fd >= 0);
    snd_sqlite_begin(&file, fd, false);
    file.pages = LOCK_PAGE - 2;
    assert_int_equal(snd_sqlite_end_tree(&file, &tree), LOCK_PAGE - 1);
    assert_int_equal(snd_sqlite_end_tree(&file, &tree), LOCK_PAGE + 1);
    file.pages = LOCK_PAGE - 2;
    memset(record, 0, sizeof record);
    snd_sqlite_add(&file, &tree, 1, record, 3 * 4092 + 489); /* three pages of overflow */
    const uint8_t *leaf = tree.levels[0]->bytes + tree.levels[0]->cells;
    const uint8_t  first[] = { 0, 4, 0, 0 }, next[] = { 0, 4, 0, 2 };
    assert_memory_equal(leaf + 2 + 1 + 489, first, 4);
    assert_memory_equal(file.out.at - 4 * SND_SQLITE_PAGE, next, 4);
    snd_sqlite_release_tree(&tree);
    close(fd);
}

static void fill_disk(bool apart)
{
    struct snd_sqlite_tree schema = { .is_schema = true };
    struct sonde_error     err;
    int                    fd = open("/dev/full", O_WRONLY | O_CLOEXEC);

    assert_true(fd >= 0);
    snd_sqlite_begin(&file, fd, apart);
    for (int i = 0; i < 4 && !snd_sqlite_failed(&file); i++)
        put_rows();
    assert_true(snd_sqlite_failed(&file));
    assert_int_equal(snd_sqlite_finish(&file, &schema, &err), SONDE_E_IO);
    assert_string_equal(err.message, "cannot write the database: No space left on device");
    snd_sqlite_end(&file);
    close(fd);
}

static void test_full_disk(void **state)
{
    (void)state;
    fill_disk(false);
    fill_disk(true);
}

/* Whoever gives up need not finish it. */
static void test_end_without_finish(void **state)
{
    int fd = open("/dev/null", O_WRONLY | O_CLOEXEC);

    (void)state;
    assert_true(fd >= 0);
    snd_sqlite_begin(&file, fd, true);
    put_rows();
    assert_false(snd_sqlite_failed(&file));
    assert_non_null(file.out.behind);
    snd_sqlite_end(&file);
    assert_null(file.out.behind);
    close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_varints),
        cmocka_unit_test(test_sqlite_reads_it),
        cmocka_unit_test(test_what_another_thread_writes),
        cmocka_unit_test(test_lock_page_is_left_out),
        cmocka_unit_test(test_full_disk),
        cmocka_unit_test(test_end_without_finish),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
