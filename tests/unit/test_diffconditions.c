/* SPDX-License-Identifier: Apache-2.0 */
/* view/diff/diff_conditions.c: what `--fail-if` takes, and of which rows it holds. */
#include "view/diff/diff_conditions.h"

#include "model/diff/diff.h"
#include "scratch.h"

static struct snd_conditions parse(const char *text)
{
    struct snd_conditions conditions;
    struct sonde_error    err = { 0 };

    if (snd_conditions_parse(text, &conditions, &err) != SONDE_OK)
        fail_msg("%s: %s", text ? text : "none", err.message);
    return conditions;
}

static bool holds(const char *text, const struct snd_diff_row *row)
{
    struct snd_conditions conditions = parse(text);

    return snd_conditions_row(&conditions, row);
}

static bool holds_whole(const char *text, enum snd_diff_verdict verdict, double change)
{
    struct snd_conditions conditions = parse(text);
    const struct snd_diff diff = { .whole = { .verdict = verdict, .change = change } };

    return snd_conditions_whole(&conditions, &diff);
}

static void lists_are_parsed(void **state)
{
    static const char *const wrong[] = { "",          " ",          "time",       "time>",
                                         "time>5",    "time5%",     "speed>5%",   "tim>5%",
                                         "times>5%",  "time>%",     "time>x%",    "time>inf%",
                                         "time>nan%", "time>0x5%%", "time>5%,",   "time>5%;step>5%",
                                         "time>5% x", "time=5%",    "time>1e999%" };
    struct snd_conditions c = parse("  time > +5% ,step<-2.5%,count>0%, memory<1% ,flops>100%  ");

    (void)state;
    assert_int_equal(c.count, 5);
    assert_true(c.list[0].percent == 5 && !c.list[0].below);
    assert_true(c.list[1].percent == -2.5 && c.list[1].below);
    assert_true(c.list[2].percent == 0 && c.list[4].percent == 100);
    for (int i = 0; i < 5; i++)
        assert_int_equal(c.list[i].metric, i);
    assert_int_equal(parse(NULL).count, 0);
    assert_int_equal(parse("time>1%,time>1%,time>1%,time>1%,time>1%,time>1%,time>1%,time>1%").count,
                     SND_CONDITIONS_MAX);
    assert_int_equal(snd_conditions_parse("time>1%,time>1%,time>1%,time>1%,time>1%,time>1%,"
                                          "time>1%,time>1%,time>1%",
                                          &c, NULL),
                     SONDE_E_ARGUMENT);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        if (snd_conditions_parse(wrong[i], &c, NULL) != SONDE_E_ARGUMENT)
            fail_msg("'%s' is taken", wrong[i]);
}

static void times_count_where_they_differ_by_more_than_noise(void **state)
{
    struct snd_diff_row row = { .time = { .verdict = SND_DIFF_SLOWER, .change = 0.05 } };

    (void)state;
    assert_true(holds("time>4.9%", &row));
    assert_false(holds("time>5%", &row));
    assert_false(holds("time<5%", &row));
    assert_true(holds("time<5.1%", &row));
    assert_false(holds("step>1%", &row)); /* of the whole alone */
    row.time = (struct snd_diff_answer){ .verdict = SND_DIFF_FASTER, .change = -0.05 };
    assert_true(holds("time<-4%", &row));
    assert_true(holds("count>1%,time<-4%", &row));
    row.time.verdict = SND_DIFF_UNCLEAR;
    assert_false(holds("time<-4%", &row));
    assert_false(holds("time>-4%", &row)); /* none is no change */
    row.time.verdict = SND_DIFF_SAME;
    assert_false(holds("time<-4%", &row));
}

static void the_whole_has_a_time(void **state)
{
    (void)state;
    assert_true(holds_whole("time>5%", SND_DIFF_SLOWER, 0.06));
    assert_true(holds_whole("step>5%", SND_DIFF_SLOWER, 0.06));
    assert_true(holds_whole("count>1%,step>5%", SND_DIFF_SLOWER, 0.06));
    assert_false(holds_whole("count>5%,memory>5%,flops>5%", SND_DIFF_SLOWER, 0.06));
    assert_false(holds_whole("step>5%", SND_DIFF_SLOWER, 0.05));
    assert_false(holds_whole("step>5%", SND_DIFF_SAME, 0.06));
    assert_true(holds_whole("step<-5%", SND_DIFF_FASTER, -0.06));
}

