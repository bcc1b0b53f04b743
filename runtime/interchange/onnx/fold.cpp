#include "interchange/onnx/fold.hpp"

#include <algorithm>

namespace gpunn::interchange {

namespace {

Folding find_folding(const std::string& op) {
  static const Foldings table = [] {
    Foldings all = movement_foldings();
    all.merge(arithmetic_foldings());
    return all;
  }();
  const auto found = table.find(op);
  return found == table.end() ? nullptr : found->second;
}

}  // namespace

bool all_known(const Call& call) {
  for (std::size_t i = 0; i < call.count(); ++i) {
    if (call.has(i) && !call.input(i).constant) return false;
  }
  return true;
}

Shape strides_of(const Shape& shape) {
  Shape strides(shape.size(), 1);
  for (std::size_t i = shape.size(); i-- > 1;) strides[i - 1] = strides[i] * shape[i];
  return strides;
}

int64_t broadcast_place(int64_t i, const Shape& to, const Shape& from) {
  int64_t place = 0, step = 1;
  for (std::size_t d = 0; d < to.size(); ++d) {
    const int64_t size = to[to.size() - 1 - d], at = i % size;
    i /= size;
    if (d >= from.size()) continue;
    const int64_t own = from[from.size() - 1 - d];
    if (own != 1) place += at * step;
    step *= own;
  }
  return place;
}

Shape broadcast_shape(const Shape& a, const Shape& b) {
  Shape result(std::max(a.size(), b.size()), 1);
  for (const Shape* shape : {&a, &b}) {
    for (std::size_t d = 0; d < shape->size(); ++d) {
      int64_t& size = result[result.size() - 1 - d];
      const int64_t own = (*shape)[shape->size() - 1 - d];
      if (own == 1 || own == size) continue;
      if (size != 1) {
        throw Unsupported("its constants are " + gpunn::to_string(a) + " and " + gpunn::to_string(b) +
                          ", which don't broadcast");
      }
      size = own;
    }
  }
  return result;
}

bool is_folded(const std::string& op) { return find_folding(op) != nullptr; }

bool fold(Call& call) {
  const Folding folding = find_folding(call.node().op);
  return folding != nullptr && folding(call);
}

}  // namespace gpunn::interchange
