/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz/seeds/dwarf/inlined.c - a small program whose DWARF has inlined functions, types and lines. */
struct pair {
    int           left;
    struct pair  *next;
    unsigned char bytes[7];
};

static inline int twice(int value)
{
    return value * 2 + (value >> 3);
}

static inline int sum(const struct pair *at)
{
    int all = 0;

    for (; at; at = at->next)
        all += twice(at->left) + at->bytes[all & 3];
    return all;
}

int main(int count, char **arguments)
{
    struct pair last = { count, 0, { 1, 2, 3 } }, first = { (int)(arguments[0][0]), &last, { 4 } };

    return sum(&first) + sum(&last);
}