/* In both: if they changed in every run. New or gone: always. */
static void amounts_count_where_every_run_has_the_change(void **state)
{
    struct snd_diff_row row = { .a = { .count = 100, .bytes = 200, .flops = 400 },
                                .b = { .count = 110, .bytes = 150, .flops = 300 } };

    (void)state;
    assert_false(holds("count>0%,memory<0%,flops<0%", &row));
    row.count_changed = true;
    assert_true(holds("count>9%", &row) && !holds("count>10%", &row));
    assert_false(holds("memory<0%,flops<0%", &row));
    row = (struct snd_diff_row){ .a = row.a, .b = row.b, .bytes_changed = true };
    assert_true(holds("memory<-24%", &row) && !holds("memory<-25%", &row));
    assert_false(holds("count>0%,flops<0%", &row));
    row = (struct snd_diff_row){ .a = row.a, .b = row.b, .flops_changed = true };
    assert_true(holds("flops<-24%", &row) && !holds("flops<-25%", &row));
    assert_false(holds("count>0%,memory<0%", &row));
    row = (struct snd_diff_row){ .match = SND_DIFF_RENAMED, .a = row.a, .b = row.b };
    assert_false(holds("count>0%,memory<0%,flops<0%", &row));

    const struct snd_diff_row is_new = { .match = SND_DIFF_NEW,
                                         .b = { .count = 1, .bytes = 1, .flops = 1 } };
    assert_true(holds("count>1000%", &is_new) && !holds("count<0%", &is_new));
    assert_true(holds("memory>1000%", &is_new) && holds("flops>1000%", &is_new));
    const struct snd_diff_row gone = { .match = SND_DIFF_GONE,
                                       .a = { .count = 1, .bytes = -4, .flops = 1 } };
    assert_true(holds("count<-99%", &gone) && holds("flops<-99%", &gone));
    assert_true(holds("memory>99%", &gone)); /* it freed more than it took */
    const struct snd_diff_row frees = { .match = SND_DIFF_NEW, .b = { .bytes = -4 } };
    assert_true(holds("memory<-1000%", &frees) && !holds("count>0%", &frees));
}

/* What the sides have nothing of is an error, not a limit that never is exceeded. */
static void a_limit_needs_what_it_is_about(void **state)
{
    struct snd_diff_item   ops[2] = { { .all = { 3, 10, 0, 5.0 } }, { .all = { 3, 10, 0, 0 } } };
    struct snd_diff_run    runs[3] = { { .items = ops, .count = 2, .has_memory = true },
                                       { .items = ops, .count = 2, .has_memory = true },
                                       { .items = ops + 1, .count = 1 } };
    struct snd_diff_source source = { .name = "ops",
                                      .has = SND_DIFF_COUNT | SND_DIFF_MEMORY | SND_DIFF_FLOPS };
    struct snd_diff        diff = { .source = &source, .a_runs = 1, .b_runs = 1, .runs = runs };
    struct snd_conditions  all = parse("time>1%,step>1%,count>1%,memory>1%,flops>1%");
    struct sonde_error     err = { 0 };

    (void)state;
    assert_int_equal(snd_conditions_check(&all, &diff, &err), SONDE_OK); /* their sum is 0 */
    diff.b_runs = 2;
    assert_int_equal(snd_conditions_check(&all, &diff, &err), SONDE_E_STATE);
    assert_non_null(strstr(err.message, "--fail-if: memory: run 2 of B has no memory by ops: "));
    assert_non_null(strstr(err.message, "--memory"));
    struct snd_conditions flops = parse("flops>1%");
    assert_int_equal(snd_conditions_check(&flops, &diff, &err), SONDE_E_STATE);
    assert_non_null(strstr(err.message, "flops: run 2 of B has no FLOPs by ops: "));
    assert_non_null(strstr(err.message, "--ops --shapes"));
    struct snd_conditions times = parse("time>1%,step>1%,count>1%");
    assert_int_equal(snd_conditions_check(&times, &diff, &err), SONDE_OK);
    diff.is_sampled = true;
    assert_int_equal(snd_conditions_check(&times, &diff, &err), SONDE_E_STATE);
    assert_non_null(strstr(err.message, "count: run 1 of A has no calls by ops: "));
    diff.is_sampled = false;
    source.has = 0;
    assert_int_equal(snd_conditions_check(&times, &diff, &err), SONDE_E_STATE);
}

