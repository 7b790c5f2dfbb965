/* SPDX-License-Identifier: Apache-2.0 */
/* view/source/native_names.c: a demangled name without the types that a function takes and gives. */
#include "view/source/native_names.h"

#include "scratch.h"

static void names_lose_their_types(void **state)
{
    static const char *const names[][2] = {
        { "a::f(int)", "a::f" },
        { "f()", "f" },
        { "a::f(int (*)(char), b<c>) const", "a::f" },
        { "a::f(int) const volatile &", "a::f" },
        { "a::f(int) &&", "a::f" },
        { "a::f(int) const noexcept [clone .isra.0] [clone .cold]", "a::f" },
        /* templates alone have a return type */
        { "void a::f<int>(int) const", "a::f<int>" },
        { "std::vector<int, std::allocator<int> > a::f<b c>(int)", "a::f<b c>" },
        { "decltype(auto) g<int>(int)", "g<int>" },
        { "void (anonymous namespace)::f<int>(int)", "(anonymous namespace)::f<int>" },
        { "void a::{lambda(int)#1}::f<int>(int)", "a::{lambda(int)#1}::f<int>" },
        { "f<int>(int)", "f<int>" },
        { "non-virtual thunk to a::f(int)", "non-virtual thunk to a::f" },
        { "(anonymous namespace)::f(int)", "(anonymous namespace)::f" },
        /* brackets of operators are not in pairs */
        { "bool operator< <int>(a<int> const&, a<int> const&)", "bool operator< <int>" },
        { "a::operator()(int) const", "a::operator()" },
        { "operator new(unsigned long)", "operator new" },
        { "a::operator bool() const", "a::operator bool" },
        /* no functions' names, or none that these rules fit */
        { "main", "main" },
        { "", "" },
        { "()", "()" },
        { "unpaired)", "unpaired)" },
        { "(unpaired", "(unpaired" },
        { "a::(b)", "a::(b)" },
        { "main.(*T)", "main.(*T)" },
        { "f (x)", "f (x)" },
        { "<(x)", "<(x)" },
        { "x operator(int)", "x operator(int)" },
        { "a>b<c>(int)", "a>b<c>" },
        { "(bc<d>(int)", "(bc<d>" },
    };

    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        struct sonde_text short_name =
            snd_native_name((struct sonde_text){ names[i][0], strlen(names[i][0]) });
        if (!text_is(short_name, names[i][1]))
            fail_msg("%s: %.*s", names[i][0], (int)short_name.length, short_name.bytes);
    }
}

/* What is before an empty name is not looked at. */
static void an_empty_name_has_nothing_before_it(void **state)
{
    char             *bytes = malloc(1);
    struct sonde_text name = { bytes, 0 };

    (void)state;
    assert_non_null(bytes);
    struct sonde_text short_name = snd_native_name(name);
    assert_ptr_equal(short_name.bytes, name.bytes);
    assert_int_equal(short_name.length, 0);
    free(bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_lose_their_types),
        cmocka_unit_test(an_empty_name_has_nothing_before_it),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
