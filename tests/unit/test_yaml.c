/* SPDX-License-Identifier: Apache-2.0 */
/* pipe/yaml/yaml_read.c, yaml_write.c and the tree of node.c. */
#include <errno.h>
#include <fcntl.h>

#include "base/text/buf.h"
#include "pipe/yaml/yaml.h"
#include "scratch.h"
#include "snd_config.h"

static struct sonde_error err;

static int skip_without_yaml(void **state)
{
    (void)state;
    if (!snd_yaml_works())
        skip();
    return 0;
}

static enum sonde_status parse(struct snd_document *doc, const char *text)
{
    *doc = (struct snd_document)SND_DOCUMENT_INIT;
    return snd_yaml_parse(doc, "x.yml", text, strlen(text), &err);
}

static void expect_same(const char *from, const char *to)
{
    struct snd_document doc;
    struct sonde_buffer text = { 0 };

    if (parse(&doc, from) != SONDE_OK || snd_yaml_write(&doc, &text, &err) != SONDE_OK)
        fail_msg("%s: %s", from, err.message);
    assert_string_equal(snd_buf_string(&text), to);
    sonde_buffer_release(&text);
    snd_document_release(&doc);
}

static void expect_refused(const char *from, enum sonde_status status, const char *message)
{
    struct snd_document doc;

    assert_int_equal(parse(&doc, from), status);
    assert_string_equal(err.message, message);
    snd_document_release(&doc);
}

/* What PyYAML's safe_dump(safe_load(..), default_flow_style=None) gives. */
static void writes_as_pyyaml(void **state)
{
    skip_without_yaml(state);
    expect_same("b: 1\na: [x, {k: v}]\n", "a:\n- x\n- {k: v}\nb: 1\n");
    expect_same("{}", "{}\n");
    expect_same("a:\nb: ~\nc: []\nd: {}\n", "a: null\nb: null\nc: []\nd: {}\n");
}

static void sorts_keys_of_one_kind(void **state)
{
    skip_without_yaml(state);
    expect_same("z: 1\nB: 2\na: 3\n", "{B: 2, a: 3, z: 1}\n");
    expect_same("10: a\n9: b\n", "{9: b, 10: a}\n");
    expect_same("b: 1\n2: 1\na: 1\n", "{b: 1, 2: 1, a: 1}\n"); /* cannot be compared: as it is */
}

static void keeps_what_it_read(void **state)
{
    skip_without_yaml(state);
    expect_same("[0x10, 1_000, 1.50, 010, yes, 2024-01-31, .inf]\n",
                "[0x10, 1_000, 1.50, 010, yes, 2024-01-31, .inf]\n");
    expect_same("[1:30, 1:30.5, 2024-1-3 4:05:06Z]\n",
                "[!!int '1:30', !!float '1:30.5', !!timestamp '2024-1-3 4:05:06Z']\n");
    expect_same("- [[]]\n- 1:30\n", "- - []\n- 1:30\n");
    expect_same("['10', \"yes\", '1e-05', 'a: b', '', ' x', '=', '~']\n",
                "['10', 'yes', 1e-05, 'a: b', '', ' x', '=', '~']\n");
    expect_same("[!!str 10, !!float 1.5, !!int 3]\n", "['10', 1.5, 3]\n");
    expect_same("a: \"two\\nlines\\tand a tab\"\n", "{a: \"two\\nlines\\tand a tab\"}\n");
    expect_same("a: \"\\u00e9\"\n", "{a: \"\\xE9\"}\n");
    expect_same("a: &x [1, 2]\nb: *x\n", "a: [1, 2]\nb: [1, 2]\n");
}

static void reads_nothing_as_null(void **state)
{
    static const char *const empty[] = { "", "\n", "# only words\n", "---\n", "--- ~\n" };

    skip_without_yaml(state);
    for (size_t i = 0; i < sizeof empty / sizeof empty[0]; i++) {
        struct snd_document doc;
        assert_int_equal(parse(&doc, empty[i]), SONDE_OK);
        assert_int_equal(doc.root->kind, SND_NODE_NULL);
        snd_document_release(&doc);
    }
}