/* A row whose name changed is the one after its predecessor's partner; the first needs none. Others are new. */
static void rows_are_matched_by_their_place(void **state)
{
    static const char *const of_a[] = { "first", "same", "old", "gone" };
    static const char *const of_b[] = { "1st", "same", "new", "more", "else" };
    struct snd_diff_item     items[2][5] = { 0 };
    struct snd_diff_run      runs[2] = { { .items = items[0], .count = 4 },
                                         { .items = items[1], .count = 5 } };
    struct snd_diff_side     a = { 0 }, b = { 0 };

    (void)state;
    for (size_t i = 0; i < 5; i++) {
        items[0][i].key = (struct sonde_text){ i < 4 ? of_a[i] : "", i < 4 ? strlen(of_a[i]) : 0 };
        items[1][i].key = (struct sonde_text){ of_b[i], strlen(of_b[i]) };
        items[0][i].all.count = 3;
        items[1][i].all.count = i == 3 ? 4 : 3; /* called more often: another row */
    }
    assert_true(snd_diff_side_fill(&a, &runs[0], 1) && snd_diff_side_fill(&b, &runs[1], 1));
    assert_true(snd_diff_match(&a, &b, true));
    const uint32_t partners[] = { 1, 2, 3, 0, 0 };
    for (size_t j = 0; j < 5; j++) {
        assert_int_equal(b.lines[j].partner, partners[j]);
        assert_int_equal(b.lines[j].by_place, j == 0 || j == 2);
        if (j < 4)
            assert_int_equal(a.lines[j].partner, partners[j]);
    }
    snd_diff_side_release(&a);
    snd_diff_side_release(&b);

    /* The second after the first's partner, and one after a row that has none. */
    struct snd_diff_item next[2][3] = { 0 };
    const char *const    names[2][3] = { { "same", "old", "last" }, { "same", "new", "end" } };
    for (size_t side = 0; side < 2; side++)
        for (size_t i = 0; i < 3; i++) {
            next[side][i].key = (struct sonde_text){ names[side][i], strlen(names[side][i]) };
            next[side][i].all.count = side == 1 && i == 1 ? 7 : 3;
        }
    for (unsigned same = 0; same < 2; same++) {
        if (same)
            next[1][1].all.count = 3;
        a = b = (struct snd_diff_side){ 0 };
        runs[0] = (struct snd_diff_run){ .items = next[0], .count = 3 };
        runs[1] = (struct snd_diff_run){ .items = next[1], .count = 3 };
        assert_true(snd_diff_side_fill(&a, &runs[0], 1) && snd_diff_side_fill(&b, &runs[1], 1));
        assert_true(snd_diff_match(&a, &b, true));
        assert_int_equal(b.lines[0].partner, 1);
        assert_int_equal(b.lines[1].partner, same ? 2 : 0);
        assert_int_equal(b.lines[2].partner, same ? 3 : 0);
        snd_diff_side_release(&a);
        snd_diff_side_release(&b);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lists_are_parsed),
        cmocka_unit_test(rows_are_matched_by_their_place),
        cmocka_unit_test(times_count_where_they_differ_by_more_than_noise),
        cmocka_unit_test(the_whole_has_a_time),
        cmocka_unit_test(a_limit_needs_what_it_is_about),
        cmocka_unit_test(amounts_count_where_every_run_has_the_change),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
