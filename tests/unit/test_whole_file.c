/* SPDX-License-Identifier: Apache-2.0 */
/* pipe/whole_file.c: files that are replaced completely or not at all. */
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "pipe/whole_file.h"
#include "scratch.h"

static struct sonde_error err;

static void expect_file(const char *path, const char *text)
{
    size_t   size;
    uint8_t *bytes = scratch_load(path, &size);

    bytes[size] = '\0';
    assert_string_equal((char *)bytes, text);
    free(bytes);
}

static int count_files(void)
{
    DIR *dir = opendir(scratch_folder);
    int  count = -2; /* . and .. */

    assert_non_null(dir);
    while (readdir(dir))
        count++;
    closedir(dir);
    return count;
}

static void writes_and_replaces(void **state)
{
    struct stat st;
    const char *path = scratch_path("new");

    (void)state;
    mode_t mask = umask(027);
    assert_int_equal(snd_whole_file_write(path, "one", 3, &err), SONDE_OK);
    umask(mask);
    expect_file(path, "one");
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0640);
    assert_int_equal(chmod(path, 0604), 0);
    assert_int_equal(snd_whole_file_write(path, "another", 7, &err), SONDE_OK);
    expect_file(path, "another");
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0604);
    assert_int_equal(unlink(path), 0);
}

static void follows_a_link(void **state)
{
    struct stat st;

    (void)state;
    scratch_save(scratch_path("target"), "old", 3);
    assert_int_equal(symlink("target", scratch_path("link")), 0);
    assert_int_equal(snd_whole_file_write(scratch_path("link"), "new", 3, &err), SONDE_OK);
    expect_file(scratch_path("target"), "new");
    assert_int_equal(lstat(scratch_path("link"), &st), 0);
    assert_true(S_ISLNK(st.st_mode));
    assert_int_equal(count_files(), 2);
}

/* Also to where no file is yet; the links are relative, one leads to the other. */
static void follows_a_link_to_a_new_file(void **state)
{
    char path[PATH_MAX];

    (void)state;
    int before = count_files();
    assert_int_equal(mkdir(scratch_path("below"), 0700), 0);
    assert_int_equal(symlink("below/second", scratch_path("first")), 0);
    assert_int_equal(symlink("new.yml", scratch_path("below/second")), 0);
    assert_int_equal(snd_whole_file_check(scratch_path("first"), &err), SONDE_OK);
    assert_int_equal(access(scratch_path("below/new.yml"), F_OK), -1);
    assert_int_equal(snd_whole_file_write(scratch_path("first"), "new", 3, &err), SONDE_OK);
    expect_file(scratch_path("below/new.yml"), "new");
    assert_true(readlink(scratch_path("first"), path, sizeof path) > 0);
    assert_int_equal(count_files(), before + 2);
    assert_int_equal(symlink("round", scratch_path("round")), 0);
    assert_int_equal(snd_whole_file_write(scratch_path("round"), "x", 1, &err), SONDE_E_IO);
    assert_int_equal(err.os_error, ELOOP);
}

static void checks_before_it_writes(void **state)
{
    (void)state;
    scratch_save(scratch_path("there"), "old", 3);
    assert_int_equal(snd_whole_file_check(scratch_path("there"), &err), SONDE_OK);
    assert_int_equal(snd_whole_file_check(scratch_path("not-there"), &err), SONDE_OK);
    assert_int_equal(access(scratch_path("not-there"), F_OK), -1);
    expect_file(scratch_path("there"), "old");
    assert_int_equal(snd_whole_file_check("/dev/null", &err), SONDE_OK);
    assert_int_equal(snd_whole_file_check(scratch_path("no/such/folder"), &err), SONDE_E_IO);
    assert_int_equal(err.os_error, ENOENT);
    assert_int_equal(snd_whole_file_check(scratch_folder, &err), SONDE_E_IO);
    assert_int_equal(err.os_error, EISDIR);
    assert_int_equal(snd_whole_file_check(scratch_path("there/x"), &err), SONDE_E_IO);
    assert_int_equal(err.os_error, ENOTDIR);
}

/* A limit on a file's size is a disk that is full: some is written, then nothing more. */
static void loses_nothing_when_the_disk_is_full(void **state)
{
    static char   large[65536];
    struct rlimit old, small;
    const char   *path = scratch_path("kept");

    (void)state;
    memset(large, 'x', sizeof large);
    scratch_save(path, "precious", 8);
    int before = count_files();
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
    small = old;
    small.rlim_cur = 4096;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    enum sonde_status status = snd_whole_file_write(path, large, sizeof large, &err);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
    assert_int_equal(status, SONDE_E_IO);
    assert_int_equal(err.os_error, EFBIG);
    assert_non_null(strstr(err.message, "unchanged"));
    expect_file(path, "precious");
    assert_int_equal(count_files(), before);
}

static void says_what_is_in_the_way(void **state)
{
    (void)state;
    assert_int_equal(snd_whole_file_write(scratch_path("no/such/folder"), "x", 1, &err),
                     SONDE_E_IO);
    assert_int_equal(err.os_error, ENOENT);
    assert_int_equal(snd_whole_file_write(scratch_folder, "x", 1, &err), SONDE_E_IO);
    assert_int_equal(err.os_error, EISDIR);
    if (access("/dev/full", W_OK) == 0) {
        assert_int_equal(snd_whole_file_write("/dev/full", "x", 1, &err), SONDE_E_IO);
        assert_int_equal(err.os_error, ENOSPC);
    }
    assert_int_equal(snd_whole_file_write("/dev/null", "x", 1, &err), SONDE_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(writes_and_replaces),
        cmocka_unit_test(follows_a_link),
        cmocka_unit_test(follows_a_link_to_a_new_file),
        cmocka_unit_test(checks_before_it_writes),
        cmocka_unit_test(loses_nothing_when_the_disk_is_full),
        cmocka_unit_test(says_what_is_in_the_way),
    };
    return cmocka_run_group_tests(tests, NULL, scratch_remove);
}