static void refuses_with_the_line(void **state)
{
    skip_without_yaml(state);
    expect_refused("a: 1\nb: 2\na: 3\n", SONDE_E_FORMAT, "x.yml, lines 1 and 3: duplicate key 'a'");
    expect_refused("{~: 1, null: 2}\n", SONDE_E_FORMAT,
                   "x.yml, lines 1 and 1: duplicate key 'null'");
    expect_refused("16: 1\n0x10: 2\n", SONDE_E_FORMAT,
                   "x.yml, lines 1 and 2: duplicate key '0x10'");
    expect_refused("a: 1\n---\nb: 1\n", SONDE_E_FORMAT,
                   "x.yml, line 2: expected one YAML document, got a second");
    expect_refused("? [1, 2]\n: 3\n", SONDE_E_FORMAT,
                   "x.yml, line 1: a list or a map cannot be a key");
    expect_refused("a: &x\n  b: *x\n", SONDE_E_FORMAT,
                   "x.yml, line 2: an alias refers to a node that contains it");
    expect_refused("a: *x\n", SONDE_E_FORMAT, "x.yml, line 1: an alias to an undefined anchor");
    expect_refused("a: &x {b: 1}\nc:\n  <<: *x\n", SONDE_E_FORMAT,
                   "x.yml, line 3: merge keys (<<) are not supported; write the entries out");
    expect_refused("a: !!python/tuple [1]\n", SONDE_E_FORMAT,
                   "x.yml, line 1: unsupported YAML tag 'tag:yaml.org,2002:python/tuple'");
    expect_refused("a: !!int x\n", SONDE_E_FORMAT,
                   "x.yml, line 1: unsupported YAML tag 'tag:yaml.org,2002:int'");
    expect_refused("a: [1, 2\nb: 3\n", SONDE_E_FORMAT,
                   "x.yml, line 2: not YAML: did not find expected ',' or ']'");
    expect_refused("a: \x01\n", SONDE_E_FORMAT,
                   "x.yml, byte 3: control characters are not allowed: not YAML text");
}

static void bounds_the_depth(void **state)
{
    char deep[2 * SND_YAML_DEPTH_MAX + 8];

    skip_without_yaml(state);
    memset(deep, '[', SND_YAML_DEPTH_MAX);
    memset(deep + SND_YAML_DEPTH_MAX, ']', SND_YAML_DEPTH_MAX);
    deep[2 * SND_YAML_DEPTH_MAX] = '\0';
    struct snd_document doc;
    assert_int_equal(parse(&doc, deep), SONDE_OK);
    snd_document_release(&doc);
    memset(deep, '[', sizeof deep - 1);
    deep[sizeof deep - 1] = '\0';
    expect_refused(deep, SONDE_E_LIMIT, "x.yml, line 1: nested deeper than 64");
}

