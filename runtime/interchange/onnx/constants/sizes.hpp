// Arithmetic on integers, each of which can be a multiple of the size of the batch, and on floats. An integer wraps in
// the width of its type. Throws Unsupported for a result that is neither a number nor a multiple of the batch.
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

// Gives the orders that two integers can have for batches of any number of rows, as bits of Order.
enum Order : unsigned { kLess = 1, kEqual = 2, kGreater = 4 };
unsigned orders_of(Element element, Size a, Size b);
// Tells whether all these orders are wanted ones. Throws Unsupported where some are and some are not.
bool is_in_order(unsigned orders, unsigned wanted);

}  // namespace gpunn::interchange::constants
