/* SPDX-License-Identifier: Apache-2.0 */
/* symbols/names/demangle.c - see demangle.h */
#include <stdlib.h>
#include <string.h>

#include "base/system/open_library.h"
#include "symbols/names/demangle.h"

#define NAME_MOST 16384u /* longer mangled names are shown as they are */
#define CONSTRAINT_TRIES 16
#define TEXT_MOST 60000u /* so are those whose text gets longer than a trace's strings */

/* What compilers add to the name of a part or a copy of a function: foo.cold, foo.constprop.0. */
static size_t ending_of(const char *name)
{
    const char *dot = strchr(name, '.');

    return dot ? (size_t)(dot - name) : strlen(name);
}

/*
 * C++20: what a function requires of its types ends its name, as Q and an expression. libstdc++ up to 16 cannot
 * read those that speak of the parameters of the class; what stands before one is a whole name.
 */
static char *demangle_without_constraint(struct snd_demangler *demangler, char *mangled)
{
    char *text = NULL, *end;

    for (int i = 0; !text && i < CONSTRAINT_TRIES && (end = strrchr(mangled, 'Q')); i++) {
        *end = '\0'; /* or it was a letter of some name */
        text = demangler->cxx(mangled, NULL, NULL, NULL);
    }
    return text;
}

static bool demangle_cxx(struct snd_demangler *demangler, const char *name)
{
    size_t length = ending_of(name);
    char  *mangled = strndup(name, length);
    char  *text = mangled ? demangler->cxx(mangled, NULL, NULL, NULL) : NULL;
    if (mangled && !text)
        text = demangle_without_constraint(demangler, mangled);
    bool ok = text && strlen(text) <= TEXT_MOST;

    if (ok) {
        snd_buf_clear(&demangler->text);
        snd_buf_text(&demangler->text, text);
        if (name[length] != '\0') /* as c++filt writes it */
            snd_buf_format(&demangler->text, " [clone %s]", name + length);
        ok = !demangler->text.failed;
    }
    free(text);
    free(mangled);
    return ok;
}

#if SND_STATIC_PROGRAM
extern char *__cxa_demangle(const char *, char *, size_t *, int *); /* of libsupc++ */

static void look(struct snd_demangler *demangler)
{
    demangler->cxx = __cxa_demangle;
    demangler->looked = true;
}
#else
/* Never closed: it may be the program's own. */
static void look(struct snd_demangler *demangler)
{
    void *library = snd_open_library("libstdc++.so.6");
    void *function = library ? dlsym(library, "__cxa_demangle") : NULL;

    memcpy(&demangler->cxx, &function, sizeof function);
    demangler->looked = true;
}
#endif

const char *snd_demangle(struct snd_demangler *demangler, const char *name)
{
    if (name[0] != '_' || strnlen(name, NAME_MOST) == NAME_MOST)
        return name;
    if (snd_rust_demangle(name, &demangler->text) && demangler->text.length <= TEXT_MOST)
        return snd_buf_string(&demangler->text);
    if (name[1] != 'Z')
        return name;
    if (!demangler->looked)
        look(demangler);
    if (demangler->cxx && demangle_cxx(demangler, name))
        return snd_buf_string(&demangler->text);
    return name;
}

void snd_demangler_release(struct snd_demangler *demangler)
{
    sonde_buffer_release(&demangler->text);
    *demangler = (struct snd_demangler){ 0 };
}
