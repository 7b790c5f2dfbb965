// SPDX-License-Identifier: Apache-2.0
// C++: exceptions thrown over several frames, virtual calls, inlined functions, templates of the library.
#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

extern "C" {
#include "parts.h"
}

struct shape {
    virtual ~shape() = default;
    virtual double area(long steps) const = 0;
};
struct square : shape {
    PART double area(long steps) const override
    {
        burn(steps);
        sink = sink + 1;
        return 1;
    }
};
struct circle : shape {
    PART double area(long steps) const override
    {
        burn(2 * steps);
        sink = sink + 1;
        return 2;
    }
};

PART static void thrower(int depth)
{
    std::string text(40, 'x'); // something to destroy on the way
    if (depth > 0)
        thrower(depth - 1);
    else
        throw std::runtime_error(text);
    sink = sink + text.size();
}

PART static void exceptions(double seconds)
{
    for (double end = cpu_now() + seconds; cpu_now() < end;)
        try {
            thrower(10);
        } catch (const std::exception &e) {
            sink = sink + 1;
        }
}

PART static void library(double seconds)
{
    std::function<long(long)> less = [](long x) { return x * 3; };
    for (double end = cpu_now() + seconds; cpu_now() < end;) {
        std::map<std::string, long> words;
        std::vector<long>           numbers;
        for (long i = 0; i < 500; i++) {
            words[std::to_string(i * 7919 % 500)] += less(i);
            numbers.push_back(i * 7919 % 1000);
        }
        std::sort(numbers.begin(), numbers.end(), [](long a, long b) { return a > b; });
        sink = sink + words.size() + (unsigned long)numbers[3];
    }
}

int main()
{
    long                                steps = steps_a_second() / 20;
    std::vector<std::unique_ptr<shape>> shapes;

    shapes.emplace_back(new square);
    shapes.emplace_back(new circle);
    double sum = 0;
    for (auto &s : shapes)
        sum += s->area(steps);
    exceptions(0.2);
    library(0.2);
    return sum > 2 ? 7 : 1;
}