/* Nine lines that stand for 10^9 entries. */
static void bounds_what_aliases_unfold_to(void **state)
{
    struct sonde_buffer text = { 0 };
    struct snd_document doc;

    skip_without_yaml(state);
    snd_buf_text(&text, "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
    for (int i = 1; i < 10; i++) {
        snd_buf_format(&text, "a%d: &a%d [", i, i);
        for (int k = 0; k < 10; k++)
            snd_buf_format(&text, "%s*a%d", k ? ", " : "", i - 1);
        snd_buf_text(&text, "]\n");
    }
    assert_int_equal(parse(&doc, text.bytes), SONDE_E_LIMIT);
    assert_non_null(strstr(err.message, "with aliases expanded"));
    snd_document_release(&doc);
    sonde_buffer_release(&text);
}

static void bounds_the_anchors(void **state)
{
    struct sonde_buffer text = { 0 };
    struct snd_document doc;

    skip_without_yaml(state);
    for (unsigned i = 0; i < SND_YAML_ANCHORS_MAX; i++)
        snd_buf_format(&text, "- &a%u x\n", i);
    assert_int_equal(parse(&doc, text.bytes), SONDE_OK);
    snd_document_release(&doc);
    snd_buf_text(&text, "- &more x\n");
    assert_int_equal(parse(&doc, text.bytes), SONDE_E_LIMIT);
    assert_string_equal(err.message, "x.yml, line 4097: more than 4096 anchors");
    snd_document_release(&doc);
    sonde_buffer_release(&text);
}

static void builds_a_tree(void **state)
{
    struct snd_document doc = SND_DOCUMENT_INIT;
    struct sonde_buffer text = { 0 };
    int64_t             shape[] = { 197, 768 };

    skip_without_yaml(state);
    doc.root = snd_node_map(&doc);
    snd_node_set(&doc, doc.root, "shape", snd_node_ints(&doc, shape, 2));
    snd_node_set(&doc, doc.root, "time", snd_node_real(&doc, 1e-5));
    snd_node_set(&doc, doc.root, "time", snd_node_real(&doc, 2e-5));
    snd_node_set(&doc, doc.root, "name", snd_node_text(&doc, "on"));
    snd_node_set(&doc, doc.root, "good", snd_node_plain(&doc, "true", 4));
    snd_node_set(&doc, doc.root, "none", snd_node_null(&doc));
    snd_node_set(&doc, doc.root, "copy", snd_node_copy(&doc, snd_node_get(doc.root, "shape")));
    assert_true(snd_node_equal(snd_node_get(doc.root, "copy"), snd_node_get(doc.root, "shape")));
    assert_null(snd_node_get(doc.root, "nothing"));
    assert_null(snd_node_get(snd_node_get(doc.root, "shape"), "x"));
    assert_int_equal(snd_yaml_write(&doc, &text, &err), SONDE_OK);
    assert_string_equal(text.bytes, "copy: [197, 768]\ngood: true\nname: 'on'\nnone: null\n"
                                    "shape: [197, 768]\ntime: 2.0e-05\n");
    sonde_buffer_release(&text);
    snd_document_release(&doc);
}

static void compares_as_python(void **state)
{
    struct snd_document doc = SND_DOCUMENT_INIT;

    (void)state;
    assert_true(snd_node_equal(snd_node_int(&doc, 1), snd_node_real(&doc, 1)));
    assert_false(snd_node_equal(snd_node_int(&doc, 1), snd_node_text(&doc, "1")));
    assert_true(snd_node_equal(snd_node_plain(&doc, "yes", 3), snd_node_plain(&doc, "true", 4)));
    assert_true(snd_node_equal(snd_node_plain(&doc, "0x10", 4), snd_node_int(&doc, 16)));
    assert_false(snd_node_equal(snd_node_list(&doc), snd_node_map(&doc)));
    snd_document_release(&doc);
}

static void loads_maps(void **state)
{
    struct snd_document doc = SND_DOCUMENT_INIT;

    skip_without_yaml(state);
    assert_int_equal(snd_yaml_load_map(&doc, scratch_path("none.yml"), false, &err), SONDE_E_IO);
    assert_int_equal(err.os_error, ENOENT);
    assert_int_equal(snd_yaml_load_map(&doc, scratch_path("none.yml"), true, &err), SONDE_OK);
    assert_int_equal(doc.root->kind, SND_NODE_MAP);
    snd_document_release(&doc);
    scratch_save(scratch_path("list.yml"), "[1]\n", 4);
    assert_int_equal(snd_yaml_load_map(&doc, scratch_path("list.yml"), true, &err), SONDE_E_FORMAT);
    assert_non_null(strstr(err.message, "expected a map, got a list"));
    snd_document_release(&doc);
    assert_int_equal(snd_yaml_load_map(&doc, scratch_folder, true, &err), SONDE_E_IO);
    snd_document_release(&doc);
}

#if !SND_HAVE_YAML
static void says_when_it_cannot(void **state)
{
    struct snd_document doc = SND_DOCUMENT_INIT;

    (void)state;
    assert_false(snd_yaml_works());
    assert_int_equal(snd_yaml_parse(&doc, "x.yml", "a: 1", 4, &err), SONDE_E_UNSUPPORTED);
    assert_non_null(strstr(err.message, "lacks libyaml"));
    assert_int_equal(snd_yaml_save(&doc, scratch_path("x.yml"), &err), SONDE_E_UNSUPPORTED);
    assert_int_equal(access(scratch_path("x.yml"), F_OK), -1);
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(writes_as_pyyaml),
        cmocka_unit_test(sorts_keys_of_one_kind),
        cmocka_unit_test(keeps_what_it_read),
        cmocka_unit_test(reads_nothing_as_null),
        cmocka_unit_test(refuses_with_the_line),
        cmocka_unit_test(bounds_the_depth),
        cmocka_unit_test(bounds_what_aliases_unfold_to),
        cmocka_unit_test(bounds_the_anchors),
        cmocka_unit_test(builds_a_tree),
        cmocka_unit_test(compares_as_python),
        cmocka_unit_test(loads_maps),
#if !SND_HAVE_YAML
        cmocka_unit_test(says_when_it_cannot),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, scratch_remove);
}
