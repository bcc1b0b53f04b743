// Computes operators whose inputs are known, with ONNX's types and ranks.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "interchange/onnx/constants/number_format.hpp"
#include "interchange/onnx/elements.hpp"
#include "interchange/onnx/fold.hpp"
#include "interchange/onnx/importer.hpp"

namespace gpunn::interchange::constants {

// These tell whether all inputs that are there are constants, whether the first one is, and that no input has to be.
bool all_known(const Call& call);
bool first_known(const Call& call);
bool always_known(const Call& call);

// An operator from the opset on that first has it. `evaluate` gives its outputs. It throws Unsupported for inputs and
// attributes that ONNX does not allow, and for what can't be computed.
struct EvaluatorRow {
  std::string_view op;
  int64_t since;
  void (*evaluate)(Call&);
  bool (*is_known)(const Call&) = all_known;
};

// Each family has its own file.
std::vector<EvaluatorRow> arithmetic_evaluators();     // of two values or more, element by element
std::vector<EvaluatorRow> cast_evaluators();           // another type
std::vector<EvaluatorRow> convolution_evaluators();    // weighted sums of neighbours
std::vector<EvaluatorRow> function_evaluators();       // of one value
std::vector<EvaluatorRow> generation_evaluators();     // values out of attributes and shapes
std::vector<EvaluatorRow> indexing_evaluators();       // elements at places that a constant names
std::vector<EvaluatorRow> movement_evaluators();       // the same elements in another order or shape
std::vector<EvaluatorRow> normalization_evaluators();  // by means and norms
std::vector<EvaluatorRow> pooling_evaluators();        // largest, means and norms of neighbours
std::vector<EvaluatorRow> product_evaluators();        // of matrices
std::vector<EvaluatorRow> quantization_evaluators();   // integers with scales
std::vector<EvaluatorRow> reduction_evaluators();      // over dimensions
std::vector<EvaluatorRow> resizing_evaluators();       // of another size
std::vector<EvaluatorRow> scan_evaluators();           // along a dimension: sums so far, the order of elements
std::vector<EvaluatorRow> shaping_evaluators();        // another shape for the same elements

// These throw Unsupported for a constant of another type.
void require_floating(const Constant& constant);  // of 16 bits or more, in which ONNX computes
void require_integers(const Constant& constant);  // not bool
void require_truths(const Constant& constant);
void require_numbers(const Constant& constant);  // floats of 16 bits or more, or integers
void require_same_type(const Constant& a, const Constant& b);

// Gives all elements as numbers. Throws Unsupported where one depends on the size of the batch.
std::vector<double> numbers_of(const Constant& constant);
std::vector<int64_t> integers_of(const Constant& constant);

// Rounds each number to the type.
Constant rounded_constant(Element element, Shape shape, std::vector<double> values);
Constant truths_constant(Shape shape, const std::vector<bool>& values);
// Makes int64 numbers.
Constant places_constant(Shape shape, const std::vector<int64_t>& values);

// A shape that a constant is given, of which one dimension may be the batch: as many equal parts as it has rows are
// kept as one.
struct GivenShape {
  Shape sizes;
  std::optional<std::size_t> batch;
};
GivenShape given_shape(const Call& call, std::size_t input);
// Gives a constant of such a shape.
void give_rows(Call& call, Constant constant, const GivenShape& given);

// Gives each number as one of another type, as Cast does.
Constant cast_constant(const Constant& from, Element to, bool saturates = true, const std::string& round_mode = "up");

// The dimensions are an attribute in earlier opsets, and an input in later ones.
std::vector<int64_t> axes_of(Call& call, std::size_t input);
// Counts negative dimensions from the end. Throws Unsupported for one that is not there, or there twice.
std::vector<std::size_t> sound_axes(const Call& call, const std::vector<int64_t>& axes, std::size_t rank);

// Throws Unsupported where an operator takes more multiplications than a constant of a network is worth: a few bytes of
// a file can ask for any number of them.
void take_work(Call& call, const std::vector<int64_t>& factors);

// Walks the elements of a shape in order and keeps the place of each in N tensors with these steps per dimension.
template <std::size_t N>
class Walk {
 public:
  Walk(Shape shape, std::array<Shape, N> steps, std::array<int64_t, N> starts = {})
      : shape_(std::move(shape)), steps_(std::move(steps)), at_(shape_.size(), 0), places_(starts) {}

