// Arithmetic on numbers. An integer has the width of its type, and of which can be a multiple of the size of the batch.
// The results wrap as their type does. Unsupported is thrown for a result that is neither a number nor such a multiple.
#pragma once

#include "interchange/onnx/constants/number_format.hpp"

namespace gpunn::interchange::constants {

Size add_sizes(Element element, Size a, Size b);
Size subtract_sizes(Element element, Size a, Size b);
Size multiply_sizes(Element element, Size a, Size b);
Size divide_sizes(Element element, Size a, Size b);     // towards 0
Size modulo_sizes(Element element, Size a, Size b);     // with the sign of the divisor
Size remainder_sizes(Element element, Size a, Size b);  // with the sign of the dividend
Size power_of_sizes(Element element, Size a, Size b);
Size larger_size(Element element, Size a, Size b);
Size smaller_size(Element element, Size a, Size b);
Size absolute_size(Element element, Size a);

using SizeFunction = Size (*)(Element, Size, Size);

// The same for floats. NaN stays NaN.
double larger_float(double a, double b);
double smaller_float(double a, double b);

using FloatFunction = double (*)(double, double);

// How two integers can compare, whatever the number of rows of a batch is: bits of Order.
enum Order : unsigned { kLess = 1, kEqual = 2, kGreater = 4 };
unsigned orders_of(Element element, Size a, Size b);
// Whether a comparison that these orders fulfil is true. Throws Unsupported where that depends on the batch.
bool is_in_order(unsigned orders, unsigned wanted);

}  // namespace gpunn::interchange::constants
