#include <gpunn/ops.h>

#include "conformance/oracle/call.hpp"

namespace gpunn::conformance {

namespace {

using Position = std::vector<int64_t>;

// Calls visit(position, index) for every element, in row-major order.
template <class Visit>
void for_each_element(const Shape& shape, Visit visit) {
  const int64_t count = element_count(shape);
  for (int64_t index = 0; index < count; ++index) {
    Position position(shape.size());
    int64_t rest = index;
    for (std::size_t i = shape.size(); i-- > 0;) {
      position[i] = rest % shape[i];
      rest /= shape[i];
    }
    visit(position, at(index));
  }
}

std::size_t index_of(const Position& position, const Shape& shape) {
  int64_t index = 0;
  for (std::size_t i = 0; i < shape.size(); ++i) index = index * shape[i] + position[i];
  return at(index);
}

void pad(OracleCall& call) {
  const auto attrs = call.attrs<gpunn_pad_attrs>();
  Values& y = call.out();
  y.assign(y.size(), 0);
  for_each_element(call.in_type(0).shape, [&](Position position, std::size_t from) {
    for (std::size_t i = 0; i < position.size(); ++i) position[i] += attrs.before[i];
    y.at(index_of(position, call.out_type().shape)) = call.in(0)[from];
  });
}

void slice(OracleCall& call) {
  const auto attrs = call.attrs<gpunn_slice_attrs>();
  for_each_element(call.out_type().shape, [&](Position position, std::size_t to) {
    for (std::size_t i = 0; i < position.size(); ++i) position[i] += attrs.start[i];
    call.out()[to] = call.in(0).at(index_of(position, call.in_type(0).shape));
  });
}

void concat(OracleCall& call) {
  const auto axis = at(call.attrs<gpunn_concat_attrs>().axis);
  int64_t start = 0;
  for (std::size_t part = 0; part < call.inputs(); ++part) {
    for_each_element(call.in_type(part).shape, [&](Position position, std::size_t from) {
      position[axis] += start;
      call.out().at(index_of(position, call.out_type().shape)) = call.in(part)[from];
    });
    start += call.in_dim(part, axis);
  }
  call.require(start == call.out_dim(0, axis), "y as long as all inputs together");
}

void transpose(OracleCall& call) {
  const auto attrs = call.attrs<gpunn_transpose_attrs>();
  for_each_element(call.out_type().shape, [&](const Position& position, std::size_t to) {
    Position from(position.size());
    for (std::size_t i = 0; i < position.size(); ++i) from.at(at(attrs.permutation[i])) = position[i];
    call.out()[to] = call.in(0).at(index_of(from, call.in_type(0).shape));
  });
}

}  // namespace

std::vector<OracleEntry> shape_oracle() {
  return {{GPUNN_OP_PAD, pad}, {GPUNN_OP_SLICE, slice}, {GPUNN_OP_CONCAT, concat}, {GPUNN_OP_TRANSPOSE, transpose}};
}

}  // namespace gpunn::conformance
