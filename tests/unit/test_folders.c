/* SPDX-License-Identifier: Apache-2.0 */
/* base/files/folders.c: temporary folders, and the end of a folder with all in it. */
#include "base/files/folders.h"

#include <errno.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include "scratch.h"

static void make_in(const char *place, const char *expected)
{
    struct sonde_buffer path = { 0 };
    struct stat         made;

    assert_int_equal(place ? setenv("TMPDIR", place, 1) : unsetenv("TMPDIR"), 0);
    assert_true(snd_folder_scratch("sonde-test", &path));
    assert_int_equal(strncmp(path.bytes, expected, strlen(expected)), 0);
    assert_int_equal(strncmp(path.bytes + strlen(expected), "/sonde-test-", 12), 0);
    assert_int_equal(lstat(path.bytes, &made), 0);
    assert_int_equal(made.st_mode & 07777, 0700);
    snd_folder_remove(path.bytes);
    assert_int_equal(lstat(path.bytes, &made), -1);
    sonde_buffer_release(&path);
}

/* In the first place that can be used; a relative one is none: the folder is another's later on. */
static void the_first_place_that_can_be_used(void **state)
{
    char own[PATH_MAX];

    (void)state;
    snprintf(own, sizeof own, "%s", scratch_path("own"));
    assert_int_equal(mkdir(own, 0755), 0);
    make_in(own, own);
    make_in(NULL, "/tmp");
    make_in("", "/tmp");
    make_in(".", "/tmp");
    make_in("/does/not/exist", "/tmp");
    assert_int_equal(rmdir(own), 0);
}

/* What a link in it leads to stays. */
static void all_in_it_goes(void **state)
{
    static const char *const folders[] = { "", "/a", "/a/b", "/c" }, *const files[] = {
        "/x", "/a/x", "/a/b/.hidden", "/c/y"
    };
    char        root[PATH_MAX], path[PATH_MAX + 16], kept[PATH_MAX];
    struct stat seen;

    (void)state;
    snprintf(root, sizeof root, "%s", scratch_path("tree"));
    snprintf(kept, sizeof kept, "%s", scratch_path("kept"));
    assert_int_equal(mkdir(kept, 0755), 0);
    for (size_t i = 0; i < sizeof folders / sizeof folders[0]; i++) {
        snprintf(path, sizeof path, "%s%s", root, folders[i]);
        assert_int_equal(mkdir(path, 0755), 0);
    }
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        snprintf(path, sizeof path, "%s%s", root, files[i]);
        FILE *file = fopen(path, "w");
        assert_non_null(file);
        fclose(file);
    }
    snprintf(path, sizeof path, "%s/a/link", root);
    assert_int_equal(symlink(kept, path), 0);
    snd_folder_remove(root);
    assert_int_equal(lstat(root, &seen), -1);
    assert_int_equal(errno, ENOENT);
    assert_int_equal(rmdir(kept), 0);
    snd_folder_remove(root); /* nothing is there: nothing happens */
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(the_first_place_that_can_be_used),
                                        cmocka_unit_test(all_in_it_goes) };

    return cmocka_run_group_tests(tests, NULL, scratch_remove);
}
