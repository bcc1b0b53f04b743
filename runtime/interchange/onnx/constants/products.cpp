// Computes products of matrices and of more dimensions.
#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <utility>

#include "interchange/onnx/constants/evaluator.hpp"

namespace gpunn::interchange::constants {

namespace {

// A product is computed in doubles, or in integers that wrap.
template <class T>
struct Factor {
  Shape shape;
  std::vector<T> values;
};

template <class T>
Factor<T> factor_of(const Constant& constant) {
  if constexpr (std::is_same_v<T, double>) {
    return {constant.shape, numbers_of(constant)};
  } else {
    const std::vector<int64_t> integers = integers_of(constant);
    return {constant.shape, {integers.begin(), integers.end()}};
  }
}

template <class T>
Constant constant_of(Element element, const Factor<T>& product) {
  if constexpr (std::is_same_v<T, double>) {
    return rounded_constant(element, product.shape, product.values);
  } else {
    std::vector<Size> sizes;
    for (const T value : product.values) sizes.push_back({wrapped(element, static_cast<int64_t>(value)), false});
    return integers_constant(element, product.shape, std::move(sizes));
  }
}

[[noreturn]] void refuse_shapes(const Shape& a, const Shape& b) {
  throw Unsupported("multiplies " + gpunn::to_string(a) + " and " + gpunn::to_string(b));
}

// Multiplies matrices of the last two dimensions. The others broadcast. A vector is a row as the first factor and a
// column as the second one.
template <class T>
Factor<T> multiplied(Call& call, Factor<T> a, Factor<T> b) {
  if (a.shape.empty() || b.shape.empty()) refuse_shapes(a.shape, b.shape);
  const bool is_row = a.shape.size() == 1, is_column = b.shape.size() == 1;
  if (is_row) a.shape.insert(a.shape.begin(), 1);
  if (is_column) b.shape.push_back(1);
  const int64_t rows = a.shape.end()[-2], inner = a.shape.back(), columns = b.shape.back();
  if (b.shape.end()[-2] != inner) refuse_shapes(a.shape, b.shape);
  const Shape of_a(a.shape.begin(), a.shape.end() - 2), of_b(b.shape.begin(), b.shape.end() - 2);
  const Shape batches = broadcast_shape(of_a, of_b);
  Factor<T> result{batches, {}};
  result.shape.insert(result.shape.end(), {rows, columns});
  result.values.assign(static_cast<std::size_t>(call.importer().take_room(result.shape)), T{});
  const int64_t count = element_count(batches);
  take_work(call, {count, rows, inner, columns});
  Walk<2> walk(batches, {broadcast_steps(of_a, batches), broadcast_steps(of_b, batches)});
  T* to = result.values.data();
  for (int64_t i = 0; i < count; ++i, walk.next()) {
    const T* const left = a.values.data() + walk.place(0) * static_cast<std::size_t>(rows * inner);
    const T* const right = b.values.data() + walk.place(1) * static_cast<std::size_t>(inner * columns);
    for (int64_t row = 0; row < rows; ++row, to += columns) {
      for (int64_t k = 0; k < inner; ++k) {
        for (int64_t column = 0; column < columns; ++column)
          to[column] += left[row * inner + k] * right[k * columns + column];
      }
    }
  }
  if (is_column) result.shape.pop_back();
  if (is_row) result.shape.erase(result.shape.end() - (is_column ? 1 : 2));
  return result;
}

void multiply(Call& call) {
  const Constant &a = call.constant(0, "the first factor"), &b = call.constant(1, "the second factor");
  require_numbers(a);
  require_same_type(a, b);
  if (is_floating(a.element)) {
    return call.give_constant(constant_of(a.element, multiplied(call, factor_of<double>(a), factor_of<double>(b))));
  }
  call.give_constant(constant_of(a.element, multiplied(call, factor_of<uint64_t>(a), factor_of<uint64_t>(b))));
}

// Subtracts the zero point from integers of 8 bits: one for all, or one for each row of the first factor and each
// column of the second one.
Factor<double> centred(Call& call, std::size_t input, std::size_t zero_input, bool by_row) {
  const Constant& x = call.constant(input, "a factor");
  constexpr int kByte = 8;
  if (!is_integer(x.element) || format_of(x.element).bits > kByte)
    throw Unsupported("multiplies " + name_of(x.element));
  Factor<double> result = factor_of<double>(x);
  if (!call.has(zero_input)) return result;
  const Constant& zero = call.constant(zero_input, "the zero point");
  require_same_type(x, zero);
  Shape shape = zero.shape;
  if (zero.count() == 1) shape = {};
  if (by_row && shape.size() == 1) shape.push_back(1);
  if (broadcast_shape(x.shape, shape) != x.shape) throw Unsupported("its zero points don't fit");
  Walk<1> walk(x.shape, {broadcast_steps(shape, x.shape)});
  for (double& value : result.values) {
    value -= zero.number(walk.place(0));
    walk.next();
  }
  return result;
}

void multiply_bytes(Call& call) {
  const Factor<double> product = multiplied(call, centred(call, 0, 2, true), centred(call, 1, 3, false));
  std::vector<Size> values;
  for (const double value : product.values)
    values.push_back({wrapped(Element::i32, static_cast<int64_t>(value)), false});
  call.give_constant(integers_constant(Element::i32, product.shape, std::move(values)));
}

// Gives alpha * a * b + beta * c.
template <class T>
void give_general_product(Call& call, const Constant& a, const Constant& b, T alpha, T beta) {
  Factor<T> product = multiplied(call, factor_of<T>(a), factor_of<T>(b));
  for (T& value : product.values) value *= alpha;
  if (call.has(2)) {
    Constant c = call.constant(2, "the term");
    require_same_type(a, c);
    if (broadcast_shape(product.shape, c.shape) != product.shape) refuse_shapes(product.shape, c.shape);
    const Factor<T> terms = factor_of<T>(c);
    Walk<1> walk(product.shape, {broadcast_steps(c.shape, product.shape)});
    for (T& value : product.values) {
      value += beta * terms.values[walk.place(0)];
      walk.next();
    }
  }
  call.give_constant(constant_of(a.element, product));
}

Constant as_matrix(Call& call, std::size_t input, const char* transposed) {
  const Constant& x = call.constant(input, "a factor");
  if (x.shape.size() != 2) throw Unsupported("multiplies " + gpunn::to_string(x.shape) + ", which is no matrix");
  return call.integer(transposed, 0) != 0 ? transposed_constant(call, x, {1, 0}) : x;
}

void general_product(Call& call) {
  const Constant a = as_matrix(call, 0, "transA"), b = as_matrix(call, 1, "transB");
  require_numbers(a);
  require_same_type(a, b);
  const double alpha = call.number("alpha", 1), beta = call.number("beta", 1);
  if (is_floating(a.element)) return give_general_product<double>(call, a, b, alpha, beta);
  if (alpha != 1 || beta != 1) throw Unsupported("multiplies integers by " + text(alpha) + " and " + text(beta));
  give_general_product<uint64_t>(call, a, b, 1, 1);
}

// Names the dimensions of each input and of the result. An ellipsis stands for dimensions without a letter, whose names
// are numbers. The last of them is 1.
struct Formula {
  std::vector<std::vector<int>> inputs;
  std::vector<int> result;
};

std::vector<int> names_in(const std::string& term, std::size_t unnamed) {
  constexpr std::string_view kEllipsis = "...";
  std::vector<int> names;
  for (std::size_t i = 0; i < term.size(); ++i) {
    if (term.compare(i, kEllipsis.size(), kEllipsis) == 0) {
      for (std::size_t d = unnamed; d > 0; --d) names.push_back(static_cast<int>(d));
      i += kEllipsis.size() - 1;
    } else if ((term[i] >= 'a' && term[i] <= 'z') || (term[i] >= 'A' && term[i] <= 'Z')) {
      names.push_back(term[i]);
    } else {
      throw Unsupported("its equation has '" + term.substr(i, 1) + "'");
    }
  }
  return names;
}

std::size_t letters_in(const std::string& term) {
  return static_cast<std::size_t>(std::ranges::count_if(term, [](char c) { return c != '.'; }));
}

Formula formula_of(Call& call) {
  std::string equation = call.word("equation", "");
  std::erase(equation, ' ');
  const std::size_t arrow = equation.find("->");
  std::string left = equation.substr(0, arrow);
  Formula formula;
  std::size_t most = 0;
  std::map<int, int> uses;
  for (std::size_t i = 0; i < call.count(); ++i) {
    const std::size_t comma = left.find(','), rank = call.constant(i, "a factor").shape.size();
    const std::string term = left.substr(0, comma);
    if ((comma == std::string::npos) != (i + 1 == call.count()))
      throw Unsupported("its equation does not fit its inputs");
    left.erase(0, comma == std::string::npos ? comma : comma + 1);
    const std::size_t unnamed = term.find('.') == std::string::npos ? 0 : rank - std::min(rank, letters_in(term));
    most = std::max(most, unnamed);
    formula.inputs.push_back(names_in(term, unnamed));
    if (formula.inputs.back().size() != rank) throw Unsupported("its equation does not fit its inputs");
    for (const int name : formula.inputs.back()) ++uses[name];
  }
  if (arrow != std::string::npos) {
    formula.result = names_in(equation.substr(arrow + 2), most);
  } else {
    // The result has the dimensions without a letter, then each letter that is there once, in order.
    for (std::size_t d = most; d > 0; --d) formula.result.push_back(static_cast<int>(d));
    for (const auto& [name, count] : uses) {
      if (count == 1 && name >= 'A') formula.result.push_back(name);
    }
  }
  std::vector<int> sorted = formula.result;
  std::ranges::sort(sorted);
  const bool is_sound = std::ranges::adjacent_find(sorted) == sorted.end() &&
                        std::ranges::all_of(sorted, [&](int name) { return uses.contains(name); });
  if (!is_sound) throw Unsupported("its equation does not say what the result's dimensions are");
  return formula;
}

// Sums the products of all factors over the dimensions that the result lacks.
template <class T>
void give_sum_of_products(Call& call, Element element, const Formula& formula) {
  std::map<int, int64_t> sizes;
  std::vector<Factor<T>> factors;
  for (std::size_t i = 0; i < formula.inputs.size(); ++i) {
    factors.push_back(factor_of<T>(call.constant(i, "a factor")));
    for (std::size_t d = 0; d < formula.inputs[i].size(); ++d) {
      const int64_t own = factors[i].shape[d];
      const auto [found, is_new] = sizes.emplace(formula.inputs[i][d], own);
      if (is_new || found->second == own || own == 1) continue;
      if (found->second != 1) throw Unsupported("its equation does not fit its inputs");
      found->second = own;
    }
  }
  std::vector<int> names = formula.result;
  for (const auto& [name, size] : sizes) {
    if (std::ranges::find(names, name) == names.end()) names.push_back(name);
  }
  Shape all;
  for (const int name : names) all.push_back(sizes.at(name));
  const Shape shape(all.begin(), all.begin() + std::ssize(formula.result));
  take_work(call, all);
  Factor<T> result{shape, std::vector<T>(static_cast<std::size_t>(call.importer().take_room(shape)), T{})};
  // A name can stand for several dimensions of a factor, along all of which it then steps at once.
  std::vector<Walk<1>> walks;
  for (std::size_t i = 0; i < factors.size(); ++i) {
    const Shape strides = strides_of(factors[i].shape);
    Shape steps(names.size(), 0);
    for (std::size_t d = 0; d < strides.size(); ++d) {
      const auto at = static_cast<std::size_t>(std::ranges::find(names, formula.inputs[i][d]) - names.begin());
      if (factors[i].shape[d] != 1) steps[at] += strides[d];
    }
    walks.emplace_back(all, std::array<Shape, 1>{steps});
  }
  const std::size_t count = static_cast<std::size_t>(element_count(all));
  const std::size_t each = result.values.empty() ? 1 : std::max<std::size_t>(count / result.values.size(), 1);
  for (std::size_t i = 0; i < count; ++i) {
    T product{1};
    for (std::size_t f = 0; f < factors.size(); ++f) {
      product *= factors[f].values[walks[f].place(0)];
      walks[f].next();
    }
    result.values[i / each] += product;
  }
  call.give_constant(constant_of(element, result));
}

void sum_of_products(Call& call) {
  const Constant& first = call.constant(0, "a factor");
  require_numbers(first);
  for (std::size_t i = 1; i < call.count(); ++i) require_same_type(first, call.constant(i, "a factor"));
  const Formula formula = formula_of(call);
  if (is_floating(first.element)) return give_sum_of_products<double>(call, first.element, formula);
  give_sum_of_products<uint64_t>(call, first.element, formula);
}

double determinant_of(std::vector<double> matrix, std::size_t n) {
  double result = 1;
  for (std::size_t column = 0; column < n; ++column) {
    std::size_t pivot = column;
    for (std::size_t row = column + 1; row < n; ++row) {
      if (std::abs(matrix[row * n + column]) > std::abs(matrix[pivot * n + column])) pivot = row;
    }
    if (matrix[pivot * n + column] == 0) return 0;
    if (pivot != column) {
      result = -result;
      for (std::size_t k = 0; k < n; ++k) std::swap(matrix[pivot * n + k], matrix[column * n + k]);
    }
    result *= matrix[column * n + column];
    for (std::size_t row = column + 1; row < n; ++row) {
      const double factor = matrix[row * n + column] / matrix[column * n + column];
      for (std::size_t k = column; k < n; ++k) matrix[row * n + k] -= factor * matrix[column * n + k];
    }
  }
  return result;
}

void determinant(Call& call) {
  const Constant& x = call.constant(0, "the matrices");
  require_floating(x);
  const std::size_t rank = x.shape.size();
  if (rank < 2 || x.shape[rank - 1] != x.shape[rank - 2]) {
    throw Unsupported("takes " + gpunn::to_string(x.shape) + "; expected square matrices");
  }
  const int64_t n = x.shape.back();
  const Shape shape(x.shape.begin(), x.shape.end() - 2);
  std::vector<double> values(static_cast<std::size_t>(call.importer().take_room(shape)));
  take_work(call, {std::ssize(values), n, n, n});
  const std::vector<double> all = numbers_of(x);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto begin = all.begin() + static_cast<int64_t>(i) * n * n;
    values[i] = determinant_of({begin, begin + n * n}, static_cast<std::size_t>(n));
  }
  call.give_constant(rounded_constant(x.element, shape, std::move(values)));
}

}  // namespace

std::vector<EvaluatorRow> product_evaluators() {
  return {
      {"Det", 11, determinant}, {"Einsum", 12, sum_of_products},       {"Gemm", 6, general_product},
      {"MatMul", 1, multiply},  {"MatMulInteger", 10, multiply_bytes},
  };
}

}  // namespace gpunn::interchange::constants