  std::size_t place(std::size_t tensor) const { return static_cast<std::size_t>(places_[tensor]); }
  const Shape& at() const { return at_; }

  void next() {
    for (std::size_t d = shape_.size(); d-- > 0;) {
      for (std::size_t n = 0; n < N; ++n) places_[n] += steps_[n][d];
      if (++at_[d] < shape_[d]) return;
      for (std::size_t n = 0; n < N; ++n) places_[n] -= steps_[n][d] * shape_[d];
      at_[d] = 0;
    }
  }

 private:
  Shape shape_;
  std::array<Shape, N> steps_;
  Shape at_;
  std::array<int64_t, N> places_;
};

// Gives the steps per dimension in a tensor `from` that is broadcast to `to`. They are 0 where it is repeated.
Shape broadcast_steps(const Shape& from, const Shape& to);

// Names an element of one of several constants.
struct Origin {
  std::size_t source = 0;
  int64_t index = 0;
};

// Makes a constant of this shape whose element i is that of from(i), which is called in order. The sources have one
// type. All operators that move elements are such a function, so they work for any type.
template <class From>
Constant assembled(Call& call, const std::vector<const Constant*>& sources, Shape shape, From from) {
  const Element element = sources.front()->element;
  bool trained = false;
  for (const Constant* source : sources) {
    require_same_type(*sources.front(), *source);
    trained = trained || source->trained;
  }
  const auto count = static_cast<std::size_t>(call.importer().take_room(shape));
  const auto collect = [&](auto& values, const auto& element_of) {
    values.reserve(count);
    for (std::size_t i = 0; i < count; ++i) {
      const Origin origin = from(static_cast<int64_t>(i));
      const Constant& source = *sources[origin.source];
      const auto index = static_cast<std::size_t>(origin.index);
      if (index >= source.count()) throw Unsupported("reads an element that is not there");
      values.push_back(element_of(source, index));
    }
  };
  Constant result;
  if (!is_floating(element)) {
    std::vector<Size> values;
    collect(values, [](const Constant& source, std::size_t index) { return source.integers[index]; });
    result = integers_constant(element, std::move(shape), std::move(values));
  } else if (element == Element::f64) {
    std::vector<double> values;
    collect(values, [](const Constant& source, std::size_t index) { return (*source.doubles)[index]; });
    result = numbers_constant(element, std::move(shape), std::move(values));
  } else {
    std::vector<float> values;
    collect(values, [](const Constant& source, std::size_t index) { return (*source.floats)[index]; });
    result = floats_constant(std::move(shape), std::move(values));
    result.element = element;
  }
  result.trained = trained;
  return result;
}

// Makes it out of one constant.
template <class From>
Constant moved(Call& call, const Constant& source, Shape shape, From from) {
  return assembled(call, {&source}, std::move(shape), [&](int64_t i) { return Origin{0, from(i)}; });
}

// Takes elements of one constant in these steps per dimension.
Constant strided(Call& call, const Constant& source, Shape shape, Shape steps, int64_t start = 0);

// Splits the sizes of a packed tensor into those before a dimension, its own, and those behind it.
struct Lines {
  int64_t outer = 1, size = 1, inner = 1;
  int64_t count() const { return outer * inner; }
  // Where line i begins; its elements are `inner` apart.
  int64_t begin(int64_t i) const { return i / inner * size * inner + i % inner; }
};
Lines lines_along(const Shape& shape, std::size_t axis);

}  // namespace gpunn::interchange::constants
