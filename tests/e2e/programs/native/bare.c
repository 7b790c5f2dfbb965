/* SPDX-License-Identifier: Apache-2.0 */
/* bare - a program with frame pointers and no unwind table at all, as some linkers leave it: x86-64, without a C library. */
__asm__(".globl _start\n"
        "_start: xor %ebp, %ebp\n" /* the outermost frame */
        "call outer\n"
        "mov %eax, %edi\n"
        "mov $60, %eax\n" /* exit */
        "syscall\n");

__attribute__((noinline)) static unsigned inner(unsigned n)
{
    __asm__ volatile("" ::"r"(__builtin_frame_address(0))); /* so that it has a frame */
    for (unsigned i = 0; i < 1000000; i++)
        __asm__ volatile("imul $31, %0, %0" : "+r"(n));
    return n;
}

__attribute__((used, noinline)) static unsigned outer(void)
{
    unsigned n = 1;

    for (unsigned i = 0; i < 300; i++)
        n += inner(n);
    return n & 0;
}
