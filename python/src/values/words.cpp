#include "values/words.hpp"

#include <gpunn/bench.hpp>
#include <gpunn/error.hpp>
#include <gpunn/words.hpp>

#include <array>
#include <string>
#include <utility>
#include <vector>

namespace gpunn::python {

namespace {

template <typename Value, std::size_t Count>
Value named(const char* what, const std::string& name, const std::array<std::pair<std::string, Value>, Count>& known) {
  std::vector<std::string> names;
  for (const auto& [word, value] : known) {
    if (word == name) return value;
    names.push_back(word);
  }
  throw Error(std::string("there is no ") + what + " '" + name + "'" + did_you_mean_or_list(name, names),
              ExitCode::usage);
}

}  // namespace

Precision precision_named(const std::string& name) {
  std::array<std::pair<std::string, Precision>, 4> known;
  std::size_t i = 0;
  for (const Precision one : {Precision::fp32, Precision::tf32, Precision::bf16, Precision::f16}) {
    known[i++] = {name_of(one), one};
  }
  return named("precision", name, known);
}

DType dtype_named(const std::string& name) {
  std::array<std::pair<std::string, DType>, 3> known;
  std::size_t i = 0;
  for (const DType one : {DType::f32, DType::bf16, DType::f16}) known[i++] = {std::string(name_of(one)), one};
  return named("dtype", name, known);
}

Layout layout_named(const std::string& name) {
  return named("layout", name,
               std::array<std::pair<std::string, Layout>, 2>{
                   {{"packed", Layout::packed}, {"channels-last", Layout::channels_last}}});
}

}  // namespace gpunn::python
