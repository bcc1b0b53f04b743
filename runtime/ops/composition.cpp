#include "ops/composition.hpp"

namespace gpunn::ops {

ValueId Composition::by_channel(ValueId numbers, ValueId x) {
  Shape like(rank(x) - 1, 1);
  like[0] = shape(x)[1];
  return view(numbers, like);
}

ValueId Composition::by_row(ValueId numbers, ValueId x) {
  Shape like(rank(x), 1);
  like[0] = shape(x)[0];
  return view(numbers, like);
}

ValueId Composition::row_sum(ValueId x) { return sum(x, all(x) & ~1U, false); }
ValueId Composition::row_mean(ValueId x) { return mean(x, all(x) & ~1U, false); }
ValueId Composition::channel_sum(ValueId x) { return sum(x, all(x) & ~2U, false); }

double Composition::row_size(ValueId x) const {
  double size = 1;
  for (std::size_t i = 1; i < rank(x); ++i) size *= static_cast<double>(shape(x)[i]);
  return size;
}

}  // namespace gpunn::ops
