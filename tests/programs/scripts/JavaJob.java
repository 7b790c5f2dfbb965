// SPDX-License-Identifier: Apache-2.0
// Java: compiled at run time; threads, and collections of garbage.
import java.util.stream.IntStream;

public class JavaJob {
    static long collatz(long n) {
        long steps = 0;
        for (; n != 1; steps++)
            n = n % 2 == 0 ? n / 2 : 3 * n + 1;
        return steps;
    }

    public static void main(String[] words) {
        long most = IntStream.range(1, 400000).parallel().mapToLong(JavaJob::collatz).max().getAsLong();
        StringBuilder text = new StringBuilder();
        for (int i = 0; i < 200000; i++)
            text.append(Integer.toString(i % 7));
        System.out.println(most + " " + text.length());
        System.exit(4);
    }
}
