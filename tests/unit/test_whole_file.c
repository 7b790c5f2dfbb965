/* SPDX-License-Identifier: Apache-2.0 */
#include <dirent.h>
#include <errno.h>
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
    assert_non_null(strstr(err.message, "left as it was"));
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
        cmocka_unit_test(loses_nothing_when_the_disk_is_full),
        cmocka_unit_test(says_what_is_in_the_way),
    };
    return cmocka_run_group_tests(tests, NULL, scratch_remove);
}
